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

package transform

import (
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Pruner drops the fields that the schema of a mailbox's API does not have, as kcp does. If the hub compared these fields with
// the mailbox object, they would always be missing. A Pruner is immutable and shared. A nil Pruner drops nothing.
type Pruner struct {
	// preserveUnknown keeps unknown fields. embeddedResource keeps the fields that every resource has.
	preserveUnknown, embeddedResource bool
	properties                        map[string]*Pruner
	// items is for items of a list, and additionalProperties for fields that the schema does not name. Nil keeps no field.
	items, additionalProperties *Pruner
	// allowsAdditional is true if the schema allows fields that it does not name.
	allowsAdditional bool
	// nullable is true if the schema allows null. A null field is dropped otherwise.
	nullable bool
}

// NewPruner returns a Pruner for the schema of whole objects.
func NewPruner(schema *apiextensionsv1.JSONSchemaProps) *Pruner {
	root := newSchemaPruner(schema, false)
	root.embeddedResource = true
	return root
}

// newSchemaPruner returns a Pruner for a schema. free is true for an item of a list that preserves unknown fields.
func newSchemaPruner(schema *apiextensionsv1.JSONSchemaProps, free bool) *Pruner {
	kept := &Pruner{
		preserveUnknown:  free || schema.XPreserveUnknownFields != nil && *schema.XPreserveUnknownFields,
		embeddedResource: schema.XEmbeddedResource,
		nullable:         schema.Nullable,
	}
	for name := range schema.Properties {
		if kept.properties == nil {
			kept.properties = make(map[string]*Pruner, len(schema.Properties))
		}
		kept.properties[name] = newSchemaPruner(new(schema.Properties[name]), false)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		kept.items = newSchemaPruner(schema.Items.Schema, kept.preserveUnknown)
	}
	if values := schema.AdditionalProperties; values != nil {
		kept.allowsAdditional = values.Allows || values.Schema != nil
		if values.Schema != nil {
			kept.additionalProperties = newSchemaPruner(values.Schema, false)
		}
	}
	return kept
}

// Prune returns the object without the dropped fields, and the sorted paths of unknown fields, with [] for list items. It does
// not change the object; the result shares unchanged parts with it.
func (k *Pruner) Prune(object map[string]any) (kept map[string]any, dropped []string) {
	if k == nil || k.keepsAll(object) {
		return object, nil
	}
	paths := map[string]struct{}{}
	pruned := k.prune(object, "", paths)
	return pruned.(map[string]any), slices.Sorted(maps.Keys(paths))
}

// PruneStatus does the same for a status. It does not change an empty status, which kinds without a status have.
func (k *Pruner) PruneStatus(status map[string]any) (kept map[string]any, dropped []string) {
	if k == nil || len(status) == 0 {
		return status, nil
	}
	object, dropped := k.Prune(map[string]any{"status": status})
	kept, _ = object["status"].(map[string]any)
	return kept, dropped
}

// field returns the Pruner of a field; known is false if the field is dropped.
func (k *Pruner) field(name string) (kept *Pruner, known bool) {
	if k == nil {
		return nil, false
	}
	if field, ok := k.properties[name]; ok && (!k.embeddedResource || !isTypeOrMetadata(name)) {
		return field, true
	}
	switch {
	case k.embeddedResource && isTypeOrMetadata(name), k.preserveUnknown && !k.allowsAdditional:
		return preserveAll, true
	case k.allowsAdditional:
		return k.additionalProperties, true
	default:
		return nil, false
	}
}

// preserveAll drops nothing.
var preserveAll = &Pruner{preserveUnknown: true, nullable: true}

// dropsField reports whether a field of the schema is dropped because it is null. An item of a list is never dropped.
func (k *Pruner) dropsField(value any) bool { return value == nil && k != nil && !k.nullable }

func isTypeOrMetadata(name string) bool {
	return name == "apiVersion" || name == "kind" || name == "metadata"
}

func (k *Pruner) item() *Pruner {
	switch {
	case k == nil:
		return nil
	case k.items == nil && k.preserveUnknown:
		return preserveAll
	default:
		return k.items
	}
}

// keepsAll reports whether no part of a value is dropped, which is so for nearly all values. It allocates no memory.
func (k *Pruner) keepsAll(value any) bool {
	if k == preserveAll {
		return true
	}
	switch typed := value.(type) {
	case map[string]any:
		for name, field := range typed {
			if below, known := k.field(name); !known || below.dropsField(field) || !below.keepsAll(field) {
				return false
			}
		}
	case []any:
		for _, item := range typed {
			if !k.item().keepsAll(item) {
				return false
			}
		}
	}
	return true
}

func (k *Pruner) prune(value any, path string, dropped map[string]struct{}) any {
	if k.keepsAll(value) {
		return value
	}
	switch typed := value.(type) {
	case map[string]any:
		kept := make(map[string]any, len(typed))
		for name, field := range typed {
			at := join(path, name)
			switch below, known := k.field(name); {
			case !known:
				dropped[at] = struct{}{}
			case !below.dropsField(field):
				kept[name] = below.prune(field, at, dropped)
			}
		}
		return kept
	case []any:
		kept := make([]any, len(typed))
		for i, item := range typed {
			kept[i] = k.item().prune(item, path+"[]", dropped)
		}
		return kept
	default:
		return value
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
