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

package targets

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// Users choose the kinds of lookups, so their number must be bounded.
func TestLookupsAreBounded(t *testing.T) {
	var known discoveryCache
	unawaited, now := newAsyncLookups(), time.Unix(0, 0)
	for number := range 3 * maxLookups {
		key := lookup{kind: fmt.Sprint("Kind", number)}
		known.put(key, lookupResult{}, 0, now)
		unawaited.begin(key)
		unawaited.end(key, asyncResult{err: ErrNotServed})
		if _, _, ok := known.get(key); !ok {
			t.Fatal("a recent result is not cached")
		}
	}
	if len(known.results) > maxLookups || len(unawaited.results) > maxLookups || len(unawaited.running) > 0 {
		t.Errorf("%d and %d answers are remembered, and %d are awaited", len(known.results), len(unawaited.results), len(unawaited.running))
	}
}

// A result waits for its caller, but expires.
func TestAsyncResultsExpire(t *testing.T) {
	key, now := lookup{kind: "Widget"}, time.Unix(1000, 0)
	until := now.Add(notServedCacheTTL)
	for name, test := range map[string]struct {
		err   error
		after []time.Duration
		want  []bool
	}{
		"a refusal, in time":            {ErrNotServed, []time.Duration{0, notServedCacheTTL - 1, notServedCacheTTL}, []bool{true, true, false}},
		"a refusal, late":               {ErrNotServed, []time.Duration{notServedCacheTTL, notServedCacheTTL + 1}, []bool{true, false}},
		"a refusal, too late":           {ErrNotServed, []time.Duration{notServedCacheTTL + unreadResultTTL}, []bool{false}},
		"something else, once":          {nil, []time.Duration{0, 0}, []bool{true, false}},
		"something else, late":          {nil, []time.Duration{notServedCacheTTL + unreadResultTTL - 1, 0}, []bool{true, false}},
		"something else, too late":      {nil, []time.Duration{notServedCacheTTL + unreadResultTTL}, []bool{false}},
		"a broken connection, too late": {errBroken, []time.Duration{time.Hour}, []bool{false}},
	} {
		unawaited := newAsyncLookups()
		unawaited.end(key, asyncResult{err: test.err, until: until})
		for i, after := range test.after {
			if _, got := unawaited.take(key, 0, now.Add(after)); got != test.want[i] {
				t.Errorf("%s: after %s: answered: %v", name, after, got)
			}
		}
	}
}

var errBroken = errors.New("the connection was broken off")
