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

package apiresourceschema

import (
	"errors"
	"strings"
	"testing"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
)

// What can be decided without looking anywhere.
func TestEnsureWithoutConfigMap(t *testing.T) {
	for name, test := range map[string]struct {
		resource synchubv1alpha1.ResourceDescriptor
		api      synchubv1alpha1.APISource
		// reason is that of the problem, field what it is about; both are empty for a claim.
		reason, field string
	}{
		"a claim":              {synchubv1alpha1.ResourceDescriptor{Resource: "configmaps"}, synchubv1alpha1.APISource{}, "", ""},
		"a claim by its kind":  {synchubv1alpha1.ResourceDescriptor{Kind: "Secret"}, synchubv1alpha1.APISource{Source: synchubv1alpha1.APISourceClaim}, "", ""},
		"no source at all":     {synchubv1alpha1.ResourceDescriptor{Group: "apps", Resource: "deployments"}, synchubv1alpha1.APISource{}, ReasonSchemaMissing, "spec.api.schemaFrom.configMap"},
		"the hosting cluster":  {synchubv1alpha1.ResourceDescriptor{Group: "apps", Resource: "deployments"}, synchubv1alpha1.APISource{SchemaFrom: &synchubv1alpha1.SchemaFrom{HostingCluster: &synchubv1alpha1.HostingClusterSchema{}}}, ReasonSchemaMissing, "spec.api.schemaFrom.configMap"},
		"what cannot be":       {synchubv1alpha1.ResourceDescriptor{Group: "apps", Resource: "deployments"}, synchubv1alpha1.APISource{Source: synchubv1alpha1.APISourceClaim}, ReasonInvalid, "spec.api.source"},
		"what acts inside kcp": {synchubv1alpha1.ResourceDescriptor{Resource: "resourcequotas"}, synchubv1alpha1.APISource{}, ReasonInvalid, "spec.resource"},
		"a version too many":   {synchubv1alpha1.ResourceDescriptor{Resource: "configmaps", Version: "v2"}, synchubv1alpha1.APISource{}, ReasonInvalid, "spec.resource.version"},
	} {
		t.Run(name, func(t *testing.T) {
			published := &synchubv1alpha1.PublishedResource{}
			published.Spec.Resource, published.Spec.API = test.resource, test.api
			schema, err := (&Controller{}).ensure(t.Context(), published)
			if schema != "" {
				t.Errorf("got the schema %s", schema)
			}
			if test.reason == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var problem *problem
			if !errors.As(err, &problem) || problem.reason != test.reason || !strings.HasPrefix(err.Error(), test.field+":") || errors.Unwrap(problem) == nil {
				t.Errorf("want %s about %s, got %v", test.reason, test.field, err)
			}
		})
	}
}

func TestConfigMapOf(t *testing.T) {
	configMap := &synchubv1alpha1.ConfigMapSchema{Name: "n"}
	for name, test := range map[string]struct {
		from *synchubv1alpha1.SchemaFrom
		want *synchubv1alpha1.ConfigMapSchema
	}{
		"nothing":             {nil, nil},
		"the hosting cluster": {&synchubv1alpha1.SchemaFrom{HostingCluster: &synchubv1alpha1.HostingClusterSchema{}}, nil},
		"a ConfigMap":         {&synchubv1alpha1.SchemaFrom{ConfigMap: configMap}, configMap},
	} {
		spec := &synchubv1alpha1.PublishedResourceSpec{API: synchubv1alpha1.APISource{SchemaFrom: test.from}}
		if got := configMapOf(spec); got != test.want {
			t.Errorf("%s: want %v, got %v", name, test.want, got)
		}
	}
}
