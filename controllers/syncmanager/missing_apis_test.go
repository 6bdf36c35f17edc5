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

package syncmanager

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testclock "k8s.io/utils/clock/testing"

	"github.com/synchub-dev/synchub/controllers/syncmanager/namelock"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// fakeNameReleaser returns given results and records the calls. The end-to-end tests in test/e2e cover the real releaser on kcp.
type fakeNameReleaser struct {
	finding namelock.Result
	err     error
	asked   []string
}

func (n *fakeNameReleaser) Release(context.Context, logicalcluster.Name, []schema.GroupResource) (namelock.Result, error) {
	n.asked = append(n.asked, "clear")
	return n.finding, n.err
}

func (n *fakeNameReleaser) RetryBinding(context.Context, logicalcluster.Name, string, time.Time) error {
	n.asked = append(n.asked, "bind again")
	return nil
}

var taken = []schema.GroupResource{{Group: "acme.io", Resource: "gizmos"}}

// clearsAsExpected returns the calls in each interval, if the call of that interval returns the finding at the same index.
func clearsAsExpected(t *testing.T, findings ...namelock.Result) (asked []string) {
	t.Helper()
	manager, _ := newManager(t)
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	manager.Clock = clock
	held := &targetState{}
	for _, finding := range findings {
		names := &fakeNameReleaser{finding: finding}
		manager.NameReleaser = names
		if again := manager.newPass(held).releaseNames(t.Context(), taken, &mailboxes.NamingConflict{}); again != clearNamesInterval {
			t.Errorf("rechecks after %s", again)
		}
		asked = append(asked, strings.Join(names.asked, ", "))
		clock.Step(clearNamesInterval)
	}
	return asked
}

func TestClearNames(t *testing.T) {
	inTheWay, freed, free := namelock.Result{BlockingCRDs: []string{"gizmos.acme.io"}}, namelock.Result{Freed: true}, namelock.Result{}
	const checks, binds = "clear", "clear, bind again"
	for name, test := range map[string]struct {
		findings []namelock.Result
		want     []string
	}{
		"in the way":                 {[]namelock.Result{inTheWay, inTheWay, inTheWay}, []string{checks, checks, checks}},
		"gone":                       {[]namelock.Result{inTheWay, free}, []string{checks, binds}},
		"gone, and freed":            {[]namelock.Result{inTheWay, freed}, []string{checks, checks}},
		"something else, ever rarer": {[]namelock.Result{free, free, free, free, free, free}, []string{checks, binds, binds, checks, binds, checks}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := clearsAsExpected(t, test.findings...); !slices.Equal(got, test.want) {
				t.Errorf("want %q, got %q", test.want, got)
			}
		})
	}
}

func TestClearNamesWaitsForItsInterval(t *testing.T) {
	manager, _ := newManager(t)
	names := &fakeNameReleaser{}
	manager.NameReleaser = names
	held := &targetState{}
	for range 5 {
		manager.newPass(held).releaseNames(t.Context(), taken, &mailboxes.NamingConflict{})
	}
	if len(names.asked) != 1 {
		t.Errorf("requests to kcp: %q", names.asked)
	}
}

func TestReleaseNamesWithoutReleaser(t *testing.T) {
	manager, _ := newManager(t)
	if again := manager.newPass(&targetState{}).releaseNames(t.Context(), taken, &mailboxes.NamingConflict{}); again != 0 {
		t.Errorf("want no requeue, which could replace the next version poll, got %s", again)
	}
}

func TestMissingAPIsMessage(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "logicalclusters"}, "cluster", errors.New("no")).Error()
	for name, test := range map[string]struct {
		state nameClearing
		want  []string
	}{
		"a definition is in the way": {nameClearing{finding: namelock.Result{BlockingCRDs: []string{"gizmos.acme.io"}}}, []string{"Delete the CustomResourceDefinition gizmos.acme.io"}},
		"something else":             {nameClearing{}, []string{"kcp reports: a conflict. Delete"}},
		"the hub may not":            {nameClearing{forbidden: forbidden}, []string{"may not free", namelock.Annotation, "LogicalCluster"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := missingAPIsMessage(taken, "a conflict.", test.state)
			for _, want := range append(test.want, "The mailbox does not have gizmos.acme.io:") {
				if !strings.Contains(got, want) {
					t.Errorf("%q is not in %q", want, got)
				}
			}
		})
	}
	many := make([]schema.GroupResource, 100)
	if got := missingAPIsMessage(many, "", nameClearing{}); !strings.Contains(got, "80 more:") {
		t.Errorf("of many: %s", got)
	}
}

func TestStoppableContext(t *testing.T) {
	held := &targetState{}
	before, cancel := held.stoppableContext(t.Context())
	defer cancel()
	if before.Err() != nil {
		t.Error("the sync ends without a stop")
	}
	held.reconcileMutex.Lock()
	stopped := make(chan struct{})
	go func() { defer close(stopped); held.stop() }()
	// stop cancels the requests of the owner of reconcileMutex before it waits for the mutex.
	<-before.Done()
	held.reconcileMutex.Unlock()
	<-stopped
	if after, cancel := held.stoppableContext(t.Context()); after.Err() == nil {
		t.Error("it does not end although all is stopped")
	} else {
		cancel()
	}
}
