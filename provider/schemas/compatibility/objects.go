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

package compatibility

import (
	"maps"
	"reflect"
	"regexp"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Fields of every resource, also of an embedded one.
const (
	fieldAPIVersion = "apiVersion"
	fieldKind       = "kind"
	fieldMetadata   = "metadata"
)

// identityFields are the fields that are never missing.
var identityFields = []string{fieldAPIVersion, fieldKind, fieldMetadata}

// resource returns a copy of a schema with the fields that API servers add to every resource, even if the schema lacks them.
func resource(s *schema) *schema {
	full := *s
	full.XEmbeddedResource = true
	full.Properties = maps.Clone(s.Properties)
	if full.Properties == nil {
		full.Properties = map[string]schema{}
	}
	for _, name := range identityFields[:2] {
		if _, ok := full.Properties[name]; !ok {
			full.Properties[name] = schema{Type: "string"}
		}
	}
	metadata := full.Properties[fieldMetadata]
	metadata.Type, metadata.XPreserveUnknownFields = "object", new(true)
	metadata.Properties = maps.Clone(metadata.Properties)
	if metadata.Properties == nil {
		metadata.Properties = map[string]schema{}
	}
	for _, name := range []string{"name", "generateName", "namespace"} {
		if _, ok := metadata.Properties[name]; !ok {
			metadata.Properties[name] = schema{Type: "string"}
		}
	}
	full.Properties[fieldMetadata] = metadata
	full.Required = append(slices.Clone(s.Required), identityFields...)
	return &full
}

// object compares the schemas of objects.
func (c *comparison) object(at location, mine, theirs *schema) {
	if theirs.XEmbeddedResource && !mine.XEmbeddedResource {
		c.addFinding(at, ReasonEmbedded, "the target takes a resource only")
		return
	}
	if at.path != "" && mine.XEmbeddedResource {
		mine, theirs = resource(mine), asEmbeddedResource(theirs)
	}
	if !isRangeWithin(mine.MinProperties, mine.MaxProperties, theirs.MinProperties, theirs.MaxProperties) {
		c.addFinding(at, ReasonProperties, "the target takes %s fields, the mailbox %s",
			formatRange(theirs.MinProperties, theirs.MaxProperties), formatRange(mine.MinProperties, mine.MaxProperties))
	}
	c.required(at, mine, theirs)
	all := maps.Clone(mine.Properties)
	if all == nil {
		all = map[string]schema{}
	}
	maps.Copy(all, theirs.Properties)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		below := at.below(name)
		c.field(below, fieldOf(mine, name), fieldOf(theirs, name), preserves(theirs))
	}
	c.field(at.below("*"), additionalOf(mine), additionalOf(theirs), preserves(theirs))
}

// asEmbeddedResource returns the target's schema for a value that is a resource in the mailbox.
func asEmbeddedResource(s *schema) *schema {
	if s.XEmbeddedResource {
		return resource(s)
	}
	return s
}

// field compares the schemas of one field; nil means that the field cannot exist. kept is true if the target keeps fields
// that its schema does not name; otherwise it drops them.
func (c *comparison) field(at location, mine, theirs *schema, kept bool) {
	switch {
	case mine == nil && theirs == nil:
	case mine == nil:
		c.compareDefaults(at, &schema{}, theirs)
	case theirs == nil && kept:
	case theirs == nil:
		if c.spendSteps(1) {
			c.addFinding(at, ReasonFieldLost, "the target does not have the field")
		}
	default:
		c.compareDefaults(at, mine, theirs)
		if at.crossField && mayBeNull(mine) && !mayBeNull(theirs) {
			c.addFinding(at, ReasonNull, "the mailbox takes null, the target does not")
		}
		c.compare(at, mine, theirs)
	}
}

// compareDefaults adds a finding for a default of the target that the mailbox does not have, where other rules can
// depend on it. Elsewhere it does not matter, because the target's default fits the target's schema.
func (c *comparison) compareDefaults(at location, mine, theirs *schema) {
	if at.crossField && theirs.Default != nil && !isSame(mine.Default, theirs.Default) {
		c.addFinding(at, ReasonDefault, "the target fills in a default that the mailbox does not have, and has rules about it")
	}
}

// isSame reports whether two JSON values are equal, ignoring their format.
func isSame(a, b *apiextensionsv1.JSON) bool {
	if a == nil || b == nil {
		return a == b
	}
	var one, other any
	return json.Unmarshal(a.Raw, &one) == nil && json.Unmarshal(b.Raw, &other) == nil && reflect.DeepEqual(one, other)
}

// required adds findings for fields that the target requires and the mailbox allows to be missing.
func (c *comparison) required(at location, mine, theirs *schema) {
	own := sets.New(mine.Required...)
	for _, name := range theirs.Required {
		below := at.below(name)
		other := fieldOf(theirs, name)
		if other != nil && other.Default != nil {
			continue
		}
		field := fieldOf(mine, name)
		switch {
		case !own.Has(name) && (field == nil || field.Default == nil):
			c.addFinding(below, ReasonRequired, "the target requires the field, the mailbox does not")
		case field != nil && mayBeNull(field) && other != nil && !mayBeNull(other):
			c.addFinding(below, ReasonNull, "the target requires a value, the mailbox takes null")
		}
	}
}

// fieldOf returns the schema of a field, or nil if no field of that name can exist.
func fieldOf(s *schema, name string) *schema {
	if property, ok := s.Properties[name]; ok {
		return &property
	}
	return additionalOf(s)
}

// additionalOf returns the schema of unnamed fields, or nil if there can be none.
func additionalOf(s *schema) *schema {
	switch values := s.AdditionalProperties; {
	case values != nil && values.Schema != nil:
		return values.Schema
	case preserves(s):
		return anyValue
	case values != nil && values.Allows:
		return prunedValue
	default:
		return nil
	}
}

var plainName = regexp.MustCompile(`^([A-Za-z0-9_-]+|\*)$`)

// below returns the location of a field.
func (p location) below(name string) location {
	p.path = join(p.path, name)
	return p
}

// join returns the path of a field in the notation of PublishedResources.
func join(path, name string) string {
	switch {
	case !plainName.MatchString(name):
		return path + "['" + name + "']"
	case path == "":
		return name
	default:
		return path + "." + name
	}
}

// Types of lists whose items must differ.
const (
	listSet = "set"
	listMap = "map"
)

func listTypeOf(s *schema) string {
	if s.XListType == nil {
		return ""
	}
	return *s.XListType
}

// list compares the schemas of lists.
func (c *comparison) list(at location, mine, theirs *schema) {
	if !isRangeWithin(mine.MinItems, mine.MaxItems, theirs.MinItems, theirs.MaxItems) {
		c.addFinding(at, ReasonItems, "the target takes %s items, the mailbox %s", formatRange(theirs.MinItems, theirs.MaxItems), formatRange(mine.MinItems, mine.MaxItems))
	}
	if !areItemsDistinct(mine, theirs) {
		c.addFinding(at, ReasonDuplicates, "the target takes no item twice, the mailbox does")
	}
	own, other := itemsOf(mine), itemsOf(theirs)
	at.path += "[]"
	if acceptsNull(own) && !acceptsNull(other) {
		c.addFinding(at, ReasonNull, "the mailbox takes null, the target does not")
	}
	c.compare(at, own, other)
}

func itemsOf(s *schema) *schema {
	switch {
	case s.Items != nil && s.Items.Schema != nil:
		return s.Items.Schema
	case preserves(s):
		return anyValue
	default:
		return prunedValue
	}
}

// areItemsDistinct reports whether the mailbox forbids duplicate items wherever the target does.
func areItemsDistinct(mine, theirs *schema) bool {
	if mine.MaxItems != nil && *mine.MaxItems <= 1 {
		return true
	}
	if theirs.UniqueItems && !mine.UniqueItems {
		return false
	}
	switch listTypeOf(theirs) {
	case listSet:
		return listTypeOf(mine) == listSet
	case listMap:
		isOther := func(key string) bool { return !slices.Contains(theirs.XListMapKeys, key) }
		return listTypeOf(mine) == listMap && len(mine.XListMapKeys) > 0 && !slices.ContainsFunc(mine.XListMapKeys, isOther)
	default:
		return true
	}
}
