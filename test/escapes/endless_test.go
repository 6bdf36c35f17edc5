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
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/synchub-dev/synchub/provider/targets"
)

// initial returns the event that ends the initial list of a watch.
func initial(resourceVersion string) string {
	return `{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"` + resourceVersion + `","annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n"
}

// asksForAll reports whether a watch request asks for initial events.
func asksForAll(request *http.Request) bool {
	return request.URL.Query().Get("sendInitialEvents") != ""
}

func isWatch(request *http.Request) bool { return request.URL.Query().Get("watch") != "" }

const (
	expired   = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`
	noObjects = `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`
)

// However a server ends lists and watches, the hub pauses before the next request.
func TestWatchesAreRestartedWithPauses(t *testing.T) {
	for name, serve := range map[string]http.HandlerFunc{
		"410 to all":         answer(410, "application/json", expired),
		"410 as an event":    answer(200, "application/json", `{"type":"ERROR","object":`+expired+`}`),
		"429 to all":         answer(429, "application/json", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429}`),
		"500 to all":         status(500, "no"),
		"nothing":            answer(200, "application/json", ""),
		"an event each":      eventsAfter(`{"type":"MODIFIED","object":` + object + `}}}`),
		"a bookmark each":    eventsAfter(`{"type":"BOOKMARK","object":` + object + `}}}`),
		"no metadata":        eventsAfter(`{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1"}}`),
		"another kind":       eventsAfter(`{"type":"ADDED","object":{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"2"}}}`),
		"a Table":            eventsAfter(`{"type":"ADDED","object":{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[]}}`),
		"metadata, a text":   eventsAfter(`{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":"x"}}`),
		"a number too large": eventsAfter(`{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","generation":1e999}}}`),
		"NaN":                eventsAfter(`{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","generation":NaN}}}`),
		"no UTF-8":           eventsAfter("{\"type\":\"ADDED\",\"object\":{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\xff\",\"resourceVersion\":\"2\"}}}"),
		"another type":       eventsAfter(`{"type":"\u001b[31m","object":` + object + `}}}`),
		"a way out as name":  eventsAfter(`{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"../..","name":"../../x\n","resourceVersion":"2"}}}`),
		"a list of lists":    answer(200, "application/json", `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{"kind":"List","items":[1,[2]]},3]}`),
		"a list of nothing":  answer(200, "application/json", `null`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			connection := connectTo(t, true, versionOr(func(writer http.ResponseWriter, request *http.Request) {
				asked.Add(1)
				serve(writer, request)
			}))
			await(t, connection, targets.ReasonConnected)
			const lasting, most = 2 * time.Second, 30
			ctx, cancel := context.WithTimeout(t.Context(), lasting)
			defer cancel()
			connection.Watches.NewCache(configMaps, targets.CacheOptions{Handler: cache.ResourceEventHandlerFuncs{}}).Run(ctx)
			if count := asked.Load(); count > most {
				t.Errorf("it was asked %d times in %s", count, lasting)
			}
			if health := connection.Health.Get(); !health.Up {
				t.Errorf("the target is down: %+v", health)
			}
		})
	}
}

// eventsAfter serves an empty list, and then watches that end after one event.
func eventsAfter(event string) http.HandlerFunc {
	return func(writer http.ResponseWriter, request *http.Request) {
		switch {
		case !isWatch(request):
			answer(200, "application/json", noObjects)(writer, request)
		case asksForAll(request):
			answer(400, "text/plain", "no watch begins with a list here")(writer, request)
		default:
			answer(200, "application/json", event)(writer, request)
		}
	}
}

// A server whose list never ends, or whose continue token or resourceVersion is too long, is quarantined.
func TestEndlessPositions(t *testing.T) {
	long := strings.Repeat("9", mib)
	list := func(metadata, items string) string {
		return `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{` + metadata + `},"items":[` + items + `]}`
	}
	for name, test := range map[string]struct {
		serve  http.HandlerFunc
		reason string
	}{
		"empty pages":                       {paged(list(`"resourceVersion":"1","continue":"more"`, "")), targets.ReasonTooLarge},
		"pages of one object, for ever":     {paged(list(`"resourceVersion":"1","continue":"more"`, object+"}}")), targets.ReasonCacheFull},
		"a lie of what remains":             {paged(list(`"resourceVersion":"1","continue":"more","remainingItemCount":9223372036854775807`, "")), targets.ReasonTooLarge},
		"a long token of a page":            {paged(list(`"resourceVersion":"1","continue":"`+long+`"`, "")), targets.ReasonTooLarge},
		"a long version of a list":          {paged(list(`"resourceVersion":"`+long+`"`, "")), targets.ReasonTooLarge},
		"a long version of what is watched": {answer(200, "application/json", initial(long)), targets.ReasonTooLarge},
		"a long version of a bookmark":      {eventsAfter(`{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"` + long + `"}}}`), targets.ReasonTooLarge},
		"a long name in a watch":            {eventsAfter(`{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"` + long + `","resourceVersion":"2"}}}`), targets.ReasonTooLarge},
		"a long name in a page":             {paged(list(`"resourceVersion":"1"`, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"`+long+`","name":"a"}}`)), targets.ReasonTooLarge},
		"a long name in what is watched":    {answer(200, "application/json", `{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"`+long+`","resourceVersion":"2"}}}`), targets.ReasonTooLarge},
		"a long version of an object":       {eventsAfter(`{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"` + long + `"}}}`), targets.ReasonTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			var longest atomic.Int64
			connection := connectTo(t, false, versionOr(func(writer http.ResponseWriter, request *http.Request) {
				longest.Store(max(longest.Load(), int64(len(request.URL.RawQuery))))
				test.serve(writer, request)
			}))
			await(t, connection, targets.ReasonConnected)
			_ = watch(t.Context(), connection)
			await(t, connection, test.reason)
			expectHarmless(t, connection.Health.Get().Message)
			if longest.Load() > mib/2 {
				t.Errorf("a query of %d bytes came back", longest.Load())
			}
		})
	}
}

// paged serves the same page again and again.
func paged(page string) http.HandlerFunc {
	return func(writer http.ResponseWriter, request *http.Request) {
		if isWatch(request) {
			answer(400, "text/plain", "no watch begins with a list here")(writer, request)
			return
		}
		// Each object has its own name.
		answer(200, "application/json", strings.ReplaceAll(page, `"name":"b"`, fmt.Sprintf(`"name":"b%d"`, time.Now().UnixNano())))(writer, request)
	}
}
