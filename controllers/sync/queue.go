/*
Copyright 2026 The synchub Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package sync

import (
	"math"
	"strconv"
	gosync "sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// queue is a priority queue that can be shut down while workers wait for it and others work. The one of controller-runtime
// stops for ever if its workers leave at the moment when it has something for them, and with it whoever waits for the
// controller (kubernetes-sigs/controller-runtime issue 3538, mended in v0.25, which needs newer Kubernetes libraries than
// kcp's). So the workers are sent home first.
type queue struct {
	priorityqueue.PriorityQueue[types.NamespacedName]

	lock   gosync.Mutex
	ending bool
	// waiting counts the workers that wait, or have just been given something.
	waiting gosync.WaitGroup
}

func newQueue(limiter workqueue.TypedRateLimiter[types.NamespacedName]) *queue {
	// A queue with a name has metrics, and those cost a ticker each.
	return &queue{PriorityQueue: priorityqueue.New("", func(o *priorityqueue.Opts[types.NamespacedName]) { o.RateLimiter = limiter })}
}

// GetWithPriority waits for the next item; shutdown is true if there will be none.
func (q *queue) GetWithPriority() (key types.NamespacedName, priority int, shutdown bool) {
	if !q.enter() {
		return types.NamespacedName{}, 0, true
	}
	defer q.waiting.Done()
	key, priority, shutdown = q.PriorityQueue.GetWithPriority()
	return key, priority, shutdown || q.isEnding()
}

// Get waits for the next item; shutdown is true if there will be none.
func (q *queue) Get() (key types.NamespacedName, shutdown bool) {
	key, _, shutdown = q.GetWithPriority()
	return key, shutdown
}

// ShutDown gives each worker that waits something to go home with, and returns when they have gone. Those that work find
// the queue closed when they come back.
func (q *queue) ShutDown() {
	q.lock.Lock()
	q.ending = true
	q.lock.Unlock()
	first := math.MaxInt
	for worker := range workers {
		// No object has such a name.
		q.AddWithOpts(priorityqueue.AddOpts{Priority: &first}, types.NamespacedName{Name: "/" + strconv.Itoa(worker)})
	}
	q.waiting.Wait()
	q.PriorityQueue.ShutDown()
}

func (q *queue) enter() bool {
	q.lock.Lock()
	defer q.lock.Unlock()
	if !q.ending {
		q.waiting.Add(1)
	}
	return !q.ending
}

func (q *queue) isEnding() bool {
	q.lock.Lock()
	defer q.lock.Unlock()
	return q.ending
}
