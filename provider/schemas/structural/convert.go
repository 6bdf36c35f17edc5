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
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Types of a schema.
const (
	typeArray   = "array"
	typeInteger = "integer"
	typeNumber  = "number"
	typeObject  = "object"
	typeString  = "string"
)

// converter builds a structural schema from Go types. The package documentation describes the conversion.
type converter struct {
	components *components
	// nodes and bytes count the converted schemas. A type that is used several times counts each time.
	nodes, bytes int
	notes        []Note
	// err is the first error.
	err error
}

// location is the converter's position in an object and in the types.
type location struct {
	path  string
	types []string
	// inStatus is true within the status.
	inStatus bool
}

func (p location) child(path string) location {
	p.path += path
	return p
}

func (c *converter) note(at location, format string, args ...any) {
	c.notes = append(c.notes, Note{Path: at.path, Reason: fmt.Sprintf(format, args...)})
}

// convertKind converts the type of a whole object. For a kind with a status, kcp accepts little more than fields at
// the root.
func (c *converter) convertKind(s *spec.Schema) *apiextensionsv1.JSONSchemaProps {
	object := *s
	object.Properties = maps.Clone(s.Properties)
	delete(object.Properties, "metadata")
	converted := c.schema(&object, location{})
	if converted.Type != typeObject {
		c.setError(location{}, errors.New("it is no object"))
	}
	if len(converted.AllOf)+len(converted.AnyOf)+len(converted.OneOf) > 0 || converted.Not != nil {
		c.note(location{}, "allOf, anyOf, oneOf and not are left out: a kind with a status may not have them")
	}
	root := &apiextensionsv1.JSONSchemaProps{
		Description: converted.Description, Type: typeObject, XPreserveUnknownFields: converted.XPreserveUnknownFields,
		Properties: map[string]apiextensionsv1.JSONSchemaProps{"metadata": {Type: typeObject}},
	}
	maps.Copy(root.Properties, converted.Properties)
	if converted.AdditionalProperties != nil {
		root.XPreserveUnknownFields = new(true)
	}
	return root
}

// countSize counts converted schemas. A small document can describe a very large kind, by types that refer to each
// other many times.
func (c *converter) countSize(at location, nodes, bytes int) {
	if c.nodes, c.bytes = c.nodes+nodes, c.bytes+bytes; c.nodes > nodeLimit {
		c.setError(at, &TooLargeError{"fields", nodeLimit})
	}
	if c.bytes > DefinitionBytes {
		c.setError(at, &TooLargeError{"bytes", DefinitionBytes})
	}
	if len(at.types) > fieldDepth {
		c.setError(at, &TooLargeError{"types within each other", fieldDepth})
	}
}

func (c *converter) setError(at location, err error) {
	if err != nil && c.err == nil {
		c.err = fmt.Errorf("%s: %w", cmp.Or(at.path, "."), err)
	}
}

func (c *converter) schema(s *spec.Schema, at location) apiextensionsv1.JSONSchemaProps {
	if c.countSize(at, 1, 0); c.err != nil {
		return apiextensionsv1.JSONSchemaProps{}
	}
	s, name := c.components.resolve(s)
	out := c.keywords(s, at)
	if slices.Contains(at.types, name) {
		c.note(at, "%s contains itself: its content is not described", name[strings.LastIndex(name, ".")+1:])
		return unknownSchema(out)
	}
	if name != "" {
		at.types = append(slices.Clip(at.types), name)
	}
	types := alternatives(s)
	switch {
	case name == quantity:
		out = unknownSchema(out)
		out.Type, out.Pattern = "", quantityPattern
	case out.XIntOrString || slices.Equal(types, []string{typeInteger, typeString}):
		out = unknownSchema(out)
		out.Type, out.XPreserveUnknownFields, out.XIntOrString = "", nil, true
	case len(types) > 0:
		out = unknownSchema(out)
		out.Type = ""
	case out.Type == typeObject:
		c.object(&out, s, at)
	case out.Type == typeArray:
		c.array(&out, s, at)
	case out.Type == "":
		out = unknownSchema(out)
	}
	if len(types) == 0 && !out.XIntOrString {
		c.combinators(&out, s, at)
	}
	return out
}

// keywords returns a schema without its content, and without the keywords that the converter decides itself.
func (c *converter) keywords(s *spec.Schema, at location) (out apiextensionsv1.JSONSchemaProps) {
	own := spec.Schema{VendorExtensible: s.VendorExtensible, SchemaProps: s.SchemaProps}
	own.Ref, own.Default, own.Required = spec.Ref{}, nil, nil
	own.Properties, own.AdditionalProperties, own.Items = nil, nil, nil
	own.AllOf, own.AnyOf, own.OneOf, own.Not = nil, nil, nil, nil
	own.PatternProperties, own.Dependencies, own.AdditionalItems, own.Definitions = nil, nil, nil, nil
	if len(own.Type) > 1 {
		own.Type = nil
	}
	raw, err := json.Marshal(own)
	c.countSize(at, 0, len(raw))
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	c.setError(at, err)
	if out.Type == "" && len(s.Properties) > 0 {
		out.Type = typeObject
	}
	out.ID, out.XListType, out.XListMapKeys = "", nil, nil
	if len(out.XValidations) > 0 {
		c.note(at, "the rules are left out: the server does not evaluate them on requests")
		out.XValidations = nil
	}
	if at.inStatus {
		out = apiextensionsv1.JSONSchemaProps{
			Description: out.Description, Type: out.Type, Format: out.Format, Nullable: out.Nullable,
			XPreserveUnknownFields: out.XPreserveUnknownFields, XIntOrString: out.XIntOrString,
		}
	}
	relaxRestrictions(&out)
	return out
}

func (c *converter) object(out *apiextensionsv1.JSONSchemaProps, s *spec.Schema, at location) {
	values := s.AdditionalProperties
	switch {
	case len(s.Properties) == 0 && values != nil && values.Schema != nil:
		value := c.schema(values.Schema, at.child(".*"))
		allowNull(&value)
		out.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &value}
	case len(s.Properties) == 0:
		out.XPreserveUnknownFields = new(true)
	case values != nil && (values.Schema != nil || values.Allows):
		c.note(at, "fields that are not named may have any value: a schema has either named or free fields")
		out.XPreserveUnknownFields = new(true)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if out.Properties == nil {
			out.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
		}
		child := at.child("." + name)
		child.inStatus = at.inStatus || child.path == ".status"
		property := c.schema(new(s.Properties[name]), child)
		if !at.inStatus && !isTypeOrMetadata(child.path) {
			allowNull(&property)
		}
		out.Properties[name] = property
	}
}

// isTypeOrMetadata reports whether a path leads to a field that each object has, and that kcp validates itself.
func isTypeOrMetadata(path string) bool {
	return path == ".apiVersion" || path == ".kind" || path == ".metadata"
}

// allowNull lets a schema accept null. For a Go type null is the absence of a value, so an API server accepts it anywhere. kcp
// drops it from a create or an update unless the schema allows it, and refuses it in a server-side apply.
//
// An enum moves into allOf: a nullable schema with an enum refuses null, even if the enum has it, but skips allOf for null.
func allowNull(schema *apiextensionsv1.JSONSchemaProps) {
	schema.Nullable = true
	if len(schema.Enum) > 0 {
		schema.AllOf = append(schema.AllOf, apiextensionsv1.JSONSchemaProps{Enum: schema.Enum})
		schema.Enum = nil
	}
}

// forbidNull undoes [allowNull].
func forbidNull(schema *apiextensionsv1.JSONSchemaProps) {
	schema.Nullable = false
	if last := len(schema.AllOf) - 1; last >= 0 && len(schema.AllOf[last].Enum) > 0 {
		schema.Enum = schema.AllOf[last].Enum
		schema.AllOf = slices.Clip(schema.AllOf[:last])
		if last == 0 {
			schema.AllOf = nil
		}
	}
}

// combinators keeps allOf, anyOf, oneOf and not if they only restrict values. Otherwise they may describe fields that
// are described nowhere else, and the schema has to keep unknown fields.
func (c *converter) combinators(out *apiextensionsv1.JSONSchemaProps, s *spec.Schema, at location) {
	restrictions := spec.Schema{SchemaProps: spec.SchemaProps{AllOf: s.AllOf, AnyOf: s.AnyOf, OneOf: s.OneOf, Not: s.Not}}
	all := children(&restrictions)
	if len(all) == 0 || at.inStatus {
		return
	}
	if slices.ContainsFunc(all, func(branch *spec.Schema) bool { return c.describesFields(branch, at) }) {
		c.note(at, "allOf, anyOf, oneOf or not describes fields: they may have any value")
		*out = unknownSchema(*out)
		return
	}
	raw, err := json.Marshal(restrictions)
	c.countSize(at, 0, len(raw))
	if err == nil {
		err = json.Unmarshal(raw, out)
	}
	c.setError(at, err)
}

func (c *converter) describesFields(s *spec.Schema, at location) bool {
	if c.countSize(at, 1, 0); c.err != nil {
		return true
	}
	return s.Ref.String() != "" || len(s.Type) > 0 || len(s.Properties) > 0 || s.Items != nil || s.AdditionalProperties != nil ||
		slices.ContainsFunc(children(s), func(branch *spec.Schema) bool { return c.describesFields(branch, at) })
}

// quantityPattern matches every text that a server accepts as a quantity, and little else.
const quantityPattern = `^\s*[+-]?[0-9]*(\.[0-9]*)?([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?\s*$`

// relaxRestrictions removes formats and widens enums that a server written in Go does not enforce as declared.
func relaxRestrictions(out *apiextensionsv1.JSONSchemaProps) {
	if out.Type == typeString && out.Format != "date-time" {
		out.Format = ""
	}
	if empty := []byte(`""`); out.Type == typeString && len(out.Enum) > 0 &&
		!slices.ContainsFunc(out.Enum, func(value apiextensionsv1.JSON) bool { return slices.Equal(value.Raw, empty) }) {
		out.Enum = append(out.Enum, apiextensionsv1.JSON{Raw: empty})
	}
}

// unknownSchema returns a copy of a schema without the keywords that describe the content.
func unknownSchema(s apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	kept := apiextensionsv1.JSONSchemaProps{Description: s.Description, Nullable: s.Nullable, XPreserveUnknownFields: new(true)}
	if s.Type == typeObject {
		kept.Type = typeObject
	}
	return kept
}

// alternatives returns the sorted types of a value that may have several types.
func alternatives(s *spec.Schema) (types []string) {
	if len(s.Type) > 1 {
		return slices.Sorted(slices.Values(s.Type))
	}
	if len(s.Type) > 0 || len(s.OneOf) > 0 && len(s.AnyOf) > 0 {
		return nil
	}
	for _, branch := range append(slices.Clone(s.OneOf), s.AnyOf...) {
		if len(branch.Type) != 1 {
			return nil
		}
		types = append(types, branch.Type[0])
	}
	slices.Sort(types)
	return types
}
