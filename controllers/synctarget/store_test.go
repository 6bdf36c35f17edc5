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

package synctarget

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/synchub-dev/synchub/provider/ledger"
)

// The state of a deleted SyncTarget is dropped, in any order of the events.
func TestMemoryOfSyncTargetsThatAreGone(t *testing.T) {
	g := NewWithT(t)
	controller := New(Options{
		Registry: startRegistry(t), Sync: newSyncManager(), Ledger: ledger.New(ledger.Options{}), Clock: testclock.NewFakeClock(time.Unix(1000, 0)),
	})
	request := mcreconcile.Request{ClusterName: "i", Request: reconcile.Request{NamespacedName: types.NamespacedName{Name: "florin"}}}
	controller.ConnectForSchemas("a")
	g.Expect(controller.store.get("a").isSchemaSource).To(BeTrue())
	g.Expect(controller.store.get("a").state).To(BeNil(), "it is not tracked")
	controller.track(request, "a")
	g.Expect(controller.store.get("a").isSchemaSource).To(BeTrue())
	controller.store.setIdentity(clusterIdentity{uid: "a", cluster: "c"})
	controller.store.update("a", func(found *entry) { found.isCleanedUp = true })
	g.Expect(controller.IsCleanedUp("a")).To(BeTrue())

	controller.track(request, "b")
	g.Expect(controller.store.entries).To(And(HaveLen(1), HaveKey(types.UID("b"))), "another SyncTarget has its name")
	g.Expect(controller.IsCleanedUp("a")).To(BeFalse())
	controller.untrack(request)
	controller.untrack(request)
	controller.ConnectForSchemas("c")
	controller.Stop("c")
	controller.Stop("d")
	g.Expect(controller.store.entries).To(BeEmpty())
	g.Expect(controller.store.uids).To(BeEmpty())
	g.Expect(controller.store.identities.bySyncTarget).To(BeEmpty())
}
