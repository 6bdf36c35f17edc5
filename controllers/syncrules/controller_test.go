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

package syncrules

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
)

// fakeWorkspaces are workspaces with a client each.
type fakeWorkspaces struct {
	clients map[logicalcluster.Name]*dynamicfake.FakeDynamicClient
	lists   int
	listErr error
}

func (f *fakeWorkspaces) Bound(schema.GroupResource) []logicalcluster.Name {
	return slices.Sorted(maps.Keys(f.clients))
}

func (f *fakeWorkspaces) Client(workspace logicalcluster.Name) (dynamic.Interface, bool) {
	return f.clients[workspace], true
}

func (f *fakeWorkspaces) ListUncached(ctx context.Context, resource schema.GroupVersionResource, visit func(logicalcluster.Name, *unstructured.Unstructured)) error {
	f.lists++
	for workspace, client := range f.clients {
		list, err := client.Resource(resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			visit(workspace, &list.Items[i])
		}
	}
	return f.listErr
}

func newWorkspace() *dynamicfake.FakeDynamicClient {
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{resource: "SyncRulesList"})
}

// harness runs the controller.
type harness struct {
	*testing.T
	*Controller
	mailboxes *fakeWorkspaces
	clock     *testclock.FakeClock
}

func newHarness(t *testing.T, published ...synchubv1alpha1.PublishedResource) *harness {
	t.Helper()
	h := &harness{T: t, mailboxes: &fakeWorkspaces{clients: map[logicalcluster.Name]*dynamicfake.FakeDynamicClient{"one": newWorkspace(), "two": newWorkspace()}}, clock: testclock.NewFakeClock(time.Unix(1_800_000_000, 0))}
	h.restart(published...)
	return h
}

// restart makes a new controller with these PublishedResources.
func (h *harness) restart(published ...synchubv1alpha1.PublishedResource) {
	h.Helper()
	h.Controller = New(Options{Hub: publishedresource.Hub{UID: "hub"}, ProtectedNamespaces: []string{"kube-*"}, Workspaces: []Workspaces{h.mailboxes}, Clock: sleepless{h.clock}})
	h.publish(published...)
}

func (h *harness) publish(published ...synchubv1alpha1.PublishedResource) {
	h.Helper()
	scheme := runtime.NewScheme()
	if err := synchubv1alpha1.AddToScheme(scheme); err != nil {
		h.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	for i := range published {
		builder.WithObjects(published[i].DeepCopy())
	}
	h.Hosting = builder.Build()
}

// sleepless is a clock that does not sleep.
type sleepless struct{ *testclock.FakeClock }

func (sleepless) Sleep(time.Duration) {}

// requests reconciles, and returns the requests as "workspace verb".
func (h *harness) requests() (requests []string) {
	h.Helper()
	if _, err := h.Reconcile(h.Context(), request); err != nil {
		h.Error(err)
	}
	for _, workspace := range h.mailboxes.Bound(resource.GroupResource()) {
		client := h.mailboxes.clients[workspace]
		for _, action := range client.Actions() {
			if action.GetVerb() != "list" {
				requests = append(requests, fmt.Sprint(workspace, " ", action.GetVerb()))
			}
		}
		client.ClearActions()
	}
	return requests
}

func (h *harness) expect(when string, want ...string) {
	h.Helper()
	if got := h.requests(); !slices.Equal(got, want) {
		h.Errorf("%s: got %q, want %q", when, got, want)
	}
}

func (h *harness) rules(workspace logicalcluster.Name) edgev2alpha1.SyncRulesStatus {
	h.Helper()
	object, err := h.mailboxes.clients[workspace].Resource(resource).Get(h.Context(), edgev2alpha1.SyncRulesName, metav1.GetOptions{})
	if err != nil {
		h.Fatal(err)
	}
	h.mailboxes.clients[workspace].ClearActions()
	var rules edgev2alpha1.SyncRules
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &rules); err != nil {
		h.Fatal(err)
	}
	return rules.Status
}

func named(name string) synchubv1alpha1.PublishedResource {
	one := synchubv1alpha1.PublishedResource{}
	one.Name = name
	one.Spec.Resource.Resource = name
	return one
}

// A change is one write for each workspace. At rest, and after a restart, there is none.
func TestRulesAreWrittenOncePerChange(t *testing.T) {
	h := newHarness(t, named("widgets"))
	h.expect("at first", "one get", "one create", "one patch", "two get", "two create", "two patch")
	if got := h.rules("two"); got.Hub != "hub" || len(got.PublishedResources) != 1 || got.PublishedResources[0].Name != "widgets" {
		t.Errorf("got %+v", got)
	}
	h.expect("at rest")
	h.restart(named("widgets"))
	h.expect("after a restart")
	h.publish(named("widgets"), named("gadgets"))
	h.expect("a change", "one patch", "two patch")
	h.mailboxes.clients["three"] = newWorkspace()
	h.expect("a new workspace", "three get", "three create", "three patch")
	delete(h.mailboxes.clients, "three")
	h.expect("a workspace less")
	if len(h.published[0].hashes) != 2 {
		t.Errorf("got the recorded hashes %v", h.published[0].hashes)
	}
}

// The next comparison undoes a change by a user of a workspace.
func TestRulesAreRepaired(t *testing.T) {
	h := newHarness(t, named("widgets"))
	h.requests()
	one, two := h.mailboxes.clients["one"].Resource(resource), h.mailboxes.clients["two"].Resource(resource)
	if err := one.Delete(t.Context(), edgev2alpha1.SyncRulesName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	forged, err := two.Get(t.Context(), edgev2alpha1.SyncRulesName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_ = unstructured.SetNestedField(forged.Object, "another", "status", "hub")
	if _, err := two.Update(t.Context(), forged, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, client := range h.mailboxes.clients {
		client.ClearActions()
	}
	h.expect("before the comparison")
	h.clock.Step(compareInterval)
	h.expect("after it", "one get", "one create", "one patch", "two patch")
	if got := h.rules("two"); got.Hub != "hub" {
		t.Errorf("got %+v", got)
	}
}

// A workspace that refuses the rules does not block other workspaces. A failed list is no evidence of a change.
func TestRulesOfOtherWorkspacesAreWritten(t *testing.T) {
	h := newHarness(t, named("widgets"))
	h.mailboxes.clients["one"].PrependReactor("create", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("no")
	})
	h.mailboxes.listErr = errors.New("the list failed")
	_, err := h.Reconcile(t.Context(), request)
	if err == nil || !strings.Contains(err.Error(), "the workspace one: no") || !strings.Contains(err.Error(), "the list failed") {
		t.Errorf("got %v", err)
	}
	if got := h.rules("two"); got.Hub != "hub" {
		t.Errorf("got %+v", got)
	}
}

// Later passes write the remaining workspaces, with the then current rules.
func TestPassesAreBounded(t *testing.T) {
	h := newHarness(t, named("widgets"))
	for _, client := range h.mailboxes.clients {
		client.PrependReactor("create", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			h.clock.Step(passDuration + time.Second)
			return false, nil, nil
		})
	}
	result, err := h.Reconcile(t.Context(), request)
	if err != nil || result.RequeueAfter != time.Millisecond || len(h.published[0].hashes) != 1 {
		t.Errorf("got %+v, %v, %v", result, err, h.published[0].hashes)
	}
	if result, err = h.Reconcile(t.Context(), request); err != nil || result.RequeueAfter != pollInterval || len(h.published[0].hashes) != 2 {
		t.Errorf("got %+v, %v, %v", result, err, h.published[0].hashes)
	}
}
