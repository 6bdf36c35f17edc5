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
	"strconv"
	gosync "sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// Workers go home when the queue is shut down, whatever is in it and comes in, and whether they wait or work.
func TestQueueShutsDown(t *testing.T) {
	for round := range 200 {
		queue := newQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](time.Millisecond, time.Second))
		var adding, working gosync.WaitGroup
		adding.Go(func() {
			for i := range 1000 {
				queue.AddWithOpts(priorityqueue.AddOpts{}, types.NamespacedName{Name: strconv.Itoa(i % 100)})
			}
		})
		seen := make(chan types.NamespacedName, 1)
		for range workers {
			working.Go(func() {
				for {
					key, shutdown := queue.Get()
					if shutdown {
						return
					}
					select {
					case seen <- key:
					default:
					}
					queue.AddRateLimited(key)
					queue.Done(key)
				}
			})
		}
		if key := <-seen; key.Name == "" || key.Name[0] == '/' {
			t.Fatalf("a worker was given %q", key)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			queue.ShutDown()
			working.Wait()
		}()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Fatalf("round %d: the queue, or a worker, did not end", round)
		}
		adding.Wait()
	}
}
