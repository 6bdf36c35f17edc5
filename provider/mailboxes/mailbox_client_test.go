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

package mailboxes

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
)

// kcp's virtual workspace removes the schemas from CustomResourceDefinitions, so these go to the workspace itself, and nothing else does.
func TestDefinitionsAreWrittenToTheWorkspace(t *testing.T) {
	definitions := crdResource.WithVersion("v1")
	kinds := map[schema.GroupVersionResource]string{definitions: "CustomResourceDefinitionList", configMaps: "ConfigMapList"}
	virtual, workspace := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds), dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds)
	client := mailboxClient{virtual, workspace}
	create := func(resource schema.GroupVersionResource, kind string) {
		t.Helper()
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(resource.GroupVersion().WithKind(kind))
		object.SetName("a")
		if _, err := client.Resource(resource).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	create(definitions, "CustomResourceDefinition")
	if len(virtual.Actions()) != 0 || len(workspace.Actions()) != 1 {
		t.Errorf("%d requests to the virtual workspace, %d to the workspace", len(virtual.Actions()), len(workspace.Actions()))
	}
	create(configMaps, "ConfigMap")
	if len(virtual.Actions()) != 1 || len(workspace.Actions()) != 1 {
		t.Errorf("%d requests to the virtual workspace, %d to the workspace", len(virtual.Actions()), len(workspace.Actions()))
	}
}
