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

// Types of lists and maps, which decide how appliers share them.
const (
	listTypeAtomic = "atomic"
	listTypeMap    = "map" // items are identified by keys
	listTypeSet    = "set"

	extensionListType      = "x-kubernetes-list-type"
	extensionListMapKeys   = "x-kubernetes-list-map-keys"
	extensionPatchStrategy = "x-kubernetes-patch-strategy"
	extensionPatchMergeKey = "x-kubernetes-patch-merge-key"
)

func (c *converter) array(out *apiextensionsv1.JSONSchemaProps, s *spec.Schema, at location) {
	items := &spec.Schema{}
	if s.Items != nil && s.Items.Schema != nil {
		items = s.Items.Schema
	}
	item := c.schema(items, at.child("[]"))
	out.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &item}
	if !at.inStatus {
		out.XListType, out.XListMapKeys = listType(s)
	}
	resolved, _ := c.components.resolve(items)
	for _, key := range out.XListMapKeys {
		c.keepMergeKey(&item, resolved, key, at)
	}
	if reason := normalizeList(out); reason != "" {
		c.note(at, "%s", reason)
	}
	if out.XListType == nil || *out.XListType == listTypeAtomic {
		allowNull(&item)
	}
}

// listType returns the list type that a server uses when it applies a list. Where the extension for the list type is
// missing, the older extension for strategic merge patch counts, as on servers.
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
		return new(listTypeMap), []string{key}
	}
	return new(listTypeSet), nil
}

// keepMergeKey keeps a list key required, or keeps its default: every item of such a list must have its keys.
func (c *converter) keepMergeKey(items *apiextensionsv1.JSONSchemaProps, s *spec.Schema, key string, at location) {
	property, ok := items.Properties[key]
	if !ok {
		return
	}
	forbidNull(&property)
	items.Properties[key] = property
	if slices.Contains(s.Required, key) {
		items.Required = append(items.Required, key)
		return
	}
	original, _ := c.components.resolve(new(s.Properties[key]))
	if original.Default == nil {
		return
	}
	raw, err := json.Marshal(original.Default)
	c.setError(at.child("[]."+key), err)
	property.Default = &apiextensionsv1.JSON{Raw: raw}
	items.Properties[key] = property
}

// normalizeList makes a list or map atomic if its declared type is invalid, and returns the reason. It returns "" if
// the type is valid. Keys of a list that is no map have no meaning, and are invalid: it removes them.
func normalizeList(node *apiextensionsv1.JSONSchemaProps) (reason string) {
	if node.XMapType != nil && node.Type != typeObject {
		node.XMapType = nil
	}
	reason = invalidListReason(node)
	if reason == "" {
		if node.XListType != nil && *node.XListType != listTypeMap {
			node.XListMapKeys = nil
		}
		return ""
	}
	node.XListMapKeys, node.XListType = nil, nil
	if node.Type == typeArray {
		node.XListType = new(listTypeAtomic)
	}
	return "the list is atomic: " + reason
}

func invalidListReason(node *apiextensionsv1.JSONSchemaProps) string {
	kind := ""
	if node.XListType != nil {
		kind = *node.XListType
	}
	switch {
	case kind == "" && len(node.XListMapKeys) == 0 || kind == listTypeAtomic && node.Type == typeArray:
		return ""
	case node.Type != typeArray || node.Items == nil || node.Items.Schema == nil:
		return "it is no list"
	case node.Items.Schema.Nullable:
		return "its items may be null"
	case kind == listTypeMap:
		return invalidKeysReason(node.Items.Schema, node.XListMapKeys)
	case kind == listTypeSet:
		return invalidMemberReason(node.Items.Schema)
	default:
		return fmt.Sprintf("its type is %q", kind)
	}
}

func invalidKeysReason(items *apiextensionsv1.JSONSchemaProps, keys []string) string {
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

func invalidMemberReason(item *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case item.Type == typeObject && (item.XMapType == nil || *item.XMapType != listTypeAtomic),
		item.Type == typeArray && item.XListType != nil && *item.XListType != listTypeAtomic:
		return "the members of a set must be atomic"
	}
	return ""
}
