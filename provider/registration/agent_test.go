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
	"slices"
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
