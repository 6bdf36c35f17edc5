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

package tenants

import (
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/tenancy"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/test/fixtures"
)

// placed returns a Namespace of the mailbox with the mark of a placement by the owner.
func placed(t *testing.T, name string, workspace logicalcluster.Name, owner ownership.Owner) *unstructured.Unstructured {
	t.Helper()
	object := fixtures.Object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+", labels: {synchub.dev/workspace: forged}}}")
	owner = owner.ForPlacements()
	object.SetAnnotations(map[string]string{ownership.MarkAnnotation: owner.Seal(ownership.Mark{
		Version: ownership.MarkVersion, Hub: owner.Hub, SyncTarget: owner.SyncTarget, Mailbox: workspace.String(), Direction: ownership.DirectionUp, Self: transform.SelfOf(object),
	})})
	return object
}

// Only the sealed mark of a placement makes a namespace one of a workspace.
func TestMembers(t *testing.T) {
	forger := testOwner
	forger.Sealer = ownership.NewSealer([]byte("another"))
	m := &members{owner: testOwner, workspaces: map[string]logicalcluster.Name{}, prepared: map[string]logicalcluster.Name{}}
	m.replace([]*unstructured.Unstructured{
		placed(t, "shop-1", "one", testOwner), placed(t, "shop-2", "two", forger), fixtures.Object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: plain}}"),
	}, true)
	expect := func(when string, want map[string]logicalcluster.Name) {
		t.Helper()
		for namespace, workspace := range want {
			if got, known := m.get(namespace); got != workspace || !known {
				t.Errorf("%s: %s belongs to %q, want %q", when, namespace, got, workspace)
			}
		}
	}
	expect("at first", map[string]logicalcluster.Name{"shop-1": "one", "shop-2": "", "plain": ""})
	if before, now := m.update("shop-2", placed(t, "shop-2", "two", testOwner)); before != "" || now != "two" {
		t.Errorf("the change is from %q to %q", before, now)
	}
	if before, now := m.update("shop-1", nil); before != "one" || now != "" {
		t.Errorf("the change is from %q to %q", before, now)
	}
	expect("after changes", map[string]logicalcluster.Name{"shop-1": "", "shop-2": "two"})

	// A workspace is needed as long as the hub has prepared a namespace for it, also without a Namespace in the mailbox.
	m.setPrepared("shop-3", "three")
	for workspace, want := range map[logicalcluster.Name]bool{"one": false, "two": true, "three": true} {
		if got, known := m.hasWorkspace(tenancy.WorkspaceHash(workspace)); got != want || !known {
			t.Errorf("%s is needed: %v", workspace, got)
		}
	}
	if workspace := m.forgetPrepared("shop-3"); workspace != "three" {
		t.Errorf("the namespace was prepared for %q", workspace)
	}
	m.replace(nil, false)
	if got, known := m.hasWorkspace(tenancy.WorkspaceHash("two")); !got || known {
		t.Errorf("while the mailbox cannot be read: %v, %v", got, known)
	}
}
