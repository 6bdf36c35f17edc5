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

package chart

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// defaults are the PublishedResources of the chart.
var defaults = []string{
	"apiservices", "clusterrolebindings", "clusterrolebindings.denatured.synchub.dev", "clusterroles", "clusterroles.denatured.synchub.dev",
	"configmaps", "cronjobs", "customresourcedefinitions", "daemonsets", "deployments", "endpointslices", "horizontalpodautoscalers",
	"ingressclasses", "ingresses", "jobs", "limitranges", "mutatingwebhookconfigurations", "namespaces", "networkpolicies",
	"persistentvolumeclaims", "poddisruptionbudgets", "pods", "priorityclasses", "replicasets", "resourcequotas", "rolebindings",
	"rolebindings.denatured.synchub.dev", "roles", "roles.denatured.synchub.dev", "secrets", "serviceaccounts", "services", "statefulsets",
	"storageclasses", "validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations",
}

// withSchemas are the defaults that kcp does not serve, or that mailboxes have as twins, so that the chart contains a schema.
var withSchemas = []string{
	"apiservices", "clusterrolebindings.denatured.synchub.dev", "clusterroles.denatured.synchub.dev", "cronjobs", "daemonsets", "deployments",
	"endpointslices", "horizontalpodautoscalers", "ingressclasses", "ingresses", "jobs", "limitranges", "mutatingwebhookconfigurations",
	"networkpolicies", "persistentvolumeclaims", "poddisruptionbudgets", "pods", "priorityclasses", "replicasets", "resourcequotas",
	"rolebindings.denatured.synchub.dev", "roles.denatured.synchub.dev", "services", "statefulsets", "storageclasses",
	"validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations",
}

// Each of two renderings has half of the defaults, so that each default is left out once, and stays once without its
// neighbours.
func TestEachDefaultCanBeLeftOut(t *testing.T) {
	all := objects(t)
	for half := range 2 {
		var without, want []string
		for i, name := range defaults {
			if i%2 == half {
				continue
			}
			without, want = append(without, name), append(want, "PublishedResource/"+name)
		}
		slices.Sort(want)
		rest := objects(t, "--set", "publishedResources.without={"+strings.Join(without, ",")+"}")
		missing := maps.Clone(all)
		maps.DeleteFunc(missing, func(key string, _ *unstructured.Unstructured) bool { return rest[key] != nil })
		if got := slices.Sorted(maps.Keys(missing)); !slices.Equal(got, want) {
			t.Errorf("left out\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
		}
	}
}

func TestPublishedResourcesAreHooksOnlyWhereTheKindIsUnknown(t *testing.T) {
	for _, test := range []struct {
		name string
		args []string
		hook string
		// policy avoids Helm's default, which would delete a PublishedResource before it creates the object again.
		policy string
	}{
		{name: "unknown", hook: "post-install,post-upgrade", policy: "hook-failed"},
		{name: "known", args: known},
	} {
		t.Run(test.name, func(t *testing.T) {
			rendered := objects(t, test.args...)
			if waits := rendered["Job/synchub-wait"] != nil; waits != (test.hook != "") {
				t.Errorf("a Job waits for the definition: %t", waits)
			}
			for _, key := range []string{"PublishedResource/configmaps", "PublishedResource/deployments", "CustomResourceDefinition/publishedresources.synchub.dev"} {
				annotations := rendered[key].GetAnnotations()
				if annotations["helm.sh/resource-policy"] != "keep" || !strings.Contains(annotations["argocd.argoproj.io/sync-options"], "Prune=false") || annotations["kustomize.toolkit.fluxcd.io/prune"] != "disabled" {
					t.Errorf("%s goes with the release: %v", key, annotations)
				}
				if !strings.HasPrefix(key, "PublishedResource/") {
					continue
				}
				if hook, policy := annotations["helm.sh/hook"], annotations["helm.sh/hook-delete-policy"]; hook != test.hook || policy != test.policy {
					t.Errorf("%s has the hook %q with policy %q, want %q with %q", key, hook, policy, test.hook, test.policy)
				}
			}
		})
	}
}
