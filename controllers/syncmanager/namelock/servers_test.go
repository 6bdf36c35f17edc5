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

package namelock_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	tenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/syncmanager/namelock"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/connections"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/suite"
	"github.com/synchub-dev/synchub/test/tier"
)

const (
	providerPath = "root:synchub"
	mailboxPath  = providerPath + ":mailbox"
	group        = "acme.io"
)

var (
	exports         = schema.GroupVersionResource{Group: "apis.kcp.io", Version: "v1alpha2", Resource: "apiexports"}
	bindings        = schema.GroupVersionResource{Group: "apis.kcp.io", Version: "v1alpha2", Resource: "apibindings"}
	definitions     = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	logicalClusters = schema.GroupVersionResource{Group: "core.kcp.io", Version: "v1alpha1", Resource: "logicalclusters"}
)

// fixture is one kcp with a mailbox that the hub's user created.
type fixture struct {
	*servers.KCP
	releaser *namelock.Releaser
	mailbox  logicalcluster.Name
}

func TestMain(m *testing.M) { suite.Main(m) }

func TestClearOnKCP(t *testing.T) {
	tier.Thorough(t)
	w := newFixture(t)
	// The order matters, since a bound API stays bound.
	t.Run("a name that kcp keeps for a deleted definition", w.testKept)
	t.Run("a name that a definition has had only for its kind", w.testBindAgain)
}

func (w *fixture) testKept(t *testing.T) {
	gizmos := schema.GroupResource{Group: group, Resource: "gizmos"}
	suite.Apply(t, w.Workspace(mailboxPath), crdManifest("gizmos", "Gizmo"))
	suite.Eventually(t, func(g Gomega) { g.Expect(w.notes(t)).To(ContainSubstring(`"gizmos.acme.io":{"c":true}`)) })
	w.export(t, "gizmos", "Gizmo")
	suite.Eventually(t, func(g Gomega) { g.Expect(w.conflict(t)).To(ContainSubstring("gizmos.acme.io")) })

	states, err := w.releaser.Release(t.Context(), w.mailbox, []schema.GroupResource{gizmos})
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(states).To(Equal(namelock.Result{BlockingCRDs: []string{"gizmos.acme.io"}}))
	g.Expect(w.notes(t)).To(ContainSubstring(`"gizmos.acme.io":{"c":true}`))

	g.Expect(framework.Delete(t.Context(), w.Workspace(mailboxPath), definitions, "", "gizmos.acme.io")).To(Succeed())
	suite.Eventually(t, func(g Gomega) {
		g.Expect(w.releaser.Release(t.Context(), w.mailbox, []schema.GroupResource{gizmos})).To(Equal(namelock.Result{Freed: true}))
	})
	suite.Eventually(t, func(g Gomega) {
		g.Expect(w.conflict(t)).To(BeEmpty())
		g.Expect(w.bound(t)).To(ContainElement("gizmos"))
	})
}

func (w *fixture) testBindAgain(t *testing.T) {
	suite.Apply(t, w.Workspace(mailboxPath), crdManifest("squatters", "Widget"))
	suite.Eventually(t, func(g Gomega) { g.Expect(w.notes(t)).To(ContainSubstring("squatters.acme.io")) })
	w.export(t, "widgets", "Widget")
	suite.Eventually(t, func(g Gomega) { g.Expect(w.conflict(t)).To(ContainSubstring("squatters.acme.io")) })
	g := NewWithT(t)
	g.Expect(framework.Delete(t.Context(), w.Workspace(mailboxPath), definitions, "", "squatters.acme.io")).To(Succeed())
	suite.Eventually(t, func(g Gomega) {
		g.Expect(w.releaser.Release(t.Context(), w.mailbox, []schema.GroupResource{{Group: group, Resource: "widgets"}})).To(Equal(namelock.Result{}))
	})
	// Retry as rarely as the hub does: if the APIBinding keeps changing, kcp never finishes binding.
	g.Eventually(func(g Gomega) {
		if bound := w.bound(t); !slices.Contains(bound, any("widgets")) {
			g.Expect(w.releaser.RetryBinding(t.Context(), w.mailbox, w.binding(t).GetName(), time.Now())).To(Succeed())
		}
		g.Expect(w.bound(t)).To(ContainElement("widgets"))
	}).WithContext(t.Context()).WithPolling(5 * time.Second).Should(Succeed())
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	w := &fixture{KCP: suite.KCP(t)}
	connections.Bootstrap(t, w.KCP, providerPath)
	var mailbox *tenancyv1alpha1.Workspace
	suite.Eventually(t, func(g Gomega) {
		// The new RBAC takes a moment to take effect in kcp.
		var err error
		mailbox, err = framework.CreateWorkspace(t.Context(), w.HubConfig, providerPath, "mailbox", providerPath+":"+synchubv1alpha1.WorkspaceType)
		g.Expect(err).NotTo(HaveOccurred())
	})
	access := connections.KCP(t, suite.ReadFile(t, w.HubKubeconfig))
	w.mailbox, w.releaser = logicalcluster.Name(mailbox.Spec.Cluster), &namelock.Releaser{ConfigFor: access.WorkspaceConfig}
	return w
}

func crdManifest(plural, kind string) string {
	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s.%s}
spec:
  group: %[2]s
  scope: Namespaced
  names: {plural: %[1]s, singular: %[4]s, kind: %[3]s, listKind: %[3]sList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`, plural, group, kind, strings.TrimSuffix(plural, "s"))
}

// export gives all mailboxes an API.
func (w *fixture) export(t *testing.T, plural, kind string) {
	t.Helper()
	suite.Apply(t, w.Workspace(providerPath), fmt.Sprintf(`
apiVersion: apis.kcp.io/v1alpha1
kind: APIResourceSchema
metadata: {name: v1.%s.%s}
spec:
  group: %[2]s
  scope: Namespaced
  names: {plural: %[1]s, singular: %[4]s, kind: %[3]s, listKind: %[3]sList}
  versions: [{name: v1, served: true, storage: true, schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}]
`, plural, group, kind, strings.ToLower(kind)))
	client := suite.Dynamic(t, w.Workspace(providerPath))
	patch := fmt.Sprintf(`[{"op": "add", "path": "/spec/resources/-", "value": {"group": %q, "name": %q, "schema": "v1.%[2]s.%[1]s", "storage": {"crd": {}}}}]`, group, plural)
	if _, err := client.Resource(exports).Patch(t.Context(), synchubv1alpha1.MailboxExport, types.JSONPatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (w *fixture) binding(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	all, err := framework.List(t.Context(), w.Workspace(mailboxPath), bindings, "", "")
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if export, _, _ := unstructured.NestedString(all[i].Object, "spec", "reference", "export", "name"); export == synchubv1alpha1.MailboxExport {
			return &all[i]
		}
	}
	t.Fatal("the mailbox has no binding of the export")
	return nil
}

// conflict returns kcp's message about a naming conflict, or an empty string.
func (w *fixture) conflict(t *testing.T) string {
	t.Helper()
	all, _, _ := unstructured.NestedSlice(w.binding(t).Object, "status", "conditions")
	for _, item := range all {
		if fields := item.(map[string]any); fields["type"] == "BindingUpToDate" && fields["reason"] == "NamingConflicts" {
			return fmt.Sprint(fields["message"])
		}
	}
	return ""
}

func (w *fixture) bound(t *testing.T) (names []any) {
	t.Helper()
	all, _, _ := unstructured.NestedSlice(w.binding(t).Object, "status", "boundResources")
	for _, item := range all {
		names = append(names, item.(map[string]any)["resource"])
	}
	return names
}

// notes returns the annotation with kcp's records of the owners of names.
func (w *fixture) notes(t *testing.T) string {
	t.Helper()
	cluster, err := framework.Get(t.Context(), w.Workspace(mailboxPath), logicalClusters, "", "cluster")
	if err != nil {
		t.Fatal(err)
	}
	return cluster.GetAnnotations()[namelock.Annotation]
}
