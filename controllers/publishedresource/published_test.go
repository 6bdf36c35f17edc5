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

package publishedresource_test

import (
	"strings"
	"testing"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
)

// parseSpec returns the spec for a resource given as "group resource Kind version", where - stands for an empty name.
func parseSpec(text string) synchubv1alpha1.PublishedResourceSpec {
	parts := strings.Fields(text)
	for i := range parts {
		parts[i] = strings.Trim(parts[i], "-")
	}
	return synchubv1alpha1.PublishedResourceSpec{
		Resource: synchubv1alpha1.ResourceDescriptor{Group: parts[0], Resource: parts[1], Kind: parts[2], Version: parts[3]},
	}
}

const identity = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// apiSourceOf returns the API source, or the error.
func apiSourceOf(spec synchubv1alpha1.PublishedResourceSpec) string {
	source, err := publishedresource.APISourceOf(&spec)
	if err != nil {
		return strings.TrimSpace(string(source) + " " + err.Error())
	}
	return string(source)
}

func TestAPISourceOf(t *testing.T) {
	const (
		claim, schema     = string(publishedresource.NativeClaim), string(publishedresource.OwnSchema)
		use, hide         = "spec.api.source: kcp does not serve", "spec.api.source: kcp serves"
		version, resource = "spec.resource.version: kcp serves", "spec.resource: kcp serves"
		acts, ours        = "acts inside kcp itself", "selects the objects to sync"
		twins             = "spec.resource: the group denatured.synchub.dev has the twins"
	)
	for name, test := range map[string]struct {
		resource string
		// The result for each value of spec.api.source: the API source, or a part of the error.
		auto, schema, claim string
	}{
		"a native by its resource":              {"- configmaps - -", claim, hide, claim},
		"a native by its kind":                  {"- - ConfigMap -", claim, hide, claim},
		"a native by both":                      {"- secrets Secret v1", claim, hide, claim},
		"a native of a group":                   {"rbac.authorization.k8s.io roles - v1", claim, hide, claim},
		"a native of a group by its kind":       {"coordination.k8s.io - Lease -", claim, hide, claim},
		"a native that is cluster-scoped":       {"- namespaces - -", claim, hide, claim},
		"a native in another version":           {"- configmaps - v2", version, hide, version},
		"a native by its kind, another version": {"certificates.k8s.io - CertificateSigningRequest v1beta1", version, hide, version},
		"a native's name in another group":      {"example.com configmaps ConfigMap v1", schema, schema, use},
		"another kind of a native's name":       {"- configmaps Secret -", resource, resource, use},
		"unknown":                               {"apps deployments - v1", schema, schema, use},
		"unknown by its kind":                   {"apps - Deployment -", schema, schema, use},
		"acting":                                {"- resourcequotas - -", schema, acts, acts},
		"acting by its kind":                    {"- - ResourceQuota v1", schema, acts, acts},
		"acting by both":                        {"admissionregistration.k8s.io mutatingwebhookconfigurations MutatingWebhookConfiguration v1", schema, acts, acts},
		"acting webhooks":                       {"admissionregistration.k8s.io validatingwebhookconfigurations - -", schema, acts, acts},
		"acting webhooks by their kind":         {"admissionregistration.k8s.io - ValidatingWebhookConfiguration -", schema, acts, acts},
		"acting policies":                       {"admissionregistration.k8s.io validatingadmissionpolicies - -", schema, acts, acts},
		"acting policies by their kind":         {"admissionregistration.k8s.io - ValidatingAdmissionPolicy -", schema, acts, acts},
		"acting bindings by their kind":         {"admissionregistration.k8s.io - ValidatingAdmissionPolicyBinding -", schema, acts, acts},
		"one that kcp does not serve":           {"- limitranges - -", schema, schema, use},
		"of the group of twins":                 {"denatured.synchub.dev roles - -", twins, twins, twins},
		"an acting one's name in another group": {"example.com resourcequotas ResourceQuota v1", schema, schema, use},
		"events":                                {"- events - v1", resource, resource, use},
		"events by their kind":                  {"- - Event -", resource, resource, use},
		"events of the newer group":             {"events.k8s.io events Event -", resource, resource, use},
		"a review":                              {"authorization.k8s.io subjectaccessreviews - v1", resource, resource, use},
		"kcp's own":                             {"tenancy.kcp.io workspaces - v1alpha1", resource, resource, use},
		"the hub's own":                         {"edge.kubestellar.io syncerconfigs - v2alpha1", ours, ours, ours},
		"the hub's own by its kind":             {"edge.kubestellar.io - EdgeSyncConfig -", ours, ours, ours},
		"another of the hub's group":            {"edge.kubestellar.io edgeplacements - -", schema, schema, use},
	} {
		for source, want := range map[synchubv1alpha1.APISourceType]string{
			"": test.auto, synchubv1alpha1.APISourceAuto: test.auto, synchubv1alpha1.APISourceSchema: test.schema, synchubv1alpha1.APISourceClaim: test.claim,
		} {
			spec := parseSpec(test.resource)
			spec.API.Source = source
			if got := apiSourceOf(spec); got != want && (!strings.Contains(want, " ") || !strings.Contains(got, want)) {
				t.Errorf("%s, source %q: want %s, got %s", name, source, want, got)
			}
		}
	}
}

func TestAPISourceOfProjections(t *testing.T) {
	const schema, foreign = string(publishedresource.OwnSchema), string(publishedresource.ForeignClaim)
	type projection = synchubv1alpha1.Projection
	for name, test := range map[string]struct {
		resource, identity string
		projection         projection
		// want is the API source, or a prefix of the error.
		want string
	}{
		"another group":                          {"apps deployments - -", "", projection{Group: new("a.io")}, schema},
		"short names":                            {"apps deployments - -", "", projection{ShortNames: []string{"d"}}, schema},
		"a native in another group":              {"- configmaps - -", "", projection{Group: new("a.io")}, schema},
		"a native by its kind in another group":  {"- - Secret -", "", projection{Group: new("a.io")}, schema},
		"a native under its own name":            {"- configmaps - -", "", projection{ShortNames: []string{"c"}}, "spec.projection: kcp serves configmaps"},
		"a native in its own group":              {"- configmaps - -", "", projection{Group: new("")}, "spec.projection: kcp serves configmaps"},
		"a native under another plural":          {"- configmaps ConfigMap -", "", projection{Plural: "cms"}, "spec.projection: kcp serves configmaps"},
		"a native under other names":             {"- configmaps ConfigMap -", "", projection{Plural: "cms", Kind: "CM"}, schema},
		"as a native":                            {"a.io widgets - -", "", projection{Group: new(""), Plural: "configmaps"}, "spec.api.source: kcp does not serve widgets.a.io"},
		"as the kind of a native":                {"- widgets Widget -", "", projection{Kind: "Secret"}, "spec.projection: kcp serves secrets"},
		"as one of kcp's":                        {"a.io workspaces - -", "", projection{Group: new("tenancy.kcp.io")}, "spec.projection: kcp serves workspaces.tenancy.kcp.io"},
		"as one of the hub's":                    {"a.io syncerconfigs - -", "", projection{Group: new("edge.kubestellar.io")}, "spec.projection: syncerconfigs.edge.kubestellar.io selects"},
		"an acting API in another group":         {"- resourcequotas - -", "", projection{Group: new("a.io")}, schema},
		"webhooks in another group":              {"admissionregistration.k8s.io - ValidatingWebhookConfiguration -", "", projection{Group: new("a.io")}, schema},
		"an acting API under another name":       {"- resourcequotas ResourceQuota -", "", projection{Plural: "qs", Kind: "Q"}, "spec.resource: resourcequotas acts"},
		"projected to an acting API":             {"a.io resourcequotas - -", "", projection{Group: new("")}, "spec.projection: resourcequotas acts"},
		"projected to the kind of an acting API": {"- widgets Widget -", "", projection{Kind: "ResourceQuota"}, "spec.projection: resourcequotas acts"},
		"an unknown plural":                      {"a.io - A -", "", projection{Plural: "bs"}, "spec.resource.resource: required"},
		"a kind nobody knows":                    {"a.io as - -", "", projection{Kind: "B"}, "spec.resource.kind: required"},
		"an unknown version":                     {"a.io as - -", "", projection{Version: "v2"}, "spec.resource.version: required"},
		"a foreign one":                          {"a.io as - v1", identity, projection{}, foreign},
		"a foreign one in another group":         {"a.io as - v1", identity, projection{Group: new("b.io")}, foreign},
		"a foreign one under another plural":     {"a.io as - v1", identity, projection{Plural: "bs"}, foreign},
		"a foreign one without a plural":         {"a.io - A v1", identity, projection{}, "spec.resource.resource: required"},
		"a foreign one without a version":        {"a.io as - -", identity, projection{}, "spec.resource.version: required"},
		"an unknown foreign plural":              {"a.io - A v1", identity, projection{Plural: "bs"}, "spec.resource.resource: required"},
		"a foreign native":                       {"- configmaps - v1", identity, projection{}, "spec.api.identityHash: kcp serves configmaps"},
		"a twin of what can be claimed":          {"rbac.authorization.k8s.io roles - -", "", projection{Group: new("denatured.synchub.dev")}, schema},
		"a twin by its kind, with a short name":  {"- - ResourceQuota -", "", projection{Group: new("denatured.synchub.dev"), ShortNames: []string{"q"}}, schema},
		"a twin by itself, with a short name":    {"- resourcequotas - -", "", projection{ShortNames: []string{"q"}}, schema},
		"a twin of what does not act":            {"- configmaps - -", "", projection{Group: new("denatured.synchub.dev")}, "spec.projection: the group denatured.synchub.dev has the twins"},
		"a twin under another name":              {"- resourcequotas ResourceQuota -", "", projection{Group: new("denatured.synchub.dev"), Kind: "Q"}, "spec.projection: the group denatured.synchub.dev has the twins"},
		"a twin of definitions":                  {"apiextensions.k8s.io customresourcedefinitions - -", "", projection{Group: new("denatured.synchub.dev")}, "spec.projection: the group"},
		"a foreign one that acts":                {"- resourcequotas - v1", identity, projection{}, "spec.resource: resourcequotas acts"},
		"a foreign one as a native":              {"a.io as - v1", identity, projection{Group: new(""), Plural: "secrets"}, "spec.api.identityHash: kcp serves secrets"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := parseSpec(test.resource)
			spec.API.IdentityHash, spec.Projection = test.identity, &test.projection
			if got := apiSourceOf(spec); got != test.want && (!strings.Contains(test.want, " ") || !strings.HasPrefix(got, test.want)) {
				t.Errorf("want %s, got %s", test.want, got)
			}
		})
	}
}

// Claims refuse the fields that need a schema from the hub.
func TestAPISourceOfFieldsThatNeedASchema(t *testing.T) {
	claim, foreign, export := parseSpec("- configmaps - -"), parseSpec("a.io as - v1"), parseSpec("a.io as - v1")
	foreign.API.IdentityHash = identity
	for name, test := range map[string]struct {
		change func(*synchubv1alpha1.PublishedResourceSpec)
		field  string
	}{
		"installing": {func(spec *synchubv1alpha1.PublishedResourceSpec) { spec.InstallCRD = true }, "spec.installCRD: "},
		"waiting": {func(spec *synchubv1alpha1.PublishedResourceSpec) {
			spec.Deletion = &synchubv1alpha1.Deletion{WaitForTarget: true}
		}, "spec.deletion.waitForTarget: "},
	} {
		for _, spec := range []synchubv1alpha1.PublishedResourceSpec{claim, foreign} {
			test.change(&spec)
			if got := apiSourceOf(spec); !strings.HasPrefix(got, test.field) {
				t.Errorf("%s for %+v: %s", name, spec.Resource, got)
			}
		}
		test.change(&export)
		if got := apiSourceOf(export); got != string(publishedresource.OwnSchema) {
			t.Errorf("%s for an exported API: %s", name, got)
		}
	}
}

func TestInMailbox(t *testing.T) {
	all := synchubv1alpha1.Projection{Group: new(""), Version: "v2", Kind: "B", Plural: "bs"}
	for name, test := range map[string]struct {
		resource   string
		projection *synchubv1alpha1.Projection
		want       string
	}{
		"as it is":   {"a.io as A v1", nil, "a.io as A v1"},
		"all names":  {"a.io as A v1", &all, "- bs B v2"},
		"short":      {"a.io as - -", &synchubv1alpha1.Projection{ShortNames: []string{"a"}}, "a.io as - -"},
		"the group":  {"a.io as - v1", &synchubv1alpha1.Projection{Group: new("b.io")}, "b.io as - v1"},
		"the plural": {"a.io as - v1", &synchubv1alpha1.Projection{Plural: "bs"}, "a.io bs - v1"},
		"a twin":     {"- resourcequotas ResourceQuota v1", nil, "denatured.synchub.dev resourcequotas ResourceQuota v1"},
		"RBAC":       {"rbac.authorization.k8s.io roles Role v1", nil, "rbac.authorization.k8s.io roles Role v1"},
	} {
		spec := parseSpec(test.resource)
		spec.Projection = test.projection
		if got, want := publishedresource.InMailbox(&spec), parseSpec(test.want).Resource; got != want {
			t.Errorf("%s: want %+v, got %+v", name, want, got)
		}
	}
}

// Objects never come up as twins, whose originals would not follow them.
func TestTwinsDoNotComeUp(t *testing.T) {
	for _, resource := range []string{"- limitranges - -", "admissionregistration.k8s.io - ValidatingWebhookConfiguration -"} {
		spec := parseSpec(resource)
		spec.PrivilegedUpsync = synchubv1alpha1.PrivilegedUpsyncTargetGovernsMailbox
		if got := apiSourceOf(spec); !strings.HasPrefix(got, "spec.privilegedUpsync: ") {
			t.Errorf("%s: %s", resource, got)
		}
	}
}

func TestNativeAPI(t *testing.T) {
	for resource, want := range map[string]string{
		"- configmaps - -":                          "ConfigMap v1 namespaced",
		"- - Secret -":                              "Secret v1 namespaced",
		"- namespaces Namespace v1":                 "Namespace v1",
		"rbac.authorization.k8s.io - ClusterRole -": "ClusterRole v1",
		"- configmaps Secret -":                     "",
		"a.io configmaps - -":                       "",
		"- events - -":                              "",
	} {
		api, ok := publishedresource.NativeAPI(parseSpec(resource).Resource)
		got := ""
		if ok {
			got = api.Kind + " " + api.Version
			if api.Namespaced {
				got += " namespaced"
			}
		}
		if got != want || ok && (!api.Native || api.Exported || api.StatusSubresource || len(api.Versions) != 1) {
			t.Errorf("%s: want %q, got %q: %+v", resource, want, got, api)
		}
	}
}
