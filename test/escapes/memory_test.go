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

package escapes

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/synchub-dev/synchub/provider/targets"
)

// mostAtOnce limits the additional heap in use at any time while a server sends many responses within the limits.
// It includes the server's own copy.
const mostAtOnce = 1024 * mib

// peak returns the maximum heap while work runs, with its garbage. The collector runs whenever the heap has grown by half, so
// that there is little garbage.
func peak(work func()) (most uint64) {
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	var stats runtime.MemStats
	inUse := func() uint64 {
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	runtime.GC()
	before, done := inUse(), make(chan struct{})
	var measuring sync.WaitGroup
	measuring.Go(func() {
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				most = max(most, inUse())
			}
		}
	})
	work()
	close(done)
	measuring.Wait()
	return most - min(before, most)
}

func versionOr(serve http.HandlerFunc) http.HandlerFunc {
	return func(writer http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/version" {
			answer(200, "application/json", `{"gitVersion":"v1.35.4"}`)(writer, request)
			return
		}
		serve(writer, request)
	}
}

// manyMaps returns an object with the maximum number of values; each takes a hundred times its length in memory.
func manyMaps() string { return object + `},"x":[` + strings.Repeat(`{"":0},`, 250_000) + `{}]}` }

// Many concurrent responses, each within the limits, take a limited amount of memory together.
func TestManyLargeAnswersAtOnce(t *testing.T) {
	const atOnce = 24
	heavy := manyMaps()
	t.Run("to writes", func(t *testing.T) {
		connection := connectTo(t, true, versionOr(answer(200, "application/json", heavy)))
		await(t, connection, targets.ReasonConnected)
		took := peak(func() {
			var writing sync.WaitGroup
			for range atOnce {
				writing.Go(func() {
					err := patch(t.Context(), connection)
					// Few responses are decoded at a time, so on a slow machine the last ones miss the deadline of a request.
					for attempts := 1; errors.Is(err, context.DeadlineExceeded) && attempts < 5; attempts++ {
						err = patch(t.Context(), connection)
					}
					if err != nil {
						t.Error(err)
					}
				})
			}
			writing.Wait()
		})
		if took > mostAtOnce {
			t.Errorf("it took %d MiB", took/mib)
		}
	})
	t.Run("as events", func(t *testing.T) {
		connection := connectTo(t, true, versionOr(func(writer http.ResponseWriter, request *http.Request) {
			writer.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(writer, `{"type":"ADDED","object":`+heavy+`}`+"\n")
			writer.(http.Flusher).Flush()
			<-request.Context().Done()
		}))
		await(t, connection, targets.ReasonConnected)
		ctx, cancel := context.WithCancel(t.Context())
		var watching, seen sync.WaitGroup
		took := peak(func() {
			for i := range atOnce {
				once := sync.OnceFunc(seen.Done)
				seen.Add(1)
				// The test is about the memory while decoding, so the cache keeps nothing.
				watch := connection.Watches.NewCache(schema.GroupVersionResource{Version: "v1", Resource: strings.Repeat("a", i+1)}, targets.CacheOptions{
					Handler: cache.ResourceEventHandlerFuncs{}, Transform: func(any) (any, error) { once(); return nil, errors.New("dropped") },
				})
				watching.Go(func() { watch.Run(ctx) })
			}
			seen.Wait()
		})
		cancel()
		watching.Wait()
		if took > mostAtOnce {
			t.Errorf("it took %d MiB", took/mib)
		}
	})
}

// The reader of a watch keeps a buffer for an event like the largest so far. The buffer counts as cached, even without an
// event in it.
func TestEventBuffersCount(t *testing.T) {
	connection := connectTo(t, true, versionOr(func(writer http.ResponseWriter, request *http.Request) {
		writer.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(writer, `{"type":"BOOKMARK","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"resourceVersion":"1"},"data":{"a":"`+strings.Repeat("x", 3*mib)+`"}}}`+"\n")
		writer.(http.Flusher).Flush()
		<-request.Context().Done()
	}))
	await(t, connection, targets.ReasonConnected)
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	for i := range 12 {
		watch := connection.Watches.NewCache(schema.GroupVersionResource{Version: "v1", Resource: strings.Repeat("a", i+1)}, targets.CacheOptions{Handler: cache.ResourceEventHandlerFuncs{}})
		watching.Go(func() { watch.Run(ctx) })
	}
	await(t, connection, targets.ReasonCacheFull)
	cancel()
	watching.Wait()
}
