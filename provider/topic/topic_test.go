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

package topic

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"k8s.io/client-go/util/workqueue"
)

// A controller gets each change between its start and its end once, however often it is published.
func TestTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		topic := &Topic[string]{}
		queues := map[string]workqueue.TypedRateLimitingInterface[int]{}
		start := func(name string) context.CancelFunc {
			ctx, cancel := context.WithCancel(t.Context())
			queues[name] = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[int]())
			t.Cleanup(queues[name].ShutDown)
			if err := Source(topic, func(queue workqueue.TypedRateLimitingInterface[int], key string) { queue.Add(len(key)) }).Start(ctx, queues[name]); err != nil {
				t.Fatal(err)
			}
			return cancel
		}
		topic.Publish("before any")
		end := start("first")
		topic.Publish("a")
		defer start("second")()
		topic.Publish("bb")
		topic.Publish("bb")
		end()
		synctest.Wait()
		topic.Publish("ccc")
		for name, want := range map[string][]int{"first": {1, 2}, "second": {2, 3}} {
			var got []int
			for range queues[name].Len() {
				request, _ := queues[name].Get()
				got = append(got, request)
			}
			if !slices.Equal(got, want) {
				t.Errorf("the %s controller got %v, want %v", name, got, want)
			}
		}
		if len(topic.subscribers) != 1 {
			t.Errorf("%d controllers subscribe", len(topic.subscribers))
		}
	})
}
