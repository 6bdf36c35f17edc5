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
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/connections"
)

const allListed = `{"type":"BOOKMARK","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n"

// added returns the event of a ConfigMap of so many bytes.
func added(name string, size int) string {
	return fmt.Sprintf(`{"type":"ADDED","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"a","uid":%q,"resourceVersion":"1"},"data":{"x":%q}}}`+"\n",
		name, name, strings.Repeat("x", size))
}

// watched serves a version, and watches with the events that send writes.
func watched(send func(writer io.Writer, ctx context.Context) error) http.HandlerFunc {
	return func(writer http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/version" {
			answer(200, "application/json", `{"gitVersion":"v1.35.4"}`)(writer, request)
			return
		}
		if request.URL.Query().Get("watch") == "" {
			answer(http.StatusTooManyRequests, "text/plain", "watch")(writer, request)
			return
		}
		writer.Header().Set("Content-Type", "application/json")
		if send(writer, request.Context()) == nil {
			writer.(http.Flusher).Flush()
			<-request.Context().Done()
		}
	}
}

// cachedBytes returns the bytes in the caches of all targets together.
func cachedBytes(t *testing.T) float64 {
	t.Helper()
	for _, series := range framework.Gather(t, targets.Collectors()...) {
		if series.Metric == "synchub_targets_bytes" {
			return series.Value
		}
	}
	t.Fatal("the metric synchub_targets_bytes is missing")
	return 0
}

// Targets that each stay within their limits but together exceed the total are quarantined. Targets with small caches, and
// those that do not grow, stay connected.
func TestTargetsTakeTooMuchTogether(t *testing.T) {
	const limit, size, hostile = 24 * mib, 16 << 10, 8
	registry := newRegistry(t, limit)
	run := func(connection *targets.Connection, handler cache.ResourceEventHandlerFuncs) {
		watching := connection.Watches.NewCache(configMaps, targets.CacheOptions{Handler: handler})
		framework.RunInTest(t, func(ctx context.Context) error {
			watching.Run(ctx)
			return nil
		})
	}
	peak := 0.0
	until := func(done func() bool, what string) {
		t.Helper()
		deadline := time.After(time.Minute)
		for !done() {
			peak = max(peak, cachedBytes(t))
			select {
			case <-time.After(time.Millisecond):
			case <-deadline:
				t.Fatal(what)
			}
		}
	}

	more, received := make(chan struct{}), atomic.Int64{}
	small := connections.Connect(t, registry, "small", serveTarget(t, false, watched(func(writer io.Writer, ctx context.Context) error {
		_, _ = io.WriteString(writer, added("first", 30*size)+allListed)
		writer.(http.Flusher).Flush()
		select {
		case <-more:
		case <-ctx.Done():
		}
		_, err := io.WriteString(writer, added("second", size))
		return err
	})), kcp.Limits{})
	await(t, small, targets.ReasonConnected)
	run(small, cache.ResourceEventHandlerFuncs{AddFunc: func(any) { received.Add(1) }})
	until(func() bool { return received.Load() == 1 }, "the handler did not receive the small target's first object")

	var all []*targets.Connection
	for number := range hostile {
		connection := connections.Connect(t, registry, types.UID(fmt.Sprint("hostile-", number)), serveTarget(t, false, watched(func(writer io.Writer, ctx context.Context) error {
			var err error
			if number%2 == 0 {
				_, err = io.WriteString(writer, allListed)
			}
			for i := 0; err == nil && ctx.Err() == nil; i++ {
				_, err = io.WriteString(writer, added(fmt.Sprint("b", i), size))
			}
			return err
		})), kcp.Limits{})
		await(t, connection, targets.ReasonConnected)
		run(connection, cache.ResourceEventHandlerFuncs{})
		all = append(all, connection)
	}
	for _, connection := range all {
		until(func() bool { return connection.Health.Get().Reason == targets.ReasonCacheFull }, "a hostile target is not parked")
		if message := connection.Health.Get().Message; !strings.Contains(message, "--targets-max-bytes") {
			t.Errorf("got %q", message)
		}
	}
	close(more)
	until(func() bool { return received.Load() == 2 }, "the handler did not receive the small target's second object")
	if !small.Health.IsUp() {
		t.Errorf("got %+v", small.Health.Get())
	}
	// Equal shares, and data in flight until a connection is closed, add to the total. Without the total it would be 512
	// MiB.
	if after := cachedBytes(t); max(peak, after) > limit*3/2 {
		t.Errorf("the caches had %.0f bytes at most, and %.0f at the end", peak, after)
	}
}
