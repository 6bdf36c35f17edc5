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

// Pruner knows which fields the schema of a mailbox's API keeps; kcp drops all others. What it drops must not be compared with
// what it holds: it would be missing for ever. It is immutable and shared. Nil keeps everything.
type Pruner struct {
	// preserveUnknown is true if fields are kept that are not named, resource if the fields of every resource are.
	preserveUnknown, embeddedResource bool
	properties                        map[string]*Pruner
	// items are those of a list, values those of fields without a name. What is nil keeps no field.
	items, additionalProperties *Pruner
	// allowsAdditional is true if there may be fields without a name.
	allowsAdditional bool
}

// NewPruner returns what the schema of whole objects keeps.
func NewPruner(schema *apiextensionsv1.JSONSchemaProps) *Pruner {
	root := newSchemaPruner(schema, false)
	root.embeddedResource = true
	return root
}

// newSchemaPruner returns what a schema keeps. The items of a free list are free.
func newSchemaPruner(schema *apiextensionsv1.JSONSchemaProps, free bool) *Pruner {
	kept := &Pruner{
		preserveUnknown:  free || schema.XPreserveUnknownFields != nil && *schema.XPreserveUnknownFields,
		embeddedResource: schema.XEmbeddedResource,
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

// Prune returns what is kept of a whole object, and the paths of what is not, each once and sorted, with [] for the items of a
// list. The object is not changed; what is returned shares with it what is kept whole.
func (k *Pruner) Prune(object map[string]any) (kept map[string]any, dropped []string) {
	if k == nil || k.keepsAll(object) {
		return object, nil
	}
	paths := map[string]struct{}{}
	pruned := k.prune(object, "", paths)
	return pruned.(map[string]any), slices.Sorted(maps.Keys(paths))
}

// PruneStatus is Prune for the status of an object.
func (k *Pruner) PruneStatus(status map[string]any) (kept map[string]any, dropped []string) {
	if k == nil || status == nil {
		return status, nil
	}
	object, dropped := k.Prune(map[string]any{"status": status})
	kept, _ = object["status"].(map[string]any)
	return kept, dropped
}

// field returns what is kept in a field; known is false if the field is dropped.
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

// preserveAll keeps all.
var preserveAll = &Pruner{preserveUnknown: true}

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

// keepsAll tells whether nothing of a value is dropped. That is so of nearly all, and costs no memory.
func (k *Pruner) keepsAll(value any) bool {
	if k == preserveAll {
		return true
	}
	switch typed := value.(type) {
	case map[string]any:
		for name, field := range typed {
			if below, known := k.field(name); !known || !below.keepsAll(field) {
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
			if below, known := k.field(name); known {
				kept[name] = below.prune(field, at, dropped)
			} else {
				dropped[at] = struct{}{}
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
