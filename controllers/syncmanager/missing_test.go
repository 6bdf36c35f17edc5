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

	"github.com/synchub-dev/synchub/controllers/namelock"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// names says what stands in the way, and notes what is asked of it. What it stands for is tried on a real kcp in test/e2e.
type names struct {
	finding namelock.Finding
	err     error
	asked   []string
}

func (n *names) Clear(context.Context, logicalcluster.Name, []schema.GroupResource) (namelock.Finding, error) {
	n.asked = append(n.asked, "clear")
	return n.finding, n.err
}

func (n *names) BindAgain(context.Context, logicalcluster.Name, string, time.Time) error {
	n.asked = append(n.asked, "bind again")
	return nil
}

var taken = []schema.GroupResource{{Group: "acme.io", Resource: "gizmos"}}

// clears returns what is asked in each interval of so many, if the finding is that of the same place.
func clears(t *testing.T, findings ...namelock.Finding) (asked []string) {
	t.Helper()
	manager, _ := newManager(t)
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	manager.Clock = clock
	held := &managed{}
	for _, finding := range findings {
		names := &names{finding: finding}
		manager.Names = names
		if again := manager.clear(t.Context(), held, taken, &mailboxes.NamingConflict{}); again != clearInterval {
			t.Errorf("looks again after %s", again)
		}
		asked = append(asked, strings.Join(names.asked, ", "))
		clock.Step(clearInterval)
	}
	return asked
}

func TestClear(t *testing.T) {
	inTheWay, freed, free := namelock.Finding{Definitions: []string{"gizmos.acme.io"}}, namelock.Finding{Freed: true}, namelock.Finding{}
	const looks, binds = "clear", "clear, bind again"
	for name, test := range map[string]struct {
		findings []namelock.Finding
		want     []string
	}{
		"in the way":                 {[]namelock.Finding{inTheWay, inTheWay, inTheWay}, []string{looks, looks, looks}},
		"gone":                       {[]namelock.Finding{inTheWay, free}, []string{looks, binds}},
		"gone, and freed":            {[]namelock.Finding{inTheWay, freed}, []string{looks, looks}},
		"something else, ever rarer": {[]namelock.Finding{free, free, free, free, free, free}, []string{looks, binds, binds, looks, binds, looks}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := clears(t, test.findings...); !slices.Equal(got, test.want) {
				t.Errorf("want %q, got %q", test.want, got)
			}
		})
	}
}

func TestClearWaitsForItsTime(t *testing.T) {
	manager, _ := newManager(t)
	names := &names{}
	manager.Names = names
	held := &managed{}
	for range 5 {
		manager.clear(t.Context(), held, taken, &mailboxes.NamingConflict{})
	}
	if len(names.asked) != 1 {
		t.Errorf("kcp was asked: %q", names.asked)
	}
}

func TestDescribeMissing(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "logicalclusters"}, "cluster", errors.New("no")).Error()
	for name, test := range map[string]struct {
		state clearing
		want  []string
	}{
		"a definition is in the way": {clearing{finding: namelock.Finding{Definitions: []string{"gizmos.acme.io"}}}, []string{"Delete the CustomResourceDefinition gizmos.acme.io"}},
		"something else":             {clearing{}, []string{"kcp says: a conflict. Delete"}},
		"the hub may not":            {clearing{forbidden: forbidden}, []string{"may not free", namelock.Annotation, "LogicalCluster"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := describeMissing(taken, "a conflict.", test.state)
			for _, want := range append(test.want, "The mailbox does not have gizmos.acme.io:") {
				if !strings.Contains(got, want) {
					t.Errorf("%q is not in %q", want, got)
				}
			}
		})
	}
	many := make([]schema.GroupResource, 100)
	if got := describeMissing(many, "", clearing{}); !strings.Contains(got, "80 more:") {
		t.Errorf("of many: %s", got)
	}
}

func TestUntilStopped(t *testing.T) {
	held := &managed{}
	before, cancel := held.untilStopped(t.Context())
	defer cancel()
	if before.Err() != nil {
		t.Error("it ends although nothing is stopped")
	}
	held.turn.Lock()
	stopped := make(chan struct{})
	go func() { defer close(stopped); held.stop() }()
	// Who holds turn is not waited for without being told.
	<-before.Done()
	held.turn.Unlock()
	<-stopped
	if after, cancel := held.untilStopped(t.Context()); after.Err() == nil {
		t.Error("it does not end although all is stopped")
	} else {
		cancel()
	}
}
