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

package registration

import (
	"bytes"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/rbac"
	"github.com/synchub-dev/synchub/provider/targets/tunnel"
)

func TestTunnelManifest(t *testing.T) {
	planned := &Tunnel{Namespace: "edge", Image: "example.org/synchub:1"}
	planned.Requested.Resources = []rbac.Resource{{Resource: "configmaps", Down: true, Up: true}}
	planned.Namespaces = []string{"shop"}
	keys := map[string][]byte{"token": []byte("secret"), "ca.crt": []byte("authority")}
	planned.URL, planned.CA = "https://hub.example.org:8443", []byte("authority")
	objects, err := planned.Manifest(&edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{UID: "uid"}}, &tunnel.Credential{Token: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, object := range objects {
		kinds[object.GetObjectKind().GroupVersionKind().Kind]++
		switch object := object.(type) {
		case *rbacv1.ClusterRole:
			checkClusterRole(t, object)
		case *rbacv1.Role:
			if object.Namespace == "shop" && (len(object.Rules) != 1 || !slices.Equal(object.Rules[0].Resources, []string{"configmaps"})) {
				t.Errorf("got %v", object.Rules)
			}
		case *corev1.Secret:
			if !maps.EqualFunc(object.Data, keys, bytes.Equal) {
				t.Errorf("got %v", object.Data)
			}
		case *appsv1.Deployment:
			container := object.Spec.Template.Spec.Containers[0]
			args := []string{"--hub=https://hub.example.org:8443", "--sync-target=uid", "--token-file=/etc/synchub/token", "--hub-certificate-authority=/etc/synchub/ca.crt"}
			if object.Namespace != "edge" || container.Image != planned.Image || !slices.Equal(container.Args, args) {
				t.Errorf("got %+v", object.Spec)
			}
		}
	}
	want := map[string]int{"Namespace": 1, "ServiceAccount": 1, "ClusterRole": 1, "ClusterRoleBinding": 1, "Role": 1, "RoleBinding": 1, "Secret": 1, "Deployment": 1}
	if !maps.Equal(kinds, want) {
		t.Errorf("got %v", kinds)
	}
}

// A dry run has no token. A user who applied a Secret without data would remove the token of the tunnel.
func TestTunnelManifestWithoutATokenHasNoSecret(t *testing.T) {
	objects, err := (&Tunnel{Namespace: "edge"}).Manifest(&edgev2alpha1.SyncTarget{}, nil)
	if err != nil || len(objects) == 0 {
		t.Fatalf("got %v, %v", objects, err)
	}
	for _, object := range objects {
		if _, ok := object.(*corev1.Secret); ok {
			t.Error("it has a Secret")
		}
	}
}

// The README of the chart applies the Secret alone, by its label.
func TestTunnelSecretCanBeAppliedAlone(t *testing.T) {
	objects, err := (&Tunnel{Namespace: "edge"}).Manifest(&edgev2alpha1.SyncTarget{}, &tunnel.Credential{Token: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		_, isSecret := object.(*corev1.Secret)
		if got := object.GetLabels()[componentLabel] == credentialsComponent; got != isSecret {
			t.Errorf("%s %s is selected: %v", object.GetObjectKind().GroupVersionKind().Kind, object.GetName(), got)
		}
	}
	readme, err := os.ReadFile("../../../charts/synchub-tunnel/README.md")
	if err != nil || !strings.Contains(string(readme), "--selector "+componentLabel+"="+credentialsComponent) {
		t.Errorf("the README does not select it: %v", err)
	}
}

// A repeated registration must not widen the rights unless the operator requests that: the plugin cannot read the cluster.
func TestTunnelKeepsItsRights(t *testing.T) {
	granted := func(namespaces []string, texts ...string) *Grants {
		return newGrants(parseResources(t, texts...), rbac.Options{Namespaces: namespaces})
	}
	for name, test := range map[string]tunnelGrantTest{
		"a new one":                     {isNew: true, wantResources: strings.Join(defaultResources, ",")},
		"repeated without flags":        {before: granted(nil, "configmaps"), wantResources: "configmaps"},
		"repeated in its namespaces":    {before: granted([]string{"shop"}, "configmaps"), only: []string{"shop"}, wantResources: "configmaps", wantOnly: "shop"},
		"the spec names fewer":          {before: granted(nil, "configmaps"), only: []string{"shop"}, wantResources: "configmaps", wantOnly: "shop"},
		"the spec names more":           {before: granted([]string{"shop"}, "configmaps"), only: []string{"till", "shop"}, wantResources: "configmaps", wantOnly: "shop,till", added: "configmaps (create, delete, get, list, patch, watch) in the namespace till"},
		"the spec names none any more":  {before: granted([]string{"shop"}, "configmaps"), wantResources: "configmaps", wantOnly: "shop"},
		"of a deleted SyncTarget":       {isNew: true, before: granted([]string{"shop"}, "configmaps"), wantResources: "configmaps", wantOnly: "shop"},
		"one namespace less":            {before: granted([]string{"shop", "till"}, "configmaps"), given: []string{"shop"}, wantResources: "configmaps", wantOnly: "shop", info: "kubectl delete rolebinding,role --namespace till synchub:tunnel:edge"},
		"the whole cluster":             {before: granted([]string{"shop"}, "configmaps"), given: []string{AllNamespaces}, wantResources: "configmaps", added: "configmaps (create, delete, get, list, patch, watch), namespaces (create, get, list, patch, watch), customresourcedefinitions.apiextensions.k8s.io (get, list, watch)", info: "--namespace shop"},
		"other resources":               {before: granted(nil, "configmaps"), resources: []string{"services"}, wantResources: "services", added: "services (create, delete, get, list, patch, watch)"},
		"more resources":                {before: granted(nil, "configmaps"), more: []string{"pods:up"}, wantResources: "configmaps,pods:up", added: "pods (get, list, watch)"},
		"escalation":                    {before: granted(nil, "roles.rbac.authorization.k8s.io"), escalate: true, wantResources: "roles.rbac.authorization.k8s.io", added: "roles.rbac.authorization.k8s.io (escalate)"},
		"no record":                     {refused: "name all its resources with --resources"},
		"no record, more resources":     {more: []string{"pods:up"}, refused: "name all its resources with --resources"},
		"no record, named resources":    {resources: []string{"pods:up"}, wantResources: "pods:up"},
		"defaults in a namespace":       {isNew: true, given: []string{"shop"}, wantOnly: "shop", info: "customresourcedefinitions.apiextensions.k8s.io,apiservices.apiregistration.k8s.io,ingressclasses.networking.k8s.io,clusterrolebindings.rbac.authorization.k8s.io,clusterroles.rbac.authorization.k8s.io"},
		"a cluster-scoped one is asked": {isNew: true, given: []string{"shop"}, resources: []string{"persistentvolumes"}, refused: "persistentvolumes: its objects are in no namespace"},
	} {
		t.Run(name, test.run)
	}
}

func parseResources(t *testing.T, texts ...string) []rbac.Resource {
	t.Helper()
	resources, err := rbac.ParseResources(texts)
	if err != nil {
		t.Fatal(err)
	}
	return resources
}

// tunnelGrantTest is a registration of a cluster with a tunnel.
type tunnelGrantTest struct {
	// isNew is true if there is no SyncTarget yet. only are the namespaces in its spec, and given the namespaces in the flag.
	isNew                  bool
	before                 *Grants
	only                   []string
	resources, more, given []string
	escalate               bool

	wantResources, wantOnly string
	added, refused, info    string
}

func (test tunnelGrantTest) run(t *testing.T) {
	var info []string
	planned := &Tunnel{Namespace: "edge", Registrar: Registrar{Name: "florin", Namespaces: test.given, Info: func(text string) { info = append(info, text) }}}
	planned.Requested = ResourceRequest{Resources: parseResources(t, test.resources...), Additional: parseResources(t, test.more...)}
	planned.RBACOptions.Escalate = test.escalate
	desired := &edgev2alpha1.SyncTarget{}
	if !test.isNew {
		desired.UID = "uid"
	}
	if test.only != nil {
		desired.Spec.Namespaces = &edgev2alpha1.TargetNamespaces{Only: test.only}
	}
	if err := planned.setNamespaces(desired); err != nil {
		t.Fatal(err)
	}
	chosen, added, err := planned.resolveTunnelGrant(t.Context(), desired, test.before)
	if test.refused != "" {
		if err == nil || !strings.Contains(err.Error(), test.refused) {
			t.Errorf("want an error with %q, got %v", test.refused, err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	test.check(t, desired, chosen)
	if added != test.added {
		t.Errorf("it adds %q", added)
	}
	if text := strings.Join(info, "\n"); !strings.Contains(text, test.info) {
		t.Errorf("got the texts\n%s", text)
	}
}

// check checks the rights in the manifest, and the namespaces of the SyncTarget.
func (test tunnelGrantTest) check(t *testing.T, desired *edgev2alpha1.SyncTarget, chosen *Tunnel) {
	t.Helper()
	if got := formatResources(chosen.Requested.Resources); test.wantResources != "" && got != formatResources(parseResources(t, strings.Split(test.wantResources, ",")...)) {
		t.Errorf("the resources are %s", got)
	}
	var only []string
	if desired.Spec.Namespaces != nil {
		only = slices.Sorted(slices.Values(desired.Spec.Namespaces.Only))
	}
	if got := strings.Join(chosen.Namespaces, ","); got != test.wantOnly || !slices.Equal(only, chosen.Namespaces) {
		t.Errorf("the namespaces are %s, and the SyncTarget's are %v", got, only)
	}
}

// checkClusterRole checks the rights of a tunnel that is restricted to a namespace.
func checkClusterRole(t *testing.T, role *rbacv1.ClusterRole) {
	t.Helper()
	for _, rule := range role.Rules {
		if slices.Contains(rule.Resources, "configmaps") || slices.Contains(rule.Resources, "secrets") {
			t.Errorf("a tunnel for one namespace may use %v everywhere", rule.Resources)
		}
	}
}
