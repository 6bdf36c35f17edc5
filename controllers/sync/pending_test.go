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
	"testing"
	"time"
)

func TestPending(t *testing.T) {
	p, start := newPending(), time.Unix(1000, 0)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	expect := func(when string, want time.Time) {
		t.Helper()
		if got, ok := p.oldest(); ok == want.IsZero() || !got.Equal(want) {
			t.Errorf("%s: got %v, %v", when, got, ok)
		}
	}
	expect("at rest", time.Time{})
	p.note(at(1), shop("one"), shop("two"))
	p.note(at(2), shop("one"), shop("three"))
	expect("three wait", at(1))
	since, waits := p.take(shop("one"))
	if !waits || !since.Equal(at(1)) {
		t.Errorf("the first waits since %v, %v", since, waits)
	}
	expect("one is tried", at(1))
	p.take(shop("two"))
	expect("two are tried", at(2))
	p.putBack(shop("one"), since)
	expect("one failed", at(1))
	p.note(at(3), shop("one"))
	expect("and changed once more", at(1))
	p.take(shop("one"))
	p.note(at(4), shop("one"))
	p.take(shop("three"))
	expect("and once more while it was tried", at(4))
	p.take(shop("one"))
	if _, waits := p.take(shop("one")); waits {
		t.Error("what was taken waits")
	}
	expect("at the end", time.Time{})
}
