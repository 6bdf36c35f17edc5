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

// Kept knows which fields the schema of a mailbox's API keeps; kcp drops all others. What it drops must not be compared with
// what it holds: it would be missing for ever. It is immutable and shared. Nil keeps everything.
type Kept struct {
	// free is true if fields are kept that are not named, resource if the fields of every resource are.
	free, resource bool
	fields         map[string]*Kept
	// items are those of a list, values those of fields without a name. What is nil keeps no field.
	items, values *Kept
	// open is true if there may be fields without a name.
	open bool
}

// KeptBy returns what the schema of whole objects keeps.
func KeptBy(schema *apiextensionsv1.JSONSchemaProps) *Kept {
	root := keptBy(schema, false)
	root.resource = true
	return root
}

// keptBy returns what a schema keeps. The items of a free list are free.
func keptBy(schema *apiextensionsv1.JSONSchemaProps, free bool) *Kept {
	kept := &Kept{
		free:     free || schema.XPreserveUnknownFields != nil && *schema.XPreserveUnknownFields,
		resource: schema.XEmbeddedResource,
	}
	for name := range schema.Properties {
		if kept.fields == nil {
			kept.fields = make(map[string]*Kept, len(schema.Properties))
		}
		kept.fields[name] = keptBy(new(schema.Properties[name]), false)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		kept.items = keptBy(schema.Items.Schema, kept.free)
	}
	if values := schema.AdditionalProperties; values != nil {
		kept.open = values.Allows || values.Schema != nil
		if values.Schema != nil {
			kept.values = keptBy(values.Schema, false)
		}
	}
	return kept
}

// Prune returns what is kept of a whole object, and the paths of what is not, each once and sorted, with [] for the items of a
// list. The object is not changed; what is returned shares with it what is kept whole.
func (k *Kept) Prune(object map[string]any) (kept map[string]any, dropped []string) {
	if k == nil || k.keepsAll(object) {
		return object, nil
	}
	paths := map[string]struct{}{}
	pruned := k.prune(object, "", paths)
	return pruned.(map[string]any), slices.Sorted(maps.Keys(paths))
}

// PruneStatus is Prune for the status of an object.
func (k *Kept) PruneStatus(status map[string]any) (kept map[string]any, dropped []string) {
	if k == nil || status == nil {
		return status, nil
	}
	object, dropped := k.Prune(map[string]any{"status": status})
	kept, _ = object["status"].(map[string]any)
	return kept, dropped
}

// below returns what is kept in a field; known is false if the field is dropped.
func (k *Kept) below(name string) (kept *Kept, known bool) {
	if k == nil {
		return nil, false
	}
	if field, ok := k.fields[name]; ok && (!k.resource || !isIdentity(name)) {
		return field, true
	}
	switch {
	case k.resource && isIdentity(name), k.free && !k.open:
		return everything, true
	case k.open:
		return k.values, true
	default:
		return nil, false
	}
}

// everything keeps all.
var everything = &Kept{free: true}

func isIdentity(name string) bool {
	return name == "apiVersion" || name == "kind" || name == "metadata"
}

func (k *Kept) item() *Kept {
	switch {
	case k == nil:
		return nil
	case k.items == nil && k.free:
		return everything
	default:
		return k.items
	}
}

// keepsAll tells whether nothing of a value is dropped. That is so of nearly all, and costs no memory.
func (k *Kept) keepsAll(value any) bool {
	if k == everything {
		return true
	}
	switch typed := value.(type) {
	case map[string]any:
		for name, field := range typed {
			if below, known := k.below(name); !known || !below.keepsAll(field) {
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

func (k *Kept) prune(value any, path string, dropped map[string]struct{}) any {
	if k.keepsAll(value) {
		return value
	}
	switch typed := value.(type) {
	case map[string]any:
		kept := make(map[string]any, len(typed))
		for name, field := range typed {
			at := join(path, name)
			if below, known := k.below(name); known {
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
