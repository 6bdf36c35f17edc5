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

package mailbox

import (
	"context"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	tenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/ledger"
)

// kcp names logical clusters by 16 characters in base 36, except root.
func TestNameRoundTrip(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6)) //nolint:gosec // repeatable names
	inventories := []logicalcluster.Name{"root"}
	for range 1000 {
		name := make([]byte, 16)
		for i := range name {
			name[i] = "0123456789abcdefghijklmnopqrstuvwxyz"[random.IntN(36)]
		}
		inventories = append(inventories, logicalcluster.Name(name))
	}
	seen := map[string]bool{}
	for _, inventory := range inventories {
		uid := uuid.NewUUID()
		name := Name(inventory, uid)
		if seen[name] {
			t.Errorf("two mailboxes are called %s", name)
		}
		seen[name] = true
		gotInventory, gotUID, ok := ParseName(name)
		if !ok || gotInventory != inventory || gotUID != uid {
			t.Errorf("%s: got %s, %s, %v", name, gotInventory, gotUID, ok)
		}
		if problems := validation.NameIsDNSLabel(name, false); len(problems) > 0 {
			t.Errorf("%s is not a valid name of a workspace: %v", name, problems)
		}
	}
}

func TestParseName(t *testing.T) {
	for name, want := range map[string]struct {
		inventory  logicalcluster.Name
		syncTarget types.UID
		ok         bool
	}{
		"abc-mb-def":        {"abc", "def", true},
		"a-mb-0-1-2":        {"a", "0-1-2", true},
		"":                  {},
		"abc":               {},
		"-mb-":              {},
		"abc-mb-":           {},
		"-mb-def":           {},
		"abc-mbdef":         {},
		"a-mb-b-mb-c":       {},
		"abc-MB-def":        {},
		"mb-def":            {},
		"a-mb--mb-b":        {},
		"something-else-mb": {},
	} {
		inventory, syncTarget, ok := ParseName(name)
		if inventory != want.inventory || syncTarget != want.syncTarget || ok != want.ok {
			t.Errorf("%q: want %+v, got %q, %q, %v", name, want, inventory, syncTarget, ok)
		}
	}
}

func FuzzParseName(f *testing.F) {
	f.Add("abc-mb-def")
	f.Add("-mb--mb-")
	f.Fuzz(func(t *testing.T, name string) {
		inventory, syncTarget, ok := ParseName(name)
		if ok != (inventory != "" && syncTarget != "") {
			t.Errorf("%q: %q, %q, %v", name, inventory, syncTarget, ok)
		}
		if ok && Name(inventory, syncTarget) != name {
			t.Errorf("%q is formatted as %q", name, Name(inventory, syncTarget))
		}
	})
}

func TestRequestsForWorkspace(t *testing.T) {
	request := mcreconcile.Request{ClusterName: "abc"}
	request.Name = "florin"
	for name, test := range map[string]struct {
		workspace   string
		annotations map[string]string
		want        []mcreconcile.Request
	}{
		"a mailbox":          {"abc-mb-def", map[string]string{edgev2alpha1.AnnotationSyncTargetName: "florin"}, []mcreconcile.Request{request}},
		"without annotation": {"abc-mb-def", nil, nil},
		"with an empty one":  {"abc-mb-def", map[string]string{edgev2alpha1.AnnotationSyncTargetName: ""}, nil},
		"another workspace":  {"abc", map[string]string{edgev2alpha1.AnnotationSyncTargetName: "florin"}, nil},
		"another with a mailbox's name in its own": {"abc-mb-def-mb-ghi", map[string]string{edgev2alpha1.AnnotationSyncTargetName: "florin"}, nil},
	} {
		workspace := &tenancyv1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{Name: test.workspace, Annotations: test.annotations}}
		if got := RequestsForWorkspace(t.Context(), workspace); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: want %v, got %v", name, test.want, got)
		}
	}
}

// The controller recognizes a workspace that it created as a mailbox, and no other workspace.
func TestDesiredWorkspaceIsAMailbox(t *testing.T) {
	const byHub, byOther = `{"username":"hub"}`, `{"username":"mallory","groups":["system:authenticated"]}`
	memory := ledger.New(ledger.Options{})
	requests := 0
	self := authenticationv1.UserInfo{Username: "former"}
	controller := &Controller{Options: Options{Locator: Locator{Workspace: "root:synchub", OwnerChecker: &OwnerChecker{Ledger: memory, WhoAmI: func(context.Context) (authenticationv1.UserInfo, error) {
		requests++
		return self, nil
	}}}}}
	syncTarget := &edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: "florin", UID: "def"}}
	whyForeign := func(workspace *tenancyv1alpha1.Workspace) string {
		why, err := controller.foreignReason(t.Context(), workspace, syncTarget)
		if err != nil {
			t.Fatal(err)
		}
		return why
	}
	workspace := controller.desiredWorkspace("abc-mb-def", "florin")
	if workspace.Name != "abc-mb-def" || workspace.Spec.Type.Path != "root:synchub" {
		t.Errorf("got %+v", workspace)
	}
	if requests := RequestsForWorkspace(t.Context(), &workspace); len(requests) != 1 || requests[0].Name != "florin" || requests[0].ClusterName != "abc" {
		t.Errorf("got the requests %v", requests)
	}
	workspace.Annotations[tenancyv1alpha1.ExperimentalWorkspaceOwnerAnnotationKey] = byHub
	if why := whyForeign(&workspace); !strings.Contains(why, `"hub"`) || !strings.Contains(why, `"former"`) {
		t.Errorf("the hub is another user: %q", why)
	}
	self.Username = "hub"
	if why := whyForeign(&workspace); why != "" {
		t.Errorf("with new credentials of the hub: %q", why)
	}
	before := requests
	if whyForeign(&workspace); requests != before {
		t.Error("WhoAmI is called each time")
	}
	for name, change := range map[string]func(*tenancyv1alpha1.Workspace){
		"without type":       func(w *tenancyv1alpha1.Workspace) { w.Spec.Type = nil },
		"of another type":    func(w *tenancyv1alpha1.Workspace) { w.Spec.Type.Name = "universal" },
		"of another's type":  func(w *tenancyv1alpha1.Workspace) { w.Spec.Type.Path = "root" },
		"without annotation": func(w *tenancyv1alpha1.Workspace) { w.Annotations = nil },
		"annotated for another": func(w *tenancyv1alpha1.Workspace) {
			w.Annotations[edgev2alpha1.AnnotationSyncTargetName] = "guilder"
		},
		"made by another user": func(w *tenancyv1alpha1.Workspace) {
			w.Annotations[tenancyv1alpha1.ExperimentalWorkspaceOwnerAnnotationKey] = byOther
		},
		"made by an unknown user": func(w *tenancyv1alpha1.Workspace) {
			delete(w.Annotations, tenancyv1alpha1.ExperimentalWorkspaceOwnerAnnotationKey)
		},
		"with nonsense for its maker": func(w *tenancyv1alpha1.Workspace) {
			w.Annotations[tenancyv1alpha1.ExperimentalWorkspaceOwnerAnnotationKey] = "hub"
		},
	} {
		other := workspace.DeepCopy()
		change(other)
		if whyForeign(other) == "" {
			t.Errorf("%s it still counts as a mailbox", name)
		}
	}
	// kcp does not record the owner of a workspace that a member of system:masters creates.
	self = authenticationv1.UserInfo{Username: "admin", Groups: []string{"system:masters"}}
	delete(workspace.Annotations, tenancyv1alpha1.ExperimentalWorkspaceOwnerAnnotationKey)
	if why := whyForeign(&workspace); why != "" {
		t.Errorf("of a hub with all rights: %q", why)
	}
}
