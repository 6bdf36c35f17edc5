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

package main

import (
	"strings"
	"testing"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/test/framework/suite"
	"github.com/synchub-dev/synchub/test/tier"
)

func TestBindInventory(t *testing.T) {
	tier.Thorough(t)
	b := newBindTest(t, "bind-inventory")
	g := NewWithT(t)
	bind := func(more ...string) []string {
		return append([]string{"bind", "inventory", "--provider-workspace", bindProvider}, more...)
	}
	binding := func() *apisv1alpha2.APIBinding {
		binding := &apisv1alpha2.APIBinding{}
		g.Expect(b.workspace.Get(t.Context(), types.NamespacedName{Name: synchubv1alpha1.InventoryExport}, binding)).To(Succeed())
		return binding
	}

	if got := succeed(t, bind("--dry-run=server")...); !strings.Contains(got.out, "created (server dry run)") || strings.Contains(got.errs, "Register a cluster") {
		t.Errorf("it prints\n%s%s", got.out, got.errs)
	}
	fail(t, "let its administrator grant you the verb bind on this APIExport, for example with --inventory-group of `kubectl synchub init`", "bind", "inventory", "--provider-workspace", "root:nowhere")

	made := succeed(t, bind()...)
	g.Expect(made.out).To(ContainSubstring("apibinding.apis.kcp.io/edge.kubestellar.io created"))
	g.Expect(made.errs).To(ContainSubstring("Register a cluster with `kubectl synchub register"))
	g.Expect(b.workspace.List(t.Context(), &edgev2alpha1.SyncTargetList{})).To(Succeed())
	bound := binding()
	g.Expect(applied(bound)).To(Equal([]string{"events", "logicalclusters", "secrets"}))
	for _, claim := range bound.Spec.PermissionClaims {
		want := apisv1alpha2.PermissionClaimSelector{MatchAll: true}
		if claim.Resource == "secrets" {
			want = apisv1alpha2.PermissionClaimSelector{}
			want.MatchLabels = map[string]string{edgev2alpha1.LabelCredential: edgev2alpha1.CredentialKubeconfig}
		}
		g.Expect(claim.Selector).To(Equal(want), claim.Resource)
	}

	again := succeed(t, bind()...)
	g.Expect(again.out).To(ContainSubstring("apibinding.apis.kcp.io/edge.kubestellar.io unchanged"))
	g.Expect(again.errs).NotTo(ContainSubstring("rejects or limits"))
	g.Expect(binding().ResourceVersion).To(Equal(bound.ResourceVersion))
	g.Expect(succeed(t, bind("--dry-run", "-o", "yaml")...).out).To(ContainSubstring("synchub.dev/credential: kubeconfig"))

	unbind := func(more ...string) []string {
		return append([]string{"unbind", "inventory", "--provider-workspace", bindProvider}, more...)
	}
	florin := &edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: "florin"}}
	g.Expect(b.workspace.Create(t.Context(), florin)).To(Succeed())
	fail(t, "nothing was changed: the workspace has SyncTargets (florin)", unbind("--yes")...)
	g.Expect(b.workspace.Delete(t.Context(), florin)).To(Succeed())
	suite.Apply(t, b.kcp.Workspace(b.path), "{apiVersion: edge.kubestellar.io/v2alpha1, kind: Location, metadata: {name: prod}, spec: {instanceSelector: {}}}")
	fail(t, "nothing was changed: give --yes", unbind()...)
	gone := succeed(t, unbind("--yes")...)
	g.Expect(gone.errs).To(ContainSubstring("kcp deletes all Locations of the workspace: 1 Location."))
	g.Expect(gone.out).To(ContainSubstring("apibinding.apis.kcp.io/edge.kubestellar.io deleted"))
	fail(t, "there is nothing to undo", unbind("--yes")...)
}
