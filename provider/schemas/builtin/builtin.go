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

// Package builtin has the schemas of the kinds of Kubernetes that mailboxes get from the hub, since kcp does not serve these kinds.
// `make schemas` writes them from the pinned kube-apiserver.
package builtin

import (
	"embed"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
)

//go:embed *.yaml
var files embed.FS

// FileName returns the name of the file with the schema of a resource.
func FileName(resource schema.GroupResource) string { return resource.String() + ".yaml" }

// Find returns the schema of a resource, as a CustomResourceDefinition with the names that clusters use. The caller may change it.
func Find(resource synchubv1alpha1.ResourceDescriptor) (*apiextensionsv1.CustomResourceDefinition, error) {
	name := schema.GroupResource{Group: resource.Group, Resource: resource.Resource}
	content, err := files.ReadFile(FileName(name))
	if err != nil {
		return nil, fmt.Errorf("the hub has no schema of %s: take it from the hosting cluster, a SyncTarget or a ConfigMap", name)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(content, definition); err != nil {
		return nil, fmt.Errorf("read the hub's schema of %s: %w", name, err)
	}
	return definition, nil
}
