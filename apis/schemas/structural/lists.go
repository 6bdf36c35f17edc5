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
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// The kinds of lists and maps, by how appliers share them.
const (
	atomic = "atomic"
	listOf = "map" // items are told apart by keys
	setOf  = "set"

	extensionListType      = "x-kubernetes-list-type"
	extensionListMapKeys   = "x-kubernetes-list-map-keys"
	extensionPatchStrategy = "x-kubernetes-patch-strategy"
	extensionPatchMergeKey = "x-kubernetes-patch-merge-key"
)

func (c *converter) array(out *apiextensionsv1.JSONSchemaProps, s *spec.Schema, at place) {
	items := &spec.Schema{}
	if s.Items != nil && s.Items.Schema != nil {
		items = s.Items.Schema
	}
	item := c.schema(items, at.child("[]"))
	out.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &item}
	if !at.reported {
		out.XListType, out.XListMapKeys = listType(s)
	}
	resolved, _ := c.components.resolve(items)
	for _, key := range out.XListMapKeys {
		c.keepKey(&item, resolved, key, at)
	}
	if reason := legalList(out); reason != "" {
		c.note(at, "%s", reason)
	}
	item.Nullable = out.XListType == nil || *out.XListType == atomic
}

// listType returns what a server makes of a list when it is applied. The older strategic merge counts where the newer
// extension is missing, as on the servers themselves.
func listType(s *spec.Schema) (kind *string, keys []string) {
	if explicit, ok := s.Extensions.GetString(extensionListType); ok {
		keys, _ = s.Extensions.GetStringSlice(extensionListMapKeys)
		return &explicit, keys
	}
	strategy, _ := s.Extensions.GetString(extensionPatchStrategy)
	if strategy != "merge" && strategy != "merge,retainKeys" {
		return nil, nil
	}
	if key, ok := s.Extensions.GetString(extensionPatchMergeKey); ok {
		return new(listOf), []string{key}
	}
	return new(setOf), nil
}

// keepKey keeps that a key is required, or what it is by default: the items of a list must have their keys.
func (c *converter) keepKey(items *apiextensionsv1.JSONSchemaProps, s *spec.Schema, key string, at place) {
	property, ok := items.Properties[key]
	if !ok {
		return
	}
	if slices.Contains(s.Required, key) {
		items.Required = append(items.Required, key)
		return
	}
	original, _ := c.components.resolve(new(s.Properties[key]))
	if original.Default == nil {
		return
	}
	raw, err := json.Marshal(original.Default)
	c.fail(at.child("[]."+key), err)
	property.Default = &apiextensionsv1.JSON{Raw: raw}
	items.Properties[key] = property
}

// legalList makes a list or map atomic if it may not be shared in the way it says, and returns why.
func legalList(node *apiextensionsv1.JSONSchemaProps) (reason string) {
	if node.XMapType != nil && node.Type != typeObject {
		node.XMapType = nil
	}
	reason = illegalList(node)
	if reason == "" {
		return ""
	}
	node.XListMapKeys, node.XListType = nil, nil
	if node.Type == typeArray {
		node.XListType = new(atomic)
	}
	return "the list is atomic: " + reason
}

func illegalList(node *apiextensionsv1.JSONSchemaProps) string {
	kind := ""
	if node.XListType != nil {
		kind = *node.XListType
	}
	switch {
	case kind == "" && len(node.XListMapKeys) == 0 || kind == atomic && node.Type == typeArray:
		return ""
	case node.Type != typeArray || node.Items == nil || node.Items.Schema == nil:
		return "it is no list"
	case node.Items.Schema.Nullable:
		return "its items may be null"
	case kind == listOf:
		return illegalKeys(node.Items.Schema, node.XListMapKeys)
	case kind == setOf:
		return illegalMember(node.Items.Schema)
	default:
		return fmt.Sprintf("its type is %q", kind)
	}
}

func illegalKeys(items *apiextensionsv1.JSONSchemaProps, keys []string) string {
	if len(keys) == 0 {
		return "its items have no keys"
	}
	for i, key := range keys {
		property, ok := items.Properties[key]
		switch {
		case !ok || items.Type != typeObject:
			return fmt.Sprintf("its items have no field %s", key)
		case slices.Contains(keys[:i], key):
			return fmt.Sprintf("the key %s is named twice", key)
		case property.Type == typeArray || property.Type == typeObject:
			return fmt.Sprintf("the key %s is no scalar", key)
		case property.Nullable:
			return fmt.Sprintf("the key %s may be null", key)
		case property.Default == nil && !slices.Contains(items.Required, key):
			return fmt.Sprintf("the key %s may be missing", key)
		}
	}
	return ""
}

func illegalMember(item *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case item.Type == typeObject && (item.XMapType == nil || *item.XMapType != atomic),
		item.Type == typeArray && item.XListType != nil && *item.XListType != atomic:
		return "the members of a set must be atomic"
	}
	return ""
}
