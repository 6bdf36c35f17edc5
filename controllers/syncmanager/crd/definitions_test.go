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

package crd_test

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/syncmanager/crd"
)

var testOwner = ownership.Owner{Hub: "hub", SyncTarget: "sync-target", Sealer: ownership.NewSealer([]byte("key"))}

// newCRD returns a CRD of the plural with the versions, all of them served. The last one is the storage version.
func newCRD(plural, kind string, versions ...string) *apiextensionsv1.CustomResourceDefinition {
	result := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
		},
	}
	for i, name := range versions {
		result.Spec.Versions = append(result.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: i == len(versions)-1,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"size": {Type: "integer"}},
			}},
		})
	}
	return result
}

// group is the API group of the CRDs that tests make up.
const group = "tests.example.org"

// installationOf returns the installation of a CRD for a PublishedResource.
func installationOf(object *apiextensionsv1.CustomResourceDefinition) crd.Installation {
	return crd.Installation{PublishedResource: "published", UID: "published-uid", CRD: object}
}

// desired returns the CRD that a target of testOwner must have.
func desired(t *testing.T, object *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	result, err := crd.Desired(installationOf(object), testOwner)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// established returns the CRD in the form that a serving target has.
func established(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	result := crd.DeepCopy()
	result.UID, result.ResourceVersion, result.Generation = "uid", "7", 3
	result.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "somebody"}}
	result.Status.AcceptedNames = result.Spec.Names
	result.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
		{Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue},
		{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue},
	}
	for _, version := range result.Spec.Versions {
		if version.Storage {
			result.Status.StoredVersions = append(result.Status.StoredVersions, version.Name)
		}
	}
	return result
}
