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
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Kind describes a kind as the discovery of a cluster returns it.
type Kind struct {
	schema.GroupVersionKind
	Plural, Singular       string
	ShortNames, Categories []string
	// Namespaced is true if objects are in namespaces.
	Namespaced bool
	// Status and Scale are true if the cluster serves these subresources.
	Status, Scale bool
}

// Note describes a part of a schema that was not kept.
type Note struct {
	// Path of the field, for example .spec.containers[].ports; empty for the whole object.
	Path string
	// Reason names the removed part and the cause.
	Reason string
}

// String returns the note on one line.
func (n Note) String() string { return cmp.Or(n.Path, ".") + ": " + n.Reason }

// Schema converts the OpenAPI v3 document of the kind's group and version, which a cluster serves below /openapi/v3,
// to a version of a CRD. The version is served, and is not the storage version. Schema returns an error if the
// document does not describe the kind or cannot be expressed as a structural schema, and a [*TooLargeError] if the
// document exceeds a limit.
func Schema(ctx context.Context, document []byte, kind Kind) (*apiextensionsv1.CustomResourceDefinitionVersion, []Note, error) {
	components, err := parse(document)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the OpenAPI document of %s: %w", kind.GroupVersion(), err)
	}
	component, err := components.kind(kind.GroupVersionKind)
	if err != nil {
		return nil, nil, err
	}
	root, notes, err := components.schema(component)
	if err != nil {
		return nil, nil, fmt.Errorf("converting the OpenAPI schema of %s: %w", kind.GroupVersionKind, err)
	}
	version := &apiextensionsv1.CustomResourceDefinitionVersion{
		Name:   kind.Version,
		Served: true,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: root},
	}
	notes = append(notes, setSubresources(version, kind)...)
	more, err := Sanitize(ctx, version)
	if err != nil {
		return nil, nil, fmt.Errorf("converting the OpenAPI schema of %s: %w", kind.GroupVersionKind, err)
	}
	return version, append(notes, more...), nil
}

// schema converts the component of a kind.
func (c *components) schema(component *spec.Schema) (*apiextensionsv1.JSONSchemaProps, []Note, error) {
	if c.isDefinition(component) {
		root, err := definition(component)
		return root, nil, err
	}
	converter := &converter{components: c}
	root := converter.convertKind(component)
	return root, converter.notes, cmp.Or(converter.err, c.err)
}

// IsDefinition reports whether the OpenAPI v3 document of a group and version repeats the schema of a CRD for a kind,
// rather than describing a Go type of the server.
func IsDefinition(document []byte, kind schema.GroupVersionKind) (bool, error) {
	components, err := parse(document)
	if err != nil {
		return false, fmt.Errorf("reading the OpenAPI document of %s: %w", kind.GroupVersion(), err)
	}
	component, err := components.kind(kind)
	if err != nil {
		return false, err
	}
	return components.isDefinition(component), nil
}

// Paths of the replicas of scalable kinds. Every built-in kind with the subresource scale has its replicas there.
const (
	specReplicas   = ".spec.replicas"
	statusReplicas = ".status.replicas"
)

// setSubresources gives the version the subresources that the cluster serves and kcp can serve too. A kind whose
// selector is not a string, such as a Deployment, gets a scale subresource without selector: autoscalers work on the
// target.
func setSubresources(version *apiextensionsv1.CustomResourceDefinitionVersion, kind Kind) (notes []Note) {
	subresources := &apiextensionsv1.CustomResourceSubresources{}
	if kind.Status {
		subresources.Status = &apiextensionsv1.CustomResourceSubresourceStatus{}
	}
	if kind.Scale {
		root := version.Schema.OpenAPIV3Schema
		if root.Properties["spec"].Properties["replicas"].Type == typeInteger &&
			root.Properties["status"].Properties["replicas"].Type == typeInteger {
			subresources.Scale = &apiextensionsv1.CustomResourceSubresourceScale{
				SpecReplicasPath: specReplicas, StatusReplicasPath: statusReplicas,
			}
			forbidNullReplicas(root)
		} else {
			notes = append(notes, Note{Path: ".spec", Reason: "the subresource scale is left out: " + specReplicas + " or " + statusReplicas + " is no integer"})
		}
	}
	if *subresources != (apiextensionsv1.CustomResourceSubresources{}) {
		version.Subresources = subresources
	}
	return notes
}

// forbidNullReplicas makes kcp drop a null from a create or an update, which it refuses in a field of the subresource scale.
func forbidNullReplicas(root *apiextensionsv1.JSONSchemaProps) {
	spec := root.Properties["spec"]
	replicas := spec.Properties["replicas"]
	forbidNull(&replicas)
	spec.Properties["replicas"] = replicas
}

// position is a location in a schema.
type position struct {
	// path of the field in an object.
	path string
	// schema is the path in the schema, relative to the start of the walk.
	schema *field.Path
}

// walk visits a schema and the schemas of its fields, items and values, each before its content, in a fixed order.
// walk does not follow allOf, anyOf, oneOf and not, which only restrict fields that are described elsewhere.
func walk(node *apiextensionsv1.JSONSchemaProps, at position, visit func(*apiextensionsv1.JSONSchemaProps, position)) {
	visit(node, at)
	for _, name := range slices.Sorted(maps.Keys(node.Properties)) {
		property := node.Properties[name]
		walk(&property, position{at.path + "." + name, at.schema.Child("properties").Key(name)}, visit)
		node.Properties[name] = property
	}
	if node.Items != nil && node.Items.Schema != nil {
		walk(node.Items.Schema, position{at.path + "[]", at.schema.Child("items")}, visit)
	}
	if node.AdditionalProperties != nil && node.AdditionalProperties.Schema != nil {
		walk(node.AdditionalProperties.Schema, position{at.path + ".*", at.schema.Child("additionalProperties")}, visit)
	}
}
