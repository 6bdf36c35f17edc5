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
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

const (
	refPrefix = "#/components/schemas/"

	extensionKinds = "x-kubernetes-group-version-kind"

	objectMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
	quantity   = "io.k8s.apimachinery.pkg.api.resource.Quantity"
)

// chainLimit is the maximum number of references in a chain. Servers use one.
const chainLimit = 8

// components are the schemas of a document, by name. A document describes all kinds of a group and version. The caller needs
// one kind, so only the schemas that this kind refers to are decoded.
type components struct {
	raw     map[string]json.RawMessage
	decoded map[string]*spec.Schema
	// err is the first error of decoding a schema.
	err error
}

func parse(document []byte) (*components, error) {
	if err := CheckJSON(document, DocumentBytes); err != nil {
		return nil, err
	}
	var parsed struct {
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(document, &parsed); err != nil {
		return nil, err
	}
	for name, component := range parsed.Components.Schemas {
		if string(component) == "null" {
			return nil, fmt.Errorf("the component %s is null", name)
		}
	}
	return &components{raw: parsed.Components.Schemas, decoded: map[string]*spec.Schema{}}, nil
}

// get returns the component of the given name, which must exist.
func (c *components) get(name string) *spec.Schema {
	if found, ok := c.decoded[name]; ok {
		return found
	}
	component := &spec.Schema{}
	if err := json.Unmarshal(c.raw[name], component); err != nil {
		c.err = cmp.Or(c.err, fmt.Errorf("reading the OpenAPI component %s: %w", name, err))
	}
	c.decoded[name] = component
	return component
}

// kind returns the schema of a kind. Types that belong to every group, such as DeleteOptions, name many kinds.
func (c *components) kind(kind schema.GroupVersionKind) (*spec.Schema, error) {
	for _, name := range slices.Sorted(maps.Keys(c.raw)) {
		if !bytes.Contains(c.raw[name], []byte(extensionKinds)) {
			continue
		}
		var component struct {
			Kinds []schema.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
		}
		if err := json.Unmarshal(c.raw[name], &component); err != nil {
			return nil, fmt.Errorf("reading the OpenAPI component %s: %s: %w", name, extensionKinds, err)
		}
		if slices.Contains(component.Kinds, kind) {
			found := c.get(name)
			return found, c.err
		}
	}
	return nil, fmt.Errorf("the OpenAPI document does not describe %s", kind)
}

// resolve follows a reference. The reference is bare, or the only member of an allOf, as documents write a reference with its
// own description. The name is empty if there is no reference, or if its target does not exist. Keywords next to a reference
// override the target's keywords.
func (c *components) resolve(s *spec.Schema) (resolved *spec.Schema, name string) {
	// Give up on a reference that leads back to itself.
	for range chainLimit {
		target := c.target(s)
		if target == "" {
			break
		}
		s, name = overlay(c.get(target), s), target
	}
	return s, name
}

// target returns the name of the component that a schema refers to, or "".
func (c *components) target(s *spec.Schema) string {
	ref := s.Ref.String()
	if ref == "" && len(s.AllOf) == 1 {
		ref = s.AllOf[0].Ref.String()
	}
	name, local := strings.CutPrefix(ref, refPrefix)
	if _, found := c.raw[name]; !local || !found {
		return ""
	}
	return name
}

// overlay returns the target of a reference, overridden by the keywords next to the reference.
func overlay(target, reference *spec.Schema) *spec.Schema {
	merged := *target
	merged.Description = cmp.Or(reference.Description, target.Description)
	merged.Nullable = reference.Nullable || target.Nullable
	if reference.Default != nil {
		merged.Default = reference.Default
	}
	merged.Extensions = maps.Clone(target.Extensions)
	for key, value := range reference.Extensions {
		merged.AddExtension(key, value)
	}
	return &merged
}

// isDefinition reports whether the schema of a kind repeats the schema of a CRD. Such a schema has no reference
// except to the metadata, and no default for the metadata, which the document of a Go type has.
func (c *components) isDefinition(s *spec.Schema) bool {
	return s.Properties["metadata"].Default == nil && !refersToTypes(s)
}

func refersToTypes(s *spec.Schema) bool {
	if ref := s.Ref.String(); ref != "" {
		return ref != refPrefix+objectMeta
	}
	return slices.ContainsFunc(children(s), refersToTypes)
}

// children lists the schemas directly within a schema.
func children(s *spec.Schema) (all []*spec.Schema) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		all = append(all, new(s.Properties[name]))
	}
	if s.Items != nil && s.Items.Schema != nil {
		all = append(all, s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		all = append(all, s.AdditionalProperties.Schema)
	}
	for _, branches := range [][]spec.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		for i := range branches {
			all = append(all, &branches[i])
		}
	}
	if s.Not != nil {
		all = append(all, s.Not)
	}
	return all
}

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
