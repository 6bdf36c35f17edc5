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

package transport

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/synchub-dev/synchub/provider/fastjson"
)

// inBubble runs a test in a bubble of package synctest, which can wait until all goroutines are blocked.
func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		before := manyValuesSlots
		manyValuesSlots = make(Slots, maxManyValuesAtOnce)
		defer func() { manyValuesSlots = before }()
		test(t)
		synctest.Wait()
	})
}

// roundTrip sends a request to a server with limits.
func roundTrip(t *testing.T, ctx context.Context, options Options, path string, body io.Reader) *http.Response { //nolint:revive // the context is the request's
	t.Helper()
	response, err := LimitResponses(options)(respond(200, "application/json", body)).RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodGet, "https://host"+path, nil))
	if err != nil {
		t.Fatal(err)
	}
	return response
}

const anObject, aWatch = "/api/v1/namespaces/n/configmaps/c", "/api/v1/configmaps?watch=true"

var (
	largeText = `{"a":"` + strings.Repeat("x", 2*fastjson.LargeThreshold) + `"}`
	heavyText = `{"a":[` + strings.Repeat(`{"":0},`, manyValues) + `{}]}`
)

// Only a few large responses of one server are read and decoded at the same time. Of responses with many values, only a
// few of all servers are decoded at the same time.
func TestLargeResponsesTakeSlots(t *testing.T) {
	for name, test := range map[string]struct {
		servers    int
		text       string
		most, each int32
	}{
		"small":                   {1, `{"a":1}`, 20, 4},
		"large":                   {1, largeText, 4, 4},
		"large of two servers":    {2, largeText, 8, 4},
		"heavy":                   {1, heavyText, maxManyValuesAtOnce, 4},
		"heavy of three servers":  {3, heavyText, maxManyValuesAtOnce, 4},
		"heavy, where one may be": {1, heavyText, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var decoding atomic.Int32
				release := make(chan struct{})
				for range test.servers {
					options := Options{Limits: TargetLimits(), LargeSlots: make(Slots, test.each)}
					for range 20 / test.servers {
						go func() {
							ctx, decoded := WithSlot(t.Context())
							defer decoded()
							response := roundTrip(t, ctx, options, anObject, strings.NewReader(test.text))
							_, err := io.ReadAll(response.Body)
							_ = response.Body.Close()
							if err != nil {
								t.Error(err)
							}
							decoding.Add(1)
							<-release
							decoding.Add(-1)
						}()
					}
				}
				count := 20 / test.servers * test.servers
				for i := range count {
					synctest.Wait()
					if now := decoding.Load(); now > test.most || now < 1 || i == 0 && int(now) != min(int(test.most), count) {
						t.Fatalf("%d are decoded at once, %d may be", now, test.most)
					}
					release <- struct{}{}
				}
			})
		})
	}
}

// A large event keeps its slot until the next read, or until the watch ends. OnBufferChange gets the size of the buffers.
func TestLargeEventsTakeSlots(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		most int64
	}{"small": {`{"a":1}`, 10}, "large": {largeText, 4}, "heavy": {heavyText, maxManyValuesAtOnce}} {
		for _, end := range []string{"more is read", "the watch ends"} {
			t.Run(name+" until "+end, func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					var room, decoding atomic.Int64
					options := Options{Limits: TargetLimits(), LargeSlots: make(Slots, 4), OnBufferChange: func(bytes int64) { room.Add(bytes) }}
					next, over := make(chan struct{}), make(chan struct{})
					const watches = 10
					for range watches {
						go func() {
							events, server := io.Pipe()
							go func() { _, _ = io.WriteString(server, test.text) }()
							response := roundTrip(t, t.Context(), options, aWatch, events)
							if _, err := io.ReadFull(response.Body, make([]byte, len(test.text))); err != nil {
								t.Error(err)
							}
							decoding.Add(1)
							<-next
							decoding.Add(-1)
							if end == "more is read" {
								go func() { _ = server.Close() }()
								_, _ = response.Body.Read(make([]byte, 1))
							} else {
								_ = response.Body.Close()
							}
							<-over
							_ = response.Body.Close()
						}()
					}
					for i := range watches {
						synctest.Wait()
						if now := decoding.Load(); now > test.most || now < 1 || i == 0 && now != test.most {
							t.Fatalf("%d are decoded at once, %d may be", now, test.most)
						}
						next <- struct{}{}
					}
					synctest.Wait()
					if kept := room.Load(); end == "more is read" && (kept > 0) != (name != "small") {
						t.Errorf("room for %d bytes is kept", kept)
					}
					close(over)
					synctest.Wait()
					if left := room.Load(); left != 0 {
						t.Errorf("room for %d bytes is left", left)
					}
				})
			})
		}
	}
}

// Waiting for a slot ends with the request, and takes no slot then.
func TestSlotsAreReleased(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		options := Options{Limits: TargetLimits(), LargeSlots: make(Slots, 1)}
		first := roundTrip(t, t.Context(), options, aWatch, strings.NewReader(largeText))
		if _, err := io.ReadFull(first.Body, make([]byte, len(largeText))); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		second := roundTrip(t, ctx, options, aWatch, strings.NewReader(largeText)) //nolint:bodyclose // it is closed below
		ended := make(chan error)
		go func() {
			_, err := io.ReadAll(second.Body)
			ended <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		_ = second.Body.Close()
		_ = first.Body.Close()
		if _, err := second.Body.Read(make([]byte, 1)); err == nil || len(options.LargeSlots) != 0 {
			t.Errorf("%d slots are taken by ended requests: %v", len(options.LargeSlots), err)
		}
	})
}

// A server that does not answer the next request does not keep the shared slot of its previous response.
func TestNextRequestBlocksNoOther(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		ctx, release := WithSlot(t.Context())
		defer release()
		options := Options{Limits: TargetLimits(), LargeSlots: make(Slots, 1)}
		response := roundTrip(t, ctx, options, anObject, strings.NewReader(heavyText))
		_, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || len(manyValuesSlots) != 1 || len(options.LargeSlots) != 1 {
			t.Fatalf("%v, %d and %d turns are taken while it is decoded", err, len(manyValuesSlots), len(options.LargeSlots))
		}
		next := roundTrip(t, ctx, options, anObject, strings.NewReader(`{}`))
		defer next.Body.Close() //nolint:errcheck // nothing is read from it
		if len(manyValuesSlots) != 0 || len(options.LargeSlots) != 1 {
			t.Errorf("%d and %d slots are taken during another request", len(manyValuesSlots), len(options.LargeSlots))
		}
	})
}
