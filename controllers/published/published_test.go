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

package published_test

import (
	"strings"
	"testing"

	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/published"
	"github.com/synchub-dev/synchub/controllers/sync"
)

// described is the spec for a resource named as "group resource Kind version", where - stands for what is not said.
func described(text string) synchubv1alpha1.PublishedResourceSpec {
	parts := strings.Fields(text)
	for i := range parts {
		parts[i] = strings.Trim(parts[i], "-")
	}
	return synchubv1alpha1.PublishedResourceSpec{
		Resource: synchubv1alpha1.ResourceDescriptor{Group: parts[0], Resource: parts[1], Kind: parts[2], Version: parts[3]},
	}
}

func TestIsClaim(t *testing.T) {
	const (
		claim, schema = "a claim", "a schema"
		use, version  = "use Schema", "spec.resource.version"
		acts          = "inside kcp itself"
	)
	for name, test := range map[string]struct {
		resource string
		// What follows for each source: claim, schema, or part of the error.
		auto, schema, claim string
	}{
		"a native by its resource":              {"- configmaps - -", claim, schema, claim},
		"a native by its kind":                  {"- - ConfigMap -", claim, schema, claim},
		"a native by both":                      {"- secrets Secret v1", claim, schema, claim},
		"a native of a group":                   {"rbac.authorization.k8s.io roles - v1", claim, schema, claim},
		"a native of a group by its kind":       {"coordination.k8s.io - Lease -", claim, schema, claim},
		"a native that is cluster-scoped":       {"- namespaces - -", claim, schema, claim},
		"a native in another version":           {"- configmaps - v2", version, schema, version},
		"a native by its kind, another version": {"certificates.k8s.io - CertificateSigningRequest v1beta1", version, schema, version},
		"a native's name in another group":      {"example.com configmaps ConfigMap v1", schema, schema, use},
		"another kind of a native's name":       {"- configmaps Secret -", schema, schema, use},
		"unknown":                               {"apps deployments - v1", schema, schema, use},
		"unknown by its kind":                   {"apps - Deployment -", schema, schema, use},
		"acting":                                {"- resourcequotas - -", acts, acts, acts},
		"acting by its kind":                    {"- - ResourceQuota v1", acts, acts, acts},
		"acting by both":                        {"admissionregistration.k8s.io mutatingwebhookconfigurations MutatingWebhookConfiguration v1", acts, acts, acts},
		"acting webhooks":                       {"admissionregistration.k8s.io validatingwebhookconfigurations - -", acts, acts, acts},
		"acting webhooks by their kind":         {"admissionregistration.k8s.io - ValidatingWebhookConfiguration -", acts, acts, acts},
		"acting policies":                       {"admissionregistration.k8s.io validatingadmissionpolicies - -", acts, acts, acts},
		"acting policies by their kind":         {"admissionregistration.k8s.io - ValidatingAdmissionPolicy -", acts, acts, acts},
		"acting bindings by their kind":         {"admissionregistration.k8s.io - ValidatingAdmissionPolicyBinding -", acts, acts, acts},
		"an acting one's name in another group": {"example.com resourcequotas ResourceQuota v1", schema, schema, use},
	} {
		for source, want := range map[synchubv1alpha1.APISourceType]string{
			"": test.auto, synchubv1alpha1.APISourceAuto: test.auto, synchubv1alpha1.APISourceSchema: test.schema, synchubv1alpha1.APISourceClaim: test.claim,
		} {
			spec := described(test.resource)
			spec.API.Source = source
			isClaim, err := published.IsClaim(&spec)
			got := schema
			switch {
			case err != nil && isClaim:
				got = "a claim and " + err.Error()
			case err != nil:
				got = err.Error()
			case isClaim:
				got = claim
			}
			if got != want && (err == nil || isClaim || !strings.Contains(got, want)) {
				t.Errorf("%s, source %q: want %s, got %s", name, source, want, got)
			}
		}
	}
}

func TestClaimed(t *testing.T) {
	core := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Version: "v1", Resource: resource}
	}
	for name, test := range map[string]struct {
		resource string
		deletion *synchubv1alpha1.Deletion
		want     sync.Resource
	}{
		"by its resource": {"- configmaps - -", nil, sync.Resource{GroupVersionResource: core("configmaps"), Kind: "ConfigMap", Namespaced: true}},
		"by its kind":     {"- - Secret -", nil, sync.Resource{GroupVersionResource: core("secrets"), Kind: "Secret", Namespaced: true}},
		"of a group": {
			"rbac.authorization.k8s.io - ClusterRole -", nil,
			sync.Resource{GroupVersionResource: schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}, Kind: "ClusterRole"},
		},
		"orphaned": {
			"- configmaps - -", &synchubv1alpha1.Deletion{Policy: synchubv1alpha1.DeletionPolicyOrphan},
			sync.Resource{GroupVersionResource: core("configmaps"), Kind: "ConfigMap", Namespaced: true, Orphan: true},
		},
		"deleted": {
			"- configmaps - -", &synchubv1alpha1.Deletion{Policy: synchubv1alpha1.DeletionPolicyDelete},
			sync.Resource{GroupVersionResource: core("configmaps"), Kind: "ConfigMap", Namespaced: true},
		},
		"a namespace":            {"- namespaces - -", nil, sync.Resource{GroupVersionResource: core("namespaces"), Kind: "Namespace", Container: true, Retain: true}},
		"a namespace by kind":    {"- - Namespace -", &synchubv1alpha1.Deletion{}, sync.Resource{GroupVersionResource: core("namespaces"), Kind: "Namespace", Container: true, Retain: true}},
		"a namespace in cascade": {"- namespaces - -", &synchubv1alpha1.Deletion{Cascade: true}, sync.Resource{GroupVersionResource: core("namespaces"), Kind: "Namespace", Container: true}},
		"cascade elsewhere":      {"- configmaps - -", &synchubv1alpha1.Deletion{Cascade: true}, sync.Resource{GroupVersionResource: core("configmaps"), Kind: "ConfigMap", Namespaced: true}},
		"a CRD": {
			"apiextensions.k8s.io - CustomResourceDefinition -", nil,
			sync.Resource{GroupVersionResource: schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, Kind: "CustomResourceDefinition", Container: true, Retain: true},
		},
		"a CRD in cascade, orphaned": {
			"apiextensions.k8s.io customresourcedefinitions - -", &synchubv1alpha1.Deletion{Cascade: true, Policy: synchubv1alpha1.DeletionPolicyOrphan},
			sync.Resource{GroupVersionResource: schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, Kind: "CustomResourceDefinition", Container: true, Orphan: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := described(test.resource)
			spec.Deletion = test.deletion
			if isClaim, err := published.IsClaim(&spec); !isClaim || err != nil {
				t.Fatalf("it is no claim: %v", err)
			}
			// kcp keeps the status of what it serves by itself, if it has one.
			test.want.Native = true
			if got := published.Claimed(&spec); got != test.want {
				t.Errorf("want %+v\ngot  %+v", test.want, got)
			}
		})
	}
}

// What the PublishedResource says of objects that are in the way goes with the resource, however mailboxes get its API.
func TestPoliciesForWhatIsInTheWay(t *testing.T) {
	for _, replace := range []bool{false, true} {
		for _, adoption := range []synchubv1alpha1.AdoptionPolicy{
			"", synchubv1alpha1.AdoptionNever, synchubv1alpha1.AdoptionIfIdentical, synchubv1alpha1.AdoptionKubeStellar, synchubv1alpha1.AdoptionAlways,
		} {
			claim, export := described("- namespaces - -"), described("apps deployments - v2")
			for _, spec := range []*synchubv1alpha1.PublishedResourceSpec{&claim, &export} {
				spec.Replace, spec.Adoption = replace, adoption
			}
			claimed := published.Claimed(&claim)
			if claimed.Replace != replace || claimed.Adoption != adoption || !claimed.Native || !claimed.Container {
				t.Errorf("replace %v, adoption %q: claimed is %+v", replace, adoption, claimed)
			}
			exported, err := published.Exported(&export, deploymentSchema(apiextensionsv1.NamespaceScoped))
			if err != nil || exported.Replace != replace || exported.Adoption != adoption || exported.Native || exported.Container {
				t.Errorf("replace %v, adoption %q: exported is %+v, %v", replace, adoption, exported, err)
			}
		}
	}
}

// deploymentSchema serves v2 with a status subresource and v1 without; v3 is not served.
func deploymentSchema(scope apiextensionsv1.ResourceScope) *apisv1alpha1.APIResourceSchema {
	schema := &apisv1alpha1.APIResourceSchema{}
	schema.Name = "hash.deployments.apps"
	schema.Spec.Group, schema.Spec.Scope = "apps", scope
	schema.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "deployments", Kind: "Deployment"}
	schema.Spec.Versions = []apisv1alpha1.APIResourceVersion{
		{Name: "v3", Storage: true},
		{Name: "v2", Served: true, Subresources: apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}},
		{Name: "v1", Served: true},
	}
	return schema
}

func exportedIn(version string) sync.Resource {
	return sync.Resource{
		GroupVersionResource: schema.GroupVersionResource{Group: "apps", Version: version, Resource: "deployments"},
		Kind:                 "Deployment", Namespaced: true, StatusReturn: true,
	}
}

func TestExported(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*synchubv1alpha1.PublishedResourceSpec)
		scope  apiextensionsv1.ResourceScope
		want   func(*sync.Resource)
	}{
		"as it is":       {func(*synchubv1alpha1.PublishedResourceSpec) {}, apiextensionsv1.NamespaceScoped, func(*sync.Resource) {}},
		"cluster-scoped": {func(*synchubv1alpha1.PublishedResourceSpec) {}, apiextensionsv1.ClusterScoped, func(r *sync.Resource) { r.Namespaced = false }},
		"with its status": {
			func(s *synchubv1alpha1.PublishedResourceSpec) { s.StatusReturn = new(true) }, apiextensionsv1.NamespaceScoped, func(*sync.Resource) {},
		},
		"without its status": {
			func(s *synchubv1alpha1.PublishedResourceSpec) { s.StatusReturn = new(false) }, apiextensionsv1.NamespaceScoped,
			func(r *sync.Resource) { r.StatusReturn = false },
		},
		"orphaned": {
			func(s *synchubv1alpha1.PublishedResourceSpec) {
				s.Deletion = &synchubv1alpha1.Deletion{Policy: synchubv1alpha1.DeletionPolicyOrphan}
			}, apiextensionsv1.NamespaceScoped,
			func(r *sync.Resource) { r.Orphan = true },
		},
		"in cascade": {
			func(s *synchubv1alpha1.PublishedResourceSpec) { s.Deletion = &synchubv1alpha1.Deletion{Cascade: true} }, apiextensionsv1.NamespaceScoped,
			func(*sync.Resource) {},
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := described("apps deployments - v2")
			test.change(&spec)
			want := exportedIn("v2")
			want.StatusSubresource = true
			test.want(&want)
			got, err := published.Exported(&spec, deploymentSchema(test.scope))
			if err != nil || got != want {
				t.Errorf("want %+v\ngot  %+v, %v", want, got, err)
			}
		})
	}
}

func TestExportedVersions(t *testing.T) {
	for version, want := range map[string]string{"": "v2", "v1": "v1", "v2": "v2", "v3": "error", "v4": "error"} {
		spec := described("apps deployments - -")
		spec.Resource.Version = version
		got, err := published.Exported(&spec, deploymentSchema(apiextensionsv1.NamespaceScoped))
		if want == "error" {
			if err == nil || !strings.Contains(err.Error(), "spec.resource.version") || got != (sync.Resource{}) {
				t.Errorf("version %q: want an error about it, got %+v, %v", version, got, err)
			}
			continue
		}
		expected := exportedIn(want)
		expected.StatusSubresource = want == "v2"
		if err != nil || got != expected {
			t.Errorf("version %q: want %+v, got %+v, %v", version, expected, got, err)
		}
	}
}
