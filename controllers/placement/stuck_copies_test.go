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
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan"
)

// failingCopies are the sync statuses of copies that have failed, by the name of the object.
type failingCopies map[string]string

func (f failingCopies) StuckCopies() []objectsync.ObjectRef { return nil }

func (f failingCopies) SyncStatus(_ types.UID, _ schema.GroupResource, key types.NamespacedName, _ objectsync.CopyVersion) (objectsync.SyncStatus, bool) {
	reason, known := f[key.Name]
	return objectsync.SyncStatus{Failure: &objectsync.Failure{Reason: reason, Message: "no"}}, known
}

// A workspace has a copy until the cluster lets the hub remove its object, and no copy of another workspace.
func TestStuckCopies(t *testing.T) {
	t.Parallel()
	states := failingCopies{"one": plan.ReasonCannotWithdraw, "two": plan.ReasonCannotWithdraw, "placed again": plan.ReasonForbidden}
	stuck := &stuckCopies{sync: states, of: map[logicalcluster.Name]map[objectsync.ObjectRef]failure{}}
	ref := func(workspace logicalcluster.Name, syncTarget types.UID, name string) objectsync.ObjectRef {
		return objectsync.ObjectRef{SyncTarget: syncTarget, Workspace: workspace, Key: types.NamespacedName{Name: name}}
	}
	for _, name := range []string{"one", "two", "placed again"} {
		stuck.update(ref("team", "florin", name))
	}
	stuck.update(ref("other", "florin", "one"))
	stuck.update(ref("team", "guilder", "one"))
	expect := func(what string, workspace logicalcluster.Name, count int) {
		t.Helper()
		if got := stuck.list(workspace); len(got) != count {
			t.Errorf("%s: %v", what, got)
		}
	}
	expect("two copies at florin, and one at guilder", "team", 3)
	if why := stuck.list("team")[ref("team", "florin", "two")]; why != (failure{plan.ReasonCannotWithdraw, "no"}) {
		t.Errorf("the failure is %+v", why)
	}
	delete(states, "two")
	stuck.update(ref("team", "florin", "two"))
	expect("one is removed", "team", 2)
	stuck.forget("team", "guilder")
	expect("a SyncTarget is gone", "team", 1)
	expect("another workspace", "other", 1)
}
