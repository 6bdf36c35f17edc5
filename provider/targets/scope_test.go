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

package targets

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/rbac"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

func TestRestrictScope(t *testing.T) {
	name := func(text string) types.NamespacedName {
		namespace, name, _ := strings.Cut(text, "/")
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	scope := Scope{Namespaces: []string{"a", "c"}, Names: []types.NamespacedName{name("b/x"), name("c/x")}}
	for what, test := range map[string]struct {
		bound       []string
		namespaced  bool
		scope, want Scope
	}{
		"all of a cluster":        {namespaced: true, scope: Scope{All: true}, want: Scope{All: true}},
		"some of a cluster":       {namespaced: true, scope: scope, want: scope},
		"all of some namespaces":  {bound: []string{"a", "b"}, namespaced: true, scope: Scope{All: true}, want: Scope{Namespaces: []string{"a", "b"}}},
		"some of some namespaces": {bound: []string{"a", "b"}, namespaced: true, scope: scope, want: Scope{Namespaces: []string{"a"}, Names: []types.NamespacedName{name("b/x")}}},
		"no shared namespaces":    {bound: []string{"d"}, namespaced: true, scope: scope},
		"cluster-scoped objects":  {bound: []string{"a"}, scope: Scope{All: true}, want: Scope{All: true}},
	} {
		t.Run(what, func(t *testing.T) {
			got := Namespaces(test.bound).Restrict(test.scope, test.namespaced)
			if got.All != test.want.All || !slices.Equal(got.Namespaces, test.want.Namespaces) || !slices.Equal(got.Names, test.want.Names) {
				t.Errorf("want %+v, got %+v", test.want, got)
			}
		})
	}
}

// boundConnection is a connection that is restricted to two namespaces, first and forbidden. The hub has rights in first
// only. outside is a third namespace.
type boundConnection struct {
	*Connection
	target                    *servers.Target
	first, forbidden, outside string
}

func connectBound(t *testing.T) *boundConnection {
	t.Helper()
	g := NewWithT(t)
	ctx := t.Context()
	target := steady(t)
	outside := newNamespace(t, target)
	b := &boundConnection{target: target, first: outside + "-first", forbidden: outside + "-forbidden", outside: outside}
	g.Expect(framework.Apply(ctx, target.Config, `
{apiVersion: v1, kind: Namespace, metadata: {name: `+b.first+`}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: `+b.forbidden+`}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: bound, namespace: `+b.outside+`}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: bound, namespace: `+b.first+`}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list, watch, create, patch, delete]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: bound, namespace: `+b.first+`}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: bound}
subjects: [{kind: ServiceAccount, name: bound, namespace: `+b.outside+`}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: `+b.first+`}
rules: [{apiGroups: [""], resources: [namespaces], resourceNames: [`+b.first+`, `+b.forbidden+`], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: `+b.first+`}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: `+b.first+`}
subjects: [{kind: ServiceAccount, name: bound, namespace: `+b.outside+`}]
`)).To(Succeed())
	kubeconfig, err := target.ServiceAccountKubeconfig(ctx, b.outside, "bound")
	g.Expect(err).NotTo(HaveOccurred())
	b.Connection, err = newRegistry(ctx, t, clock.RealClock{}).Connect(syncTarget, kubeconfig, kcp.Limits{}, b.first, b.forbidden)
	g.Expect(err).NotTo(HaveOccurred())
	suite.Eventually(t, func(g Gomega) { g.Expect(b.Health.IsUp()).To(BeTrue()) })
	return b
}

// A namespace that cannot be read does not affect other namespaces, and its objects are unknown.
func TestBoundToNamespaces(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ctx := t.Context()
	b := connectBound(t)
	for _, namespace := range []string{b.first, b.forbidden, b.outside} {
		g.Expect(framework.Apply(ctx, b.target.Config, "{apiVersion: v1, kind: ConfigMap, metadata: {name: held, namespace: "+namespace+", labels: {example.org/bound: us}}}")).To(Succeed())
	}

	recorded := &eventRecorder{}
	cached := b.Watches.NewCache(configMaps, CacheOptions{Namespaced: true, Selector: "example.org/bound=us", Handler: recorded.handler()})
	runInTest(t, cached.Run)
	suite.Eventually(t, func(g Gomega) {
		filled, pending := cached.Progress()
		g.Expect([]int{filled, pending}).To(Equal([]int{1, 0}))
	})
	g.Expect(cached.HasSynced()).To(BeFalse(), "a part is not readable")
	g.Expect(cached.Availability().Reason).To(Equal(ReasonForbidden))
	g.Expect(cached.Availability().Message).To(ContainSubstring(b.forbidden))
	g.Expect(namesIn(cached)).To(Equal([]string{"held"}))
	g.Expect(cached.Get(types.NamespacedName{Namespace: b.first, Name: "held"})).NotTo(BeNil())
	g.Expect(cached.Get(types.NamespacedName{Namespace: b.outside, Name: "held"})).To(BeNil())
	_, err := b.Objects.HasNoObjects(ctx, configMaps, "example.org/bound=us")
	g.Expect(err).To(MatchError(ContainSubstring("forbidden")))
	empty, err := b.Objects.HasNoObjects(ctx, configMaps, "example.org/bound=nobody", b.first)
	g.Expect([]any{empty, err}).To(Equal([]any{true, nil}))

	g.Expect(framework.Apply(ctx, b.target.Config, `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: bound, namespace: `+b.forbidden+`}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: bound, namespace: `+b.outside+`}]
`)).To(Succeed())
	waitForCacheSync(t, cached)
	g.Expect(cached.Len()).To(Equal(2))
	g.Expect(cached.List()).To(HaveLen(2))

	names, shown := startNames(t, b.Connection)
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"} {
		names.Add(types.NamespacedName{Namespace: b.first, Name: name})
	}
	suite.Eventually(t, func(g Gomega) { g.Expect(shown()).To(HaveLen(9), "free names") })

	labels, known := map[string]string(nil), false
	suite.Eventually(t, func(g Gomega) {
		labels, known = b.Watches.NamespaceLabels(b.forbidden)
		g.Expect(known).To(BeTrue())
	})
	g.Expect(labels).To(HaveKey("kubernetes.io/metadata.name"))
	_, known = b.Watches.NamespaceLabels(b.outside)
	g.Expect(known).To(BeFalse())
	g.Expect(b.Objects.IsNamespaceMissing(ctx, b.first)).To(BeFalse())
	g.Expect(b.Objects.IsNamespaceMissing(ctx, b.outside)).To(BeFalse(), "a namespace that the hub may not read is not missing")
}

// The hub lists one namespace at a time, and the whole cluster only if that is needed.
func TestPermissionsInNamespaces(t *testing.T) {
	t.Parallel()
	b := connectBound(t)
	needed := rbac.RequiredAttributes([]rbac.Resource{{Resource: "configmaps", Down: true}}, rbac.Tenancy{}, b.first, b.forbidden)
	suite.Eventually(t, func(g Gomega) {
		access := b.Permissions.Get(needed, time.Time{})
		g.Expect(access.Known).To(BeTrue())
		g.Expect(rbac.DescribeAttributes(access.Missing, 9)).To(Equal("configmaps (create, delete, get, list, patch, watch) in the namespace " + b.forbidden))
	})
	needed = rbac.RequiredAttributes([]rbac.Resource{{Group: "example.org", Resource: "gadgets", Up: true, ClusterScoped: true}}, rbac.Tenancy{}, b.first)
	suite.Eventually(t, func(g Gomega) {
		g.Expect(rbac.DescribeAttributes(b.Permissions.Get(needed, time.Time{}).Missing, 9)).To(Equal("gadgets.example.org (get, list, watch)"))
	})
}

// Other namespaces lead to another connection, so that all watches start again.
func TestOtherNamespacesMakeAnotherConnection(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	server := suite.ServeTLS(t, http.NotFoundHandler())
	registry := newRegistry(t.Context(), t, clock.RealClock{})
	connect := func(namespaces ...string) *Connection {
		connection, err := registry.Connect(syncTarget, kubeconfigFor(t, server), kcp.Limits{}, namespaces...)
		g.Expect(err).NotTo(HaveOccurred())
		return connection
	}
	whole, some := connect(), connect("b", "a", "b")
	g.Expect(some).NotTo(BeIdenticalTo(whole))
	g.Expect(some.Namespaces).To(Equal(Namespaces{"a", "b"}))
	g.Expect(connect("a", "b")).To(BeIdenticalTo(some), "the order does not matter")
	g.Expect(connect("a")).NotTo(BeIdenticalTo(some))
}
