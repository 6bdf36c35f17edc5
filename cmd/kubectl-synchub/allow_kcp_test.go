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
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/bindcompute"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/suite"
	"github.com/synchub-dev/synchub/test/tier"
)

func TestAllowRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no Location":    {[]string{"allow"}, "give the name of one Location; see `kubectl synchub allow --help`"},
		"two Locations":  {[]string{"allow", "a", "b", "--workspace", "root:a"}, "give the name of one Location"},
		"no workspace":   {[]string{"allow", "default"}, "give the path of a workspace with --workspace"},
		"no path":        {[]string{"allow", "default", "--workspace", "root:**"}, `--workspace: "root:**" is not the path of a workspace, such as root:teams:web or root:teams:*`},
		"an unknown dry": {[]string{"allow", "default", "--workspace", "root:a", "--dry-run=maybe"}, `--dry-run: "maybe" is none of`},
	} {
		t.Run(name, func(t *testing.T) {
			requests := withCluster(t, http.NotFound)
			got := execute(t, "", test.args...)
			if got.err == nil || !strings.Contains(got.err.Error(), test.want) || requests.Load() > 0 {
				t.Errorf("want an error with %q, got %v after %d requests", test.want, got.err, requests.Load())
			}
		})
	}
}

func TestAllow(t *testing.T) {
	tier.Thorough(t)
	g := NewWithT(t)
	b := newBindTest(t, "allow-inventory")
	// bind creates an APIBinding, as the administrator of kcp, and waits until a list succeeds.
	bind := func(path, export string, list client.ObjectList) client.Client {
		workspace := b.client(t, b.kcp.Workspace(path))
		g.Expect(workspace.Create(t.Context(), &apisv1alpha2.APIBinding{
			ObjectMeta: metav1.ObjectMeta{Name: export},
			Spec:       apisv1alpha2.APIBindingSpec{Reference: apisv1alpha2.BindingReference{Export: &apisv1alpha2.ExportBindingReference{Path: bindProvider, Name: export}}},
		})).To(Succeed())
		suite.WaitUntil(t, "the API is served", func() bool { return workspace.List(t.Context(), list) == nil })
		return workspace
	}
	fail(t, "the current workspace serves no Locations", "allow", "prod", "--workspace", "root:allow-shop")
	inventory := bind(b.path, synchubv1alpha1.InventoryExport, &edgev2alpha1.LocationList{})
	_, err := framework.CreateWorkspace(t.Context(), b.kcp.Config, "root", "allow-shop", "")
	g.Expect(err).NotTo(HaveOccurred())
	shop := bind("root:allow-shop", bindcompute.Export, &edgev2alpha1.EdgePlacementList{})
	suite.Apply(t, b.kcp.Workspace(b.path), `
apiVersion: edge.kubestellar.io/v2alpha1
kind: SyncTarget
metadata: {name: florin}
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: Location
metadata: {name: prod}
spec: {availableTo: {workspaces: ["root:annex"]}}
`)
	suite.Apply(t, b.kcp.Workspace("root:allow-shop"), fmt.Sprintf(`
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: shop}
spec: {locationSelectors: [{}], inventoryWorkspaces: [%q], downsync: [{namespaces: [shop]}]}
`, b.path))
	placement := &edgev2alpha1.EdgePlacement{}
	g.Expect(shop.Get(t.Context(), types.NamespacedName{Name: "shop"}, placement)).To(Succeed())
	placement.Status = edgev2alpha1.EdgePlacementStatus{SpecGeneration: 1, Selected: 3}
	g.Expect(shop.Status().Update(t.Context(), placement)).To(Succeed())
	paths := func() []string {
		location := &edgev2alpha1.Location{}
		g.Expect(inventory.Get(t.Context(), types.NamespacedName{Name: "prod"}, location)).To(Succeed())
		return location.Spec.AvailableTo.Workspaces
	}
	allow := func(more ...string) []string {
		return append([]string{"allow", "prod", "--workspace", "root:allow-shop"}, more...)
	}

	fail(t, "there is no Location nothing in the current workspace", "allow", "nothing", "--workspace", "root:a")
	// The user may not read the team's workspace.
	got := plugin(t, allow()...)
	g.Expect(got.errs).To(And(HavePrefix("root:allow-shop gains the Location prod with the SyncTarget florin.\nThe EdgePlacements of root:allow-shop could not be read: "), HaveSuffix("error: nothing was changed: give --yes to confirm\n")))
	useConfig(t, b.kcp.Workspace(b.path))
	fail(t, "root:allow-shop gains the Location prod with the SyncTarget florin.\n3 objects of root:allow-shop come to florin (EdgePlacement shop).\nerror: nothing was changed: give --yes to confirm\n", allow()...)
	for _, dryRun := range []string{"client", "server"} {
		g.Expect(succeed(t, allow("--dry-run="+dryRun)...).out).To(Equal("location.edge.kubestellar.io/prod available to root:allow-shop (" + dryRun + " dry run)\n"))
	}
	g.Expect(succeed(t, allow("--dry-run=client", "-o", "jsonpath={.spec.availableTo.workspaces}")...).out).To(Equal(`["root:annex","root:allow-shop"]`))
	g.Expect(paths()).To(Equal([]string{"root:annex"}))

	g.Expect(succeed(t, allow("--yes")...).out).To(Equal("location.edge.kubestellar.io/prod available to root:allow-shop\n"))
	g.Expect(paths()).To(Equal([]string{"root:annex", "root:allow-shop"}))
	g.Expect(succeed(t, allow()...)).To(Equal(printed{out: "location.edge.kubestellar.io/prod already available to root:allow-shop\n"}))
	g.Expect(succeed(t, "__complete", "allow", "pr").out).To(HavePrefix("prod\n"))
	g.Expect(succeed(t, "__complete", "allow", "prod", "--workspace", "root:al").out).To(HavePrefix("root:allow-shop\n"))

	got = succeed(t, "allow", "prod", "--workspace", "root:*", "--yes")
	g.Expect(got.errs).To(ContainSubstring("root:allow-shop may use the Location prod in any case, by the entry root:allow-shop of spec.availableTo.workspaces."))
	succeed(t, "allow", "prod", "--workspace", "root:*", "--remove", "--yes")
	fail(t, "root:allow-shop loses the Location prod with the SyncTarget florin.\n3 objects of root:allow-shop leave florin (EdgePlacement shop).\nerror: nothing was changed: give --yes to confirm\n", allow("--remove")...)
	g.Expect(succeed(t, allow("--remove", "--yes")...).out).To(Equal("location.edge.kubestellar.io/prod not available to root:allow-shop\n"))
	g.Expect(slices.Equal(paths(), []string{"root:annex"})).To(BeTrue())
}
