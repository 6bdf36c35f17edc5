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
	"encoding/base64"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/rbac"
	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
)

// Whoever may write the status of a SyncTarget must not lead the operator to another workspace.
func TestAgentTokenIsOfItsOwnMailbox(t *testing.T) {
	for workspace, want := range map[string]bool{
		"root:synchub:abc-mb-1234":       true,
		"root:synchub:abc-mb-5678":       false,
		"root:synchub:xabc-mb-1234":      false,
		"root:synchub:abc-mb-1234:child": false,
		"abc-mb-1234":                    false,
		"":                               false,
	} {
		if got := isMailboxOf(workspace, "abc", "1234"); got != want {
			t.Errorf("%q: got %v", workspace, got)
		}
	}
}

// newToken returns an unsigned token with the claims.
func newToken(claims string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}

func TestAgentKubeconfigLeadsToTheIssuer(t *testing.T) {
	agent := &Agent{Server: "https://kcp.example.org:6443"}
	content, err := agent.kubeconfig(newToken(`{"kubernetes.io": {"clusterName": "2x7fz9k1"}}`))
	if err != nil {
		t.Fatal(err)
	}
	config, err := kubeconfig.Parse(content)
	if err != nil || config.Host != "https://kcp.example.org:6443/clusters/2x7fz9k1" {
		t.Errorf("got %v, %v", config, err)
	}
	for _, token := range []string{"opaque", newToken(`{}`), "e30.%.c2ln"} {
		if _, err := agent.kubeconfig(token); err == nil {
			t.Errorf("%q names no workspace and was used", token)
		}
	}
}

func TestAgentManifest(t *testing.T) {
	agent := &Agent{Namespace: "edge", Image: "example.org/synchub:1"}
	agent.Requested.Resources = []rbac.Resource{{Resource: "configmaps", Down: true, Up: true}}
	agent.Namespaces = []string{"shop"}
	keys := map[string][]byte{"agent-key": []byte("key"), "mark-key": []byte("marks")}
	objects, err := agent.Manifest([]byte("kubeconfig"), keys)
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
			keys["kubeconfig"] = []byte("kubeconfig")
			if !maps.EqualFunc(object.Data, keys, bytes.Equal) {
				t.Errorf("got %v", object.Data)
			}
		case *appsv1.Deployment:
			if object.Namespace != "edge" || object.Spec.Template.Spec.Containers[0].Image != agent.Image {
				t.Errorf("got %+v", object.Spec)
			}
		}
	}
	want := map[string]int{"Namespace": 1, "ServiceAccount": 1, "ClusterRole": 1, "ClusterRoleBinding": 1, "Role": 2, "RoleBinding": 2, "Secret": 1, "Deployment": 1}
	if !maps.Equal(kinds, want) {
		t.Errorf("got %v", kinds)
	}
}

// A dry run has no token. Whoever applied a Secret without data would take the agent's credentials away.
func TestAgentManifestWithoutAccessHasNoSecret(t *testing.T) {
	objects, err := (&Agent{Namespace: "edge"}).Manifest(nil, nil)
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
func TestAgentSecretCanBeAppliedAlone(t *testing.T) {
	objects, err := (&Agent{Namespace: "edge"}).Manifest([]byte("kubeconfig"), map[string][]byte{"key": []byte("key")})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		_, isSecret := object.(*corev1.Secret)
		if got := object.GetLabels()[componentLabel] == credentialsComponent; got != isSecret {
			t.Errorf("%s %s is selected: %v", object.GetObjectKind().GroupVersionKind().Kind, object.GetName(), got)
		}
	}
	readme, err := os.ReadFile("../../charts/synchub-agent/README.md")
	if err != nil || !strings.Contains(string(readme), "--selector "+componentLabel+"="+credentialsComponent) {
		t.Errorf("the README does not select it: %v", err)
	}
}

// A registration that is repeated must not widen the rights unasked: nobody can look in the agent's cluster.
func TestAgentKeepsItsRights(t *testing.T) {
	granted := func(namespaces []string, texts ...string) *Grants {
		return newGrants(parseResources(t, texts...), namespaces)
	}
	for name, test := range map[string]agentGrantTest{
		"a new one":                     {isNew: true, wantResources: strings.Join(defaultResources, ",")},
		"repeated without flags":        {before: granted(nil, "configmaps"), wantResources: "configmaps"},
		"repeated in its namespaces":    {before: granted([]string{"shop"}, "configmaps"), only: []string{"shop"}, wantResources: "configmaps", wantOnly: "shop"},
		"the spec names fewer":          {before: granted(nil, "configmaps"), only: []string{"shop"}, wantResources: "configmaps", wantOnly: "shop"},
		"the spec names more":           {before: granted([]string{"shop"}, "configmaps"), only: []string{"till", "shop"}, wantResources: "configmaps", wantOnly: "shop,till", added: "configmaps (create, delete, get, list, patch, watch) in the namespace till"},
		"the spec names none any more":  {before: granted([]string{"shop"}, "configmaps"), wantResources: "configmaps", wantOnly: "shop"},
		"of a deleted SyncTarget":       {isNew: true, before: granted([]string{"shop"}, "configmaps"), wantResources: "configmaps", wantOnly: "shop"},
		"one namespace less":            {before: granted([]string{"shop", "till"}, "configmaps"), given: []string{"shop"}, wantResources: "configmaps", wantOnly: "shop", told: "kubectl delete rolebinding,role --namespace till synchub:agent:edge"},
		"the whole cluster":             {before: granted([]string{"shop"}, "configmaps"), given: []string{AllNamespaces}, wantResources: "configmaps", added: "configmaps (create, delete, get, list, patch, watch), namespaces (create, get, list, patch, watch), customresourcedefinitions.apiextensions.k8s.io (get, list, watch)", told: "--namespace shop"},
		"other resources":               {before: granted(nil, "configmaps"), resources: []string{"services"}, wantResources: "services", added: "services (create, delete, get, list, patch, watch)"},
		"more resources":                {before: granted(nil, "configmaps"), more: []string{"pods:up"}, wantResources: "configmaps,pods:up", added: "pods (get, list, watch)"},
		"escalation":                    {before: granted(nil, "roles.rbac.authorization.k8s.io"), escalate: true, wantResources: "roles.rbac.authorization.k8s.io", added: "roles.rbac.authorization.k8s.io (escalate)"},
		"no record":                     {refused: "name all its resources with --resources"},
		"no record, more resources":     {more: []string{"pods:up"}, refused: "name all its resources with --resources"},
		"no record, named resources":    {resources: []string{"pods:up"}, wantResources: "pods:up"},
		"defaults in a namespace":       {isNew: true, given: []string{"shop"}, wantOnly: "shop", told: "No rights for namespaces,customresourcedefinitions.apiextensions.k8s.io,clusterrolebindings.rbac.authorization.k8s.io,clusterroles.rbac.authorization.k8s.io"},
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

// agentGrantTest is a registration of a cluster with an agent.
type agentGrantTest struct {
	// isNew is true if there is no SyncTarget yet. only are the namespaces in its spec, and given those of the flag.
	isNew                  bool
	before                 *Grants
	only                   []string
	resources, more, given []string
	escalate               bool

	wantResources, wantOnly string
	added, refused, told    string
}

func (test agentGrantTest) run(t *testing.T) {
	var told []string
	agent := &Agent{Namespace: "edge", Registrar: Registrar{Name: "florin", Namespaces: test.given, Info: func(text string) { told = append(told, text) }}}
	agent.Requested = ResourceRequest{Resources: parseResources(t, test.resources...), Additional: parseResources(t, test.more...)}
	agent.RBACOptions.Escalate = test.escalate
	desired := &edgev2alpha1.SyncTarget{}
	if !test.isNew {
		desired.UID = "uid"
	}
	if test.only != nil {
		desired.Spec.Namespaces = &edgev2alpha1.TargetNamespaces{Only: test.only}
	}
	if err := agent.setNamespaces(desired); err != nil {
		t.Fatal(err)
	}
	chosen, added, err := agent.resolveAgentGrant(desired, test.before)
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
	if text := strings.Join(told, "\n"); !strings.Contains(text, test.told) {
		t.Errorf("it says\n%s", text)
	}
}

// check checks the rights in the manifest, and the namespaces of the SyncTarget.
func (test agentGrantTest) check(t *testing.T, desired *edgev2alpha1.SyncTarget, chosen *Agent) {
	t.Helper()
	if got := formatResources(chosen.Requested.Resources); test.wantResources != "" && got != formatResources(parseResources(t, strings.Split(test.wantResources, ",")...)) {
		t.Errorf("the resources are %s", got)
	}
	var only []string
	if desired.Spec.Namespaces != nil {
		only = slices.Sorted(slices.Values(desired.Spec.Namespaces.Only))
	}
	if got := strings.Join(chosen.Namespaces, ","); got != test.wantOnly || !slices.Equal(only, chosen.Namespaces) {
		t.Errorf("the namespaces are %s, and those of the SyncTarget %v", got, only)
	}
}

func TestRotationOfAnAgentIsRefused(t *testing.T) {
	syncTarget := &edgev2alpha1.SyncTarget{Spec: edgev2alpha1.SyncTargetSpec{Mode: edgev2alpha1.SyncModeAgent}}
	syncTarget.Name = "florin"
	if err := CheckRotation(syncTarget); err == nil || !strings.Contains(err.Error(), "`kubectl synchub register florin --mode=agent -o yaml`") {
		t.Errorf("got %v", err)
	}
	syncTarget.Spec.Mode = edgev2alpha1.SyncModeHub
	if err := CheckRotation(syncTarget); err != nil {
		t.Error(err)
	}
}

// checkClusterRole checks the rights of an agent that is restricted to a namespace.
func checkClusterRole(t *testing.T, role *rbacv1.ClusterRole) {
	t.Helper()
	for _, rule := range role.Rules {
		if slices.Contains(rule.Resources, "configmaps") || slices.Contains(rule.Resources, "secrets") {
			t.Errorf("an agent for one namespace may use %v everywhere", rule.Resources)
		}
	}
}

// The key that the hub shares can be replaced. The other one must stay, for the agent recognises its objects by it.
func TestMarkKeyOfAnAgentStays(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), edgev2alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	inventory := fake.NewClientBuilder().WithScheme(scheme).Build()
	agent := &Agent{Registrar: Registrar{Inventory: &Inventory{Client: inventory}}}
	syncTarget := &edgev2alpha1.SyncTarget{}
	syncTarget.Name, syncTarget.UID = "florin", "uid"
	syncTarget.Spec.KubeconfigSecretRef = &edgev2alpha1.SecretReference{Namespace: "default", Name: "florin-agent", Key: edgev2alpha1.AgentKeyField}
	ensure := func(change func(data map[string][]byte)) map[string][]byte {
		t.Helper()
		var secret corev1.Secret
		if err := inventory.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "florin-agent"}, &secret); err == nil {
			change(secret.Data)
			if err := inventory.Update(t.Context(), &secret); err != nil {
				t.Fatal(err)
			}
		}
		keys, err := agent.ensureKeys(t.Context(), syncTarget)
		if err != nil {
			t.Fatal(err)
		}
		if err := inventory.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "florin-agent"}, &secret); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{edgev2alpha1.AgentKeyField, edgev2alpha1.MarkKeyField} {
			if len(keys[name]) != edgev2alpha1.AgentKeyLength || !bytes.Equal(secret.Data[name], keys[name]) {
				t.Errorf("%s has %d bytes, and is stored: %v", name, len(keys[name]), bytes.Equal(secret.Data[name], keys[name]))
			}
		}
		return keys
	}
	first := ensure(nil)
	if bytes.Equal(first[edgev2alpha1.AgentKeyField], first[edgev2alpha1.MarkKeyField]) {
		t.Error("both keys are the same")
	}
	for name, test := range map[string]struct {
		change   func(data map[string][]byte)
		replaced []string
	}{
		"nothing":      {func(map[string][]byte) {}, nil},
		"agent key":    {func(data map[string][]byte) { delete(data, edgev2alpha1.AgentKeyField) }, []string{edgev2alpha1.AgentKeyField}},
		"a kubeconfig": {func(data map[string][]byte) { data[edgev2alpha1.AgentKeyField] = make([]byte, 1000) }, []string{edgev2alpha1.AgentKeyField}},
		"no mark key":  {func(data map[string][]byte) { delete(data, edgev2alpha1.MarkKeyField) }, []string{edgev2alpha1.MarkKeyField}},
	} {
		before := ensure(func(map[string][]byte) {})
		after := ensure(test.change)
		for _, field := range []string{edgev2alpha1.AgentKeyField, edgev2alpha1.MarkKeyField} {
			if replaced := !bytes.Equal(before[field], after[field]); replaced != slices.Contains(test.replaced, field) {
				t.Errorf("%s: %s was replaced: %v", name, field, replaced)
			}
		}
	}
}
