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

package policy_test

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan/policy"
)

// reason returns the reason of a denial; empty if there is none.
func reason(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	refusal, ok := errors.AsType[*policy.DeniedError](err)
	if !ok || refusal.Message == "" || refusal.Error() != refusal.Message {
		t.Errorf("a denial without a remedy: %v", err)
		return ""
	}
	return refusal.Reason
}

func TestNamespaces(t *testing.T) {
	const denied, elsewhere = policy.ReasonNamespaceProtected, policy.ReasonNamespaceNotAllowed
	byDefault := &policy.NamespacePolicy{Protected: policy.DefaultProtectedNamespaces}
	allowing := &policy.NamespacePolicy{Protected: policy.DefaultProtectedNamespaces, Allowed: policy.NamespacePatterns{"kube-public", "synchub-*"}}
	bound := &policy.NamespacePolicy{Protected: policy.DefaultProtectedNamespaces, Only: []string{"shop", "kube-system"}}
	both := &policy.NamespacePolicy{Protected: policy.DefaultProtectedNamespaces, Only: []string{"shop", "kube-system"}, Allowed: policy.NamespacePatterns{"*"}}
	for name, test := range map[string]struct {
		namespaces *policy.NamespacePolicy
		namespace  string
		// want is for a PublishedResource that denies, allowed for one that allows.
		want, allowed string
	}{
		"no rule":                         {nil, "kube-system", "", ""},
		"a plain one":                     {byDefault, "shop", "", ""},
		"Kubernetes' own":                 {byDefault, "kube-system", denied, ""},
		"a CNI's":                         {byDefault, "kube-flannel", denied, ""},
		"kcp's own":                       {byDefault, "kcp-system", denied, ""},
		"not kcp's own":                   {byDefault, "kcp", "", ""},
		"no prefix":                       {byDefault, "kubernetes", "", ""},
		"a hub's identity":                {byDefault, "synchub", denied, ""},
		"a hub's":                         {byDefault, "synchub-system", denied, ""},
		"not a hub's":                     {byDefault, "synchubs", "", ""},
		"default":                         {byDefault, "default", "", ""},
		"allowed":                         {allowing, "kube-public", "", ""},
		"allowed by its beginning":        {allowing, "synchub-system", "", ""},
		"another than the allowed":        {allowing, "kube-system", denied, ""},
		"bound, inside":                   {bound, "shop", "", ""},
		"bound, outside":                  {bound, "till", elsewhere, elsewhere},
		"bound to a protected one":        {bound, "kube-system", denied, ""},
		"bound to one that is allowed":    {both, "kube-system", "", ""},
		"allowed, but bound to another":   {both, "kube-public", elsewhere, elsewhere},
		"everything allowed, but bound":   {both, "till", elsewhere, elsewhere},
		"an empty name matches no prefix": {byDefault, "", "", ""},
	} {
		if got := reason(t, test.namespaces.Check(test.namespace, false)); got != test.want {
			t.Errorf("%s: want %q, got %q", name, test.want, got)
		}
		if got := reason(t, test.namespaces.Check(test.namespace, true)); got != test.allowed {
			t.Errorf("%s, allowed by the PublishedResource: want %q, got %q", name, test.allowed, got)
		}
	}
	if err := bound.CheckProtected("till", false); err != nil {
		t.Errorf("a namespace of the mailbox: %v", err)
	}
	if !byDefault.Equal(&policy.NamespacePolicy{Protected: policy.DefaultProtectedNamespaces}) || byDefault.Equal(allowing) || byDefault.Equal(bound) || byDefault.Equal(nil) || bound.Equal(both) {
		t.Error("the same is not what is equal")
	}
}

func TestParsePatterns(t *testing.T) {
	for text, ok := range map[string]bool{
		"kube-*": true, "*": true, "shop": true, "a": true,
		"": false, "Shop": false, "kube-": false, "*-system": false, "a*b": false, "-*": false, "a.b": false, "a/b*": false, strings.Repeat("x", 64): false,
	} {
		if _, err := policy.ParseNamespacePatterns([]string{"first", text}); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := policy.ParseNamespacePatterns(policy.DefaultProtectedNamespaces); err != nil {
		t.Error(err)
	}
}

// CheckUpsync checks the API on both sides.
func TestCheckUpsync(t *testing.T) {
	privileged := []string{
		"roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io", "clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io",
		"mutatingwebhookconfigurations.admissionregistration.k8s.io", "validatingwebhookconfigurations.admissionregistration.k8s.io",
		"validatingadmissionpolicies.admissionregistration.k8s.io", "validatingadmissionpolicybindings.admissionregistration.k8s.io",
		"mutatingadmissionpolicies.admissionregistration.k8s.io", "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
		"apiservices.apiregistration.k8s.io", "customresourcedefinitions.apiextensions.k8s.io",
		"certificatesigningrequests.certificates.k8s.io", "clustertrustbundles.certificates.k8s.io",
		"flowschemas.flowcontrol.apiserver.k8s.io", "tokenreviews.authentication.k8s.io", "subjectaccessreviews.authorization.k8s.io",
		"resourcequotas", "limitranges",
		"apibindings.apis.kcp.io", "apiexports.apis.kcp.io", "logicalclusters.core.kcp.io", "shards.core.kcp.io", "workspaces.tenancy.kcp.io", "workspacetypes.tenancy.kcp.io",
		"partitions.topology.kcp.io", "cachedresources.cache.kcp.io", "anything.kcp.io",
		"synctargets.edge.kubestellar.io", "syncerconfigs.edge.kubestellar.io", "edgesyncconfigs.edge.kubestellar.io", "publishedresources.synchub.dev",
	}
	for _, name := range privileged {
		api, plain := schema.ParseGroupResource(name), schema.ParseGroupResource("plain.example.com")
		for _, err := range []error{policy.CheckUpsync(api, api), policy.CheckUpsync(plain, api), policy.CheckUpsync(api, plain)} {
			if reason(t, err) != policy.ReasonPrivilegedUpsync || !strings.HasPrefix(err.Error(), name+" ") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for _, name := range []string{
		"configmaps", "secrets", "serviceaccounts", "namespaces", "pods", "services", "events", "deployments.apps", "leases.coordination.k8s.io", "networkpolicies.networking.k8s.io",
		"resourcequotas.example.com", "roles.example.com", "policyreports.wgpolicyk8s.io", "certificates.cert-manager.io", "widgets.notkcp.io",
	} {
		if err := policy.CheckUpsync(schema.ParseGroupResource(name), schema.ParseGroupResource(name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheckName(t *testing.T) {
	for name, reserved := range map[string]bool{
		"configmaps a/kube-root-ca.crt": true, "configmaps a/x": false, "configmaps.example.com a/kube-root-ca.crt": false,
		"serviceaccounts a/default": true, "serviceaccounts a/robot": false,
		"secrets kcp-system/widgets": true, "secrets.example.com kcp-system/x": true, "secrets a/kcp-system": false, "namespaces kcp-system": true,
		"namespaces default": true, "namespaces kube-system": true, "namespaces shop": false,
		"clusterrolebindings.rbac.authorization.k8s.io synchub:cluster-admin": true, "clusterrolebindings.rbac.authorization.k8s.io workspace-admin": true,
		"clusterroles.rbac.authorization.k8s.io system:kcp:admin": true, "clusterroles.rbac.authorization.k8s.io cluster-admin": true,
		"roles.rbac.authorization.k8s.io a/system:x": true, "roles.rbac.authorization.k8s.io a/reader": false, "clusterroles.rbac.authorization.k8s.io viewer": false,
		"configmaps a/system:x": false,
	} {
		resource, key, _ := strings.Cut(name, " ")
		named := types.NamespacedName{Name: key}
		if namespace, rest, ok := strings.Cut(key, "/"); ok {
			named = types.NamespacedName{Namespace: namespace, Name: rest}
		}
		if got := reason(t, policy.CheckReservedName(schema.ParseGroupResource(resource), named)); (got == policy.ReasonNameReserved) != reserved {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Any pattern is refused, or matches exactly the names that it stands for, and no longer name.
func FuzzPatterns(f *testing.F) {
	for _, text := range []string{"", "*", "kube-*", "kube-system", "a*b", "**", "-*", "ä"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		patterns, err := policy.ParseNamespacePatterns([]string{text})
		if err != nil {
			return
		}
		prefix, isPrefix := strings.CutSuffix(text, "*")
		if !patterns.Match(prefix) || patterns.Match(prefix+"-more") != isPrefix {
			t.Errorf("%q matches %q: %t, and %q: %t", text, prefix, patterns.Match(prefix), prefix+"-more", patterns.Match(prefix+"-more"))
		}
	})
}
