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

package ledger

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	testclock "k8s.io/utils/clock/testing"
)

// Of two hubs in different hosting clusters, only one may use a provider workspace. Replicas of one hub share a Lease.
func TestOnlyOneHubWorks(t *testing.T) {
	s, clock := newFakeStore(), testclock.NewFakeClock(noon)
	hub := func(lease string) *Store {
		// The test names a hub by its Lease, with the namespace after a slash.
		lease, namespace, _ := strings.Cut(lease, "/")
		return New(Options{ConfigMaps: s, Clock: clock, Log: logr.Discard(), Identity: func(context.Context) (HubIdentity, error) { return HubIdentity{lease, namespace}, nil }})
	}
	begin := func(l *Store) error {
		if err := l.load(t.Context()); err != nil {
			return err
		}
		return l.renewLeader(t.Context())
	}
	first, atOnce := hub("one/here"), hub("other/there")
	if err := errors.Join(first.load(t.Context()), atOnce.load(t.Context()), first.renewLeader(t.Context())); err != nil {
		t.Fatal(err)
	}
	if err := atOnce.renewLeader(t.Context()); !errors.Is(err, ErrOtherHubActive) {
		t.Errorf("one that began at once: %v", err)
	}
	for name, test := range map[string]struct {
		lease   string
		refused bool
	}{
		"another": {"other/there", true}, "another that may not read its namespace": {"other", true}, "a replica": {"one/here", false},
		"a replica of a former version": {"one", false}, "a replica after the Lease was deleted": {"later/here", false}, "one without a Lease": {"", false},
	} {
		if err := begin(hub(test.lease)); errors.Is(err, ErrOtherHubActive) != test.refused || err != nil && !test.refused {
			t.Errorf("%s: %v", name, err)
		}
		if err := first.renewLeader(t.Context()); err != nil {
			t.Errorf("after %s the first does not continue: %v", name, err)
		}
	}
	s.remove(t, leaderConfigMap)
	if err := first.renewLeader(t.Context()); err != nil {
		t.Errorf("after it was deleted: %v", err)
	}
	clock.Step(3 * time.Minute)
	if err := begin(hub("one/here")); err != nil {
		t.Errorf("a replica after a long time: %v", err)
	}
	if err := first.renewLeader(t.Context()); err != nil {
		t.Errorf("two replicas of one Lease: %v", err)
	}
	clock.Step(3 * time.Minute)
	began := make(chan error)
	go func() { began <- begin(hub("other/there")) }()
	awaitWaiter(clock)
	clock.Step(otherHubTimeout)
	if err := <-began; err != nil {
		t.Errorf("after the first has ended: %v", err)
	}
	if err := first.renewLeader(t.Context()); !errors.Is(err, ErrOtherHubActive) {
		t.Errorf("the first hub returns: %v", err)
	}
}

// awaitWaiter waits until a goroutine waits for the clock.
func awaitWaiter(clock *testclock.FakeClock) {
	for !clock.HasWaiters() {
		runtime.Gosched()
	}
}

// Hubs detect each other by their writes, however much their clocks differ.
func TestOnlyOneHubWorksWithAnyClocks(t *testing.T) {
	for _, ahead := range []time.Duration{-24 * time.Hour, -10 * time.Minute, -3 * time.Minute, 0, 3 * time.Minute, 10 * time.Minute, 24 * time.Hour} {
		t.Run(ahead.String(), func(t *testing.T) {
			s := newFakeStore()
			hub := func(lease string, ahead time.Duration) (*Store, *testclock.FakeClock) {
				clock := testclock.NewFakeClock(noon.Add(ahead))
				return New(Options{ConfigMaps: s, Clock: clock, Log: logr.Discard(), Identity: func(context.Context) (HubIdentity, error) { return HubIdentity{Lease: lease}, nil }}), clock
			}
			first, _ := hub("one", 0)
			if err := errors.Join(first.load(t.Context()), first.renewLeader(t.Context())); err != nil {
				t.Fatal(err)
			}
			// load starts a hub with another Lease and returns its error. If the hub waits, load calls onWait during the
			// wait.
			load := func(onWait func()) (*Store, error) {
				other, clock := hub("other", ahead)
				loaded := make(chan error, 1)
				go func() { loaded <- other.load(t.Context()) }()
				if ahead.Abs() >= otherHubTimeout {
					awaitWaiter(clock)
					onWait()
					clock.Step(otherHubTimeout)
				}
				return other, <-loaded
			}
			lead := func() {
				if err := first.renewLeader(t.Context()); err != nil {
					t.Errorf("the first does not continue: %v", err)
				}
			}
			if _, err := load(lead); !errors.Is(err, ErrOtherHubActive) {
				t.Fatalf("beside one that writes: %v", err)
			}
			if ahead.Abs() < otherHubTimeout {
				return
			}
			other, err := load(func() {})
			if err != nil {
				t.Fatalf("after one that has ended: %v", err)
			}
			// The first hub is only slow: it writes between the read and the write of the other one, or after them.
			lead()
			if err := other.renewLeader(t.Context()); !errors.Is(err, ErrOtherHubActive) {
				t.Fatalf("the first was quicker: %v", err)
			}
			if other, err = load(func() {}); err != nil {
				t.Fatal(err)
			}
			if err := other.renewLeader(t.Context()); err != nil {
				t.Fatalf("the other was quicker: %v", err)
			}
			if err := first.renewLeader(t.Context()); !errors.Is(err, ErrOtherHubActive) {
				t.Fatalf("the first hub returns: %v", err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			third, clock := hub("third", 100*time.Hour)
			ended := make(chan error)
			go func() { ended <- third.load(ctx) }()
			awaitWaiter(clock)
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Fatalf("a hub that is stopped while it waits: %v", err)
			}
		})
	}
}
