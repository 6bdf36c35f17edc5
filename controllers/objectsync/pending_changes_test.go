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

package objectsync

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestPendingChanges(t *testing.T) {
	p, start := newPendingChanges(), time.Unix(1000, 0)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	expect := func(when string, want time.Time) {
		t.Helper()
		if _, got := p.count(); !got.Equal(want) {
			t.Errorf("%s: got %v", when, got)
		}
	}
	expect("at rest", time.Time{})
	p.add(at(1), originOther, shop("one"), shop("two"))
	p.add(at(2), originOther, shop("one"), shop("three"))
	expect("three are pending", at(1))
	one, waits := p.take(shop("one"))
	if !waits || !one.since.Equal(at(1)) {
		t.Errorf("the first is pending since %v, %v", one, waits)
	}
	p.add(at(4), originOther, shop("one"))
	expect("one is tried, and changed once more", at(1))
	p.endPass(shop("one"))
	expect("that pass has ended", at(1)) // two
	two, _ := p.take(shop("two"))
	expect("two is tried", at(1))
	p.restore(shop("two"), two)
	p.endPass(shop("two"))
	expect("two failed", at(1))
	for i, name := range []string{"two", "three", "one"} {
		p.take(shop(name))
		p.endPass(shop(name))
		expect(name+" is in sync", []time.Time{at(2), at(4), {}}[i])
	}
	if _, waits := p.take(shop("one")); waits {
		t.Error("a taken change is pending")
	}
	expect("at the end", time.Time{})
}

// A write's latency is measured from the first change on the side of its source.
func TestTimesOfAChange(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	one := shop("one")
	for name, test := range map[string]struct {
		do   func(p *pendingChanges)
		want pendingChange
	}{
		"nothing":  {func(*pendingChanges) {}, pendingChange{}},
		"a config": {func(p *pendingChanges) { p.add(at(1), originOther, one) }, pendingChange{since: at(1)}},
		"twice in the mailbox": {func(p *pendingChanges) {
			p.add(at(1), originMailbox, one)
			p.add(at(2), originMailbox, one)
		}, pendingChange{since: at(1), mailbox: at(1)}},
		"on the target after a config": {func(p *pendingChanges) {
			p.add(at(1), originOther, one)
			p.add(at(2), originTarget, one)
		}, pendingChange{since: at(1), target: at(2)}},
		"on both sides": {func(p *pendingChanges) {
			p.add(at(1), originTarget, one)
			p.add(at(2), originMailbox, one, shop("two"))
		}, pendingChange{since: at(1), target: at(1), mailbox: at(2)}},
		"while the target was away": {func(p *pendingChanges) {
			p.add(at(1), originMailbox, one)
			p.excludeFromLatency(one)
		}, pendingChange{since: at(1)}},
		"once more when it is back": {func(p *pendingChanges) {
			p.add(at(1), originMailbox, one)
			p.excludeFromLatency(one)
			p.add(at(3), originMailbox, one)
		}, pendingChange{since: at(1), mailbox: at(3)}},
		"as the target went away": {func(p *pendingChanges) {
			p.add(at(1), originMailbox, one)
			taken, _ := p.take(one)
			p.add(at(2), originMailbox, one)
			p.restore(one, taken)
		}, pendingChange{since: at(1)}},
		"until its absence is verified": {func(p *pendingChanges) {
			p.add(at(1), originMailbox, one)
			taken, _ := p.take(one)
			p.keepTimes(one, taken)
			p.add(at(5), originOther, one)
		}, pendingChange{since: at(5), mailbox: at(1)}},
		"after its absence was verified": {func(p *pendingChanges) {
			p.add(at(1), originOther, one)
			taken, _ := p.take(one)
			p.keepTimes(one, taken)
		}, pendingChange{}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPendingChanges()
			test.do(p)
			got, waits := p.take(one)
			if !got.since.Equal(test.want.since) || !got.mailbox.Equal(test.want.mailbox) || !got.target.Equal(test.want.target) || waits == test.want.since.IsZero() {
				t.Errorf("want %v, got %v, %v", test.want, got, waits)
			}
			p.take(shop("two"))
			if len(p.keys) > 0 {
				t.Errorf("taken changes are kept: %v", p.keys)
			}
		})
	}
}

// A key that waits only for a verification is not pending.
func TestAbsenceToBeVerifiedIsNotPending(t *testing.T) {
	p, now := newPendingChanges(), time.Unix(1000, 0)
	p.add(now, originMailbox, shop("one"))
	taken, _ := p.take(shop("one"))
	p.keepTimes(shop("one"), taken)
	p.endPass(shop("one"))
	if count, since := p.count(); count != 0 || !since.IsZero() {
		t.Errorf("%d are pending since %v", count, since)
	}
	p.excludeFromLatency(shop("one"))
	if len(p.keys) > 0 {
		t.Errorf("the times are kept for a target that is away: %v", p.keys)
	}
}

// An event of a pending key allocates nothing, and no memory stays after the change is taken.
func TestEventsOfPendingKeysAllocateNothing(t *testing.T) {
	p, now, keys := newPendingChanges(), time.Now(), []types.NamespacedName{shop("one")}
	if allocated := testing.AllocsPerRun(100, func() {
		p.add(now, originMailbox, keys...)
		p.add(now, originTarget, keys...)
		taken, _ := p.take(keys[0])
		p.keepTimes(keys[0], taken)
		p.take(keys[0])
	}); allocated > 0 {
		t.Errorf("%v allocations", allocated)
	}
}
