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
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

// A target is quarantined for names and versions that are longer than any that an API server stores. Each later request would repeat them.
func TestLongNamesAndVersions(t *testing.T) {
	named := func(namespace, name string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	for name, test := range map[string]struct {
		check  func(*informer) error
		isLong bool
	}{
		"a name":                  {func(i *informer) error { return i.checkName(named("", strings.Repeat("x", maxName))) }, false},
		"a longer name":           {func(i *informer) error { return i.checkName(named("", strings.Repeat("x", maxName+1))) }, true},
		"a longer namespace":      {func(i *informer) error { return i.checkName(named(strings.Repeat("x", maxName+1), "x")) }, true},
		"no object":               {func(i *informer) error { return i.checkName("x") }, false},
		"a version":               {func(i *informer) error { return i.checkVersions(strings.Repeat("1", maxVersionLength), "") }, false},
		"a longer version":        {func(i *informer) error { return i.checkVersions("1", strings.Repeat("1", maxVersionLength+1)) }, true},
		"a long one in an event":  {func(i *informer) error { i.UpdateResourceVersion(strings.Repeat("1", maxVersionLength+1)); return nil }, true},
		"a short one in an event": {func(i *informer) error { i.UpdateResourceVersion("1"); return nil }, false},
	} {
		size, now := limitedCacheSize(CacheLimits{}, 0)
		err := test.check(&informer{requestGate: &requestGate{watches: &Watches{quarantine: size.quarantine}}})
		if _, left := size.quarantine.remaining(now.Now()); (left > 0) != test.isLong || err != nil && !test.isLong {
			t.Errorf("%s: quarantined for %s, %v", name, left, err)
		}
	}
}

// A burst may start at once, and then one action per interval. After the clock was set back, no action waits for long.
func TestPacerReserves(t *testing.T) {
	g := NewWithT(t)
	var p pacer
	now := time.Unix(1_000_000, 0)
	reserve := func() time.Duration { return p.reserve(now, 3*time.Second, time.Second) }
	for range 3 {
		g.Expect(reserve()).To(BeNumerically("<=", 0))
	}
	g.Expect(reserve()).To(Equal(time.Second))
	g.Expect(reserve()).To(Equal(2 * time.Second))
	now = now.Add(10 * time.Second)
	for range 3 {
		g.Expect(reserve()).To(BeNumerically("<=", 0), "a quiet period restores the burst only")
	}
	g.Expect(reserve()).To(Equal(time.Second))
	now = now.Add(-24 * time.Hour)
	g.Expect(reserve()).To(BeNumerically("<=", 0), "the clock was set back")
}

func TestPacerWaits(t *testing.T) {
	g := NewWithT(t)
	clock := clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
	var p pacer
	env := &environment{clock: clock}
	g.Expect(p.wait(t.Context(), env, 1, time.Second)).To(Succeed())
	waited := make(chan error, 1)
	go func() { waited <- p.wait(t.Context(), env, 1, time.Second) }()
	g.Eventually(clock.HasWaiters).WithTimeout(time.Minute).Should(BeTrue())
	g.Expect(waited).NotTo(Receive())
	clock.Step(time.Second)
	g.Eventually(waited).WithTimeout(time.Minute).Should(Receive(BeNil()))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.wait(ended, env, 1, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
