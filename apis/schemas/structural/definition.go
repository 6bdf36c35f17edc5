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

package structural

import (
	"encoding/json"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// definition returns the schema of a CRD as its OpenAPI document repeats it. In the document the metadata of the
// object, and of embedded objects, is a reference, which CRDs may not contain; definition replaces it.
func definition(component *spec.Schema) (*apiextensionsv1.JSONSchemaProps, error) {
	raw, err := json.Marshal(component)
	if err != nil {
		return nil, err
	}
	root := &apiextensionsv1.JSONSchemaProps{}
	if err := json.Unmarshal(raw, root); err != nil {
		return nil, err
	}
	walk(root, position{}, func(node *apiextensionsv1.JSONSchemaProps, at position) {
		metadata, ok := node.Properties["metadata"]
		if ok && (at.path == "" || node.XEmbeddedResource || refersToMeta(&metadata)) {
			node.Properties["metadata"] = apiextensionsv1.JSONSchemaProps{Type: typeObject}
		}
	})
	return root, nil
}

func refersToMeta(s *apiextensionsv1.JSONSchemaProps) bool {
	return s.Ref != nil || len(s.AllOf) == 1 && s.AllOf[0].Ref != nil
}
