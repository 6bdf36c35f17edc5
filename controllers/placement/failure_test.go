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

package placement

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr/funcr"
	"github.com/kcp-dev/logicalcluster/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/controllers/internal/queue"
	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

func TestReasons(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	for reason, err := range map[string]error{
		rules.ReasonPrivileged:    privilegedError(secrets),
		policy.ReasonNameReserved: &policy.DeniedError{Reason: policy.ReasonNameReserved, Message: "x"},
		rules.ReasonLimitExceeded: errWorkspaceLimit,
		plan.ReasonConflict:       errConflict,
		plan.ReasonContended:      fmt.Errorf("%w: [spec]", errContended),
		plan.ReasonTooLarge:       &transform.TooLargeError{},
		plan.ReasonInvalid:        apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "a", nil),
		plan.ReasonNotServed:      notServedError(secrets),
		plan.ReasonMailboxRefused: apierrors.NewForbidden(secrets, "a", errors.New("no")),
	} {
		if got := reasonOf(fmt.Errorf("cannot place it: %w", err)); got != reason {
			t.Errorf("%v: %s", err, got)
		}
		if failure := newFailure(err); failure.Reason != reason || failure.Message == "" || len(failure.Message) > 1024 {
			t.Errorf("%v: %+v", err, failure)
		}
	}
	terminating := apierrors.NewForbidden(secrets, "a", errors.New("terminating"))
	terminating.ErrStatus.Details.Causes = append(terminating.ErrStatus.Details.Causes, statusCause(corev1.NamespaceTerminatingCause))
	for err, want := range map[error]bool{terminating: true, apierrors.NewTooManyRequests("later", 1): true, errConflict: false} {
		if isTransient(err) != want {
			t.Errorf("%v: isTransient is %v", err, !want)
		}
	}
}

// journalOf returns a workspace with a journal, and a function that returns the lines since the last call.
func journalOf(t *testing.T) (*workspace, func() []string) {
	t.Helper()
	var lines []string
	record := status.NewJournal(funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{}), clock.RealClock{})
	w := newWorkspace(newTestShared(func(o *Options) {
		o.Journal, o.CachePolicy, o.Workloads = record, &CachePolicy{}, mailboxes.New(mailboxes.Options{Clock: clock.RealClock{}})
	}), "workload")
	return w, func() []string {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := record.Start(ctx); err != nil {
			t.Error(err)
		}
		defer func() { lines = nil }()
		return lines
	}
}

// A refusal that its user must mend is one line of the log for each change of its reason, however often the hub retries.
func TestFailuresAreLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, logged := journalOf(t)
		key := objectKey{configMapsResource, types.NamespacedName{Namespace: "shop", Name: "till"}}
		inMailbox := pairAt(key, "m")
		refused := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "till", errors.New("no"))
		invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "till", nil)
		upsynced := &reflectionSnapshot{key: inMailbox.copyKey(), name: key.name}
		w.pairs.objects[key] = &object{pairs: map[site]*pair{inMailbox.site: {desired: true}}}
		w.reflections.all[upsynced.key] = &reflected{name: key.name}

		for range 3 {
			for _, err := range []error{
				w.passes.fail(t.Context(), inMailbox, &pairSnapshot{}, refused),
				second(w.reflecting.fail(t.Context(), upsynced, refused)),
				w.statuses.end(t.Context(), key, refused),
			} {
				if _, isReported := errors.AsType[*queue.ReportedError](err); !isReported {
					t.Errorf("a refusal is retried with an error in the log: %v", err)
				}
			}
		}
		if err := w.passes.fail(t.Context(), inMailbox, &pairSnapshot{}, invalid); err != nil {
			t.Errorf("an object that nobody has changed is tried again: %v", err)
		}
		lines := logged()
		for _, want := range []string{
			status.JournalFailingPlacement + `","resource":"configmaps","reason":"MailboxRefused","count":1`,
			status.JournalFailingUpsync + `","resource":"configmaps","reason":"WorkspaceRefused","count":1`,
			status.JournalFailingStatus + `","resource":"configmaps","reason":"WorkspaceRefused","count":1`,
			status.JournalFailingPlacement + `","resource":"configmaps","reason":"Invalid","count":1`,
		} {
			if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, want) }) {
				t.Errorf("no line has %s: %s", want, lines)
			}
		}
		if len(lines) != 4 {
			t.Errorf("there are %d lines: %s", len(lines), lines)
		}
	})
}

// A status that the workspace accepts ends the refusal: the next one is another failure, also if its reason is the same.
//
// No placement selects the object: the workspace refuses to let the hub remove the status.
func TestAcceptedStatusEndsTheRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, logged := journalOf(t)
		key := objectKey{configMapsResource, types.NamespacedName{Namespace: "shop", Name: "till"}}
		refused := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "till", errors.New("no"))
		gone := errors.New("the connection is gone")
		for _, step := range []struct {
			what  string
			err   error
			fails bool
			lines int
		}{
			{"a refusal", refused, true, 1},
			{"the same one", refused, true, 0},
			{"no answer", gone, true, 0},
			{"the same one after no answer", refused, true, 0},
			{"the workspace accepts the status", nil, false, 0},
			{"a refusal after that", refused, true, 1},
		} {
			if err := w.statuses.end(t.Context(), key, step.err); (err != nil) != step.fails {
				t.Errorf("%s: the pass ended with %v", step.what, err)
			}
			if _, isRefused := w.pairs.statusErrors[key]; isRefused != step.fails {
				t.Errorf("%s: refused is %v", step.what, isRefused)
			}
			if lines := logged(); len(lines) != step.lines {
				t.Errorf("%s: want %d lines, got %v", step.what, step.lines, lines)
			}
		}
		for what, forget := range map[string]func(){
			"a pass without the object": func() { _, _ = w.statuses.reconcile(t.Context(), key) },
			"the last copy is gone":     func() { w.pairs.dropObjectIfUnused(key, &object{}) },
		} {
			w.statuses.setError(key, "refused")
			if forget(); len(w.pairs.statusErrors) > 0 {
				t.Errorf("%s: the refusal is kept", what)
			}
		}
	})
}

func second[A, B any](_ A, b B) B { return b }

func statusCause(cause metav1.CauseType) metav1.StatusCause { return metav1.StatusCause{Type: cause} }

func TestFreedNamesEnqueueWaitingPairs(t *testing.T) {
	names := newTestShared(func(*Options) {}).names
	key := objectKey{resource: configMapsResource}
	name := pairAt(key, "m")
	asked := map[logicalcluster.Name]int{}
	wake := func() {
		names.wake(name.copyKey(), func(workspace logicalcluster.Name) *workspace { asked[workspace]++; return nil })
	}
	wake()
	names.set(name, "a", true)
	names.set(name, "a", true)
	names.set(name, "b", true)
	wake()
	names.set(name, "a", false)
	names.set(name, "c", false)
	wake()
	names.set(name, "b", false)
	wake()
	if asked["a"] != 1 || asked["b"] != 2 || asked["c"] != 0 || len(names.waiting) != 0 {
		t.Errorf("%v, %v", asked, names.waiting)
	}
}
