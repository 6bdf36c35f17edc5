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

package builtin

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/provider/schemas"
)

func TestEachSchemaCanBeExported(t *testing.T) {
	entries, err := files.ReadDir(".")
	if err != nil || len(entries) == 0 {
		t.Fatalf("there are %d schemas, %v", len(entries), err)
	}
	for _, entry := range entries {
		resource := schema.ParseGroupResource(strings.TrimSuffix(entry.Name(), ".yaml"))
		definition, err := Find(synchubv1alpha1.ResourceDescriptor{Group: resource.Group, Resource: resource.Resource})
		if err != nil {
			t.Errorf("%s: %v", entry.Name(), err)
			continue
		}
		if definition.Spec.Group != resource.Group || definition.Spec.Names.Plural != resource.Resource {
			t.Errorf("%s is the schema of %s.%s", entry.Name(), definition.Spec.Names.Plural, definition.Spec.Group)
		}
		if _, err := schemas.FromCRD(definition); err != nil {
			t.Errorf("%s: %v", entry.Name(), err)
		}
	}
}

func TestAnUnknownResourceHasNoSchema(t *testing.T) {
	for _, resource := range []synchubv1alpha1.ResourceDescriptor{{}, {Resource: "deployments"}, {Group: "apps", Resource: "../deployments"}, {Group: "apps", Kind: "Deployment"}} {
		if _, err := Find(resource); err == nil || !strings.Contains(err.Error(), "the hub has no schema of") {
			t.Errorf("%+v: %v", resource, err)
		}
	}
}
