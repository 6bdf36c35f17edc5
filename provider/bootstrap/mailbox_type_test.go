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

package bootstrap_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	corev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	tenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	kcpapisclient "github.com/kcp-dev/sdk/client/clientset/versioned/cluster/typed/apis/v1alpha2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/suite"
	"github.com/synchub-dev/synchub/test/tier"
)

var universal = tenancyv1alpha1.WorkspaceTypeReference{Name: "universal", Path: "root"}

// A mailbox extends universal only if its provider workspace demands it, and has no children. The latter also holds for a
// mailbox from a time when the type still extended universal, and which otherwise works as before.
func TestMailboxesAreLean(t *testing.T) {
	tier.Thorough(t)
	t.Parallel()
	for parentType, extends := range map[string][]tenancyv1alpha1.WorkspaceTypeReference{
		"universal":    nil,
		"organization": {universal},
	} {
		t.Run(parentType, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			provider := newProvider(t, "lean-in-"+parentType)
			_, err := framework.CreateWorkspace(t.Context(), provider.Config, "root", "lean-in-"+parentType, parentType)
			g.Expect(err).NotTo(HaveOccurred())
			provider.bootstrapped(t)
			workspaceType := &tenancyv1alpha1.WorkspaceType{}
			provider.change(t, workspaceType, named(synchubv1alpha1.WorkspaceType), func() {
				workspaceType.Spec.Extend.With = []tenancyv1alpha1.WorkspaceTypeReference{universal}
				workspaceType.Spec.LimitAllowedChildren = nil
			})
			old := provider.mailbox(t, "old")
			// kcp's cache of the type may be older still.
			suite.Eventually(t, func(g Gomega) { g.Expect(old.makesChild(t)).To(Succeed()) })

			report, err := provider.run(t, provider.Config)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(report).To(HaveKeyWithValue("WorkspaceType mailbox", "updated"))
			provider.read(t, workspaceType, named(synchubv1alpha1.WorkspaceType))
			g.Expect(workspaceType.Spec.Extend.With).To(ConsistOf(extends))
			report, err = provider.run(t, provider.Config)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(report).To(HaveKeyWithValue("WorkspaceType mailbox", "unchanged"))

			refused := MatchError(ContainSubstring("cannot have any child"))
			suite.Eventually(t, func(g Gomega) { g.Expect(old.makesChild(t)).To(refused) })
			fresh := provider.mailbox(t, "fresh")
			g.Expect(fresh.bindings(t)).To(HaveLen(1 + 2*len(extends)))
			if extends == nil {
				// Any user may bind these APIs.
				g.Expect(framework.Apply(t.Context(), framework.InWorkspace(provider.HubConfig, fresh.path), `
apiVersion: apis.kcp.io/v1alpha2
kind: APIBinding
metadata: {name: tenancy}
spec: {reference: {export: {path: root, name: tenancy.kcp.io}}}
`)).To(Succeed())
			}
			suite.Eventually(t, func(g Gomega) { g.Expect(fresh.makesChild(t)).To(refused) })

			export := &apisv1alpha2.APIExport{}
			provider.change(t, export, named(synchubv1alpha1.MailboxExport), func() {
				export.Spec.PermissionClaims = append(export.Spec.PermissionClaims,
					apisv1alpha2.PermissionClaim{GroupResource: apisv1alpha2.GroupResource{Resource: "configmaps"}, Verbs: []string{"*"}})
			})
			for _, mailbox := range []mailbox{old, fresh} {
				suite.Eventually(t, func(g Gomega) {
					g.Expect(mailbox.bindings(t)).To(ContainElement(HaveField("Status.AppliedPermissionClaims", ContainElement(HaveField("Resource", "configmaps")))), mailbox.path)
				})
				var workspace tenancyv1alpha1.Workspace
				provider.read(t, &workspace, named(mailbox.name))
				g.Expect(workspace.Status.Phase).To(Equal(corev1alpha1.LogicalClusterPhaseReady))
			}
		})
	}
}

// kcp's initializer may wait for minutes, or for ever. The hub has it try again, with the rights that it has in a mailbox of its own.
func TestRetryInitialization(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	provider := newProvider(t, "initialization")
	provider.bootstrapped(t, "operators")
	workspaceType := &tenancyv1alpha1.WorkspaceType{}
	provider.change(t, workspaceType, named(synchubv1alpha1.WorkspaceType), func() { workspaceType.Spec.Initializer = true })
	workspace, attempt := &tenancyv1alpha1.Workspace{}, 0
	// The hub's rights and the type take a moment to take effect in kcp.
	suite.Eventually(t, func(g Gomega) {
		attempt++
		workspace = &tenancyv1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("stuck-", attempt)}}
		workspace.Spec.Type = &tenancyv1alpha1.WorkspaceTypeReference{Path: provider.path, Name: synchubv1alpha1.WorkspaceType}
		g.Expect(provider.client(t, provider.HubConfig, provider.path).Create(t.Context(), workspace)).To(Succeed())
		suite.Eventually(t, func(g Gomega) {
			provider.read(t, workspace, named(workspace.Name))
			// The phase comes before the initializers, and without the other initializer the workspace becomes ready.
			kcpIsDone := HaveField("Initializers", ConsistOf(Not(Equal(tenancyv1alpha1.WorkspaceAPIBindingsInitializer))))
			g.Expect(workspace.Status).To(Or(kcpIsDone, HaveField("Phase", corev1alpha1.LogicalClusterPhaseReady)))
		})
		g.Expect(workspace.Status.Initializers).To(HaveLen(1), "the other initializer does nothing")
	})
	stuck := mailbox{provider, workspace.Name, provider.path + ":" + workspace.Name}
	clients, err := kcpapisclient.NewForConfig(provider.HubConfig)
	g.Expect(err).NotTo(HaveOccurred())
	export := apisv1alpha2.ExportBindingReference{Path: provider.path, Name: synchubv1alpha1.MailboxExport}
	now := time.Now()
	retry := func() (missing string, err error) {
		return kcp.RetryInitialization(t.Context(), clients, logicalcluster.Name(workspace.Spec.Cluster), export, now)
	}
	isRetried := HaveField("Annotations", HaveKeyWithValue(kcp.AnnotationInitializationRetried, now.UTC().Format(time.RFC3339)))

	g.Expect(retry()).To(BeEmpty())
	g.Expect(stuck.bindings(t)).To(ConsistOf(isRetried))

	// Without an APIBinding, an event of the export makes kcp create it.
	binding := stuck.bindings(t)[0]
	g.Expect(provider.client(t, provider.HubConfig, stuck.path).Delete(t.Context(), &binding)).To(Succeed())
	suite.Eventually(t, func(g Gomega) { g.Expect(stuck.bindings(t)).To(BeEmpty()) })
	g.Expect(retry()).To(BeEmpty())
	suite.Eventually(t, func(g Gomega) {
		g.Expect(stuck.bindings(t)).To(ConsistOf(And(HaveField("Name", binding.Name), HaveField("UID", Not(Equal(binding.UID))))))
	})
	provider.read(t, workspace, named(workspace.Name))
	g.Expect(workspace.Status.Phase).To(Equal(corev1alpha1.LogicalClusterPhaseInitializing))
}

// mailbox is a workspace that the hub's user created and administers.
type mailbox struct {
	provider

	name, path string
}

func (p provider) mailbox(t *testing.T, name string) mailbox {
	t.Helper()
	// The hub's rights and the type take a moment to take effect in kcp.
	suite.Eventually(t, func(g Gomega) {
		_, err := framework.CreateWorkspace(t.Context(), p.HubConfig, p.path, name, p.path+":"+synchubv1alpha1.WorkspaceType)
		g.Expect(err).NotTo(HaveOccurred())
	})
	return mailbox{p, name, p.path + ":" + name}
}

// makesChild returns kcp's answer to a dry run that creates a workspace below the mailbox.
func (m mailbox) makesChild(t *testing.T) error {
	t.Helper()
	child := &tenancyv1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{Name: "child"}, Spec: tenancyv1alpha1.WorkspaceSpec{Type: &universal}}
	return m.client(t, m.HubConfig, m.path).Create(t.Context(), child, client.DryRunAll)
}

func (m mailbox) bindings(t *testing.T) []apisv1alpha2.APIBinding {
	t.Helper()
	var list apisv1alpha2.APIBindingList
	if err := m.client(t, m.HubConfig, m.path).List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}
