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

package selection

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/conversion"
)

// conversions are the conversions of one config, in its order. A config may have thousands, most with a name, so they are
// indexed.
type conversions struct {
	all []*conversion.Conversion
	// byUpstream and byDownstream hold the positions in all of the conversions for a kind and name on that side.
	byUpstream, byDownstream map[conversionKey][]int
}

// conversionKey is a key of the indexes, with "*" for any kind and "" for any name.
type conversionKey struct{ group, kind, name string }

func keyOfPattern(pattern conversion.Pattern) conversionKey {
	return conversionKey{pattern.Group, pattern.Kind, pattern.Name}
}

func newConversions(all []*conversion.Conversion) conversions {
	made := conversions{all: all, byUpstream: map[conversionKey][]int{}, byDownstream: map[conversionKey][]int{}}
	for index, conversion := range all {
		upstream, downstream := keyOfPattern(conversion.Upstream), keyOfPattern(conversion.Downstream)
		made.byUpstream[upstream] = append(made.byUpstream[upstream], index)
		made.byDownstream[downstream] = append(made.byDownstream[downstream], index)
	}
	return made
}

// producing returns the conversions that produce objects of a kind on the target.
func (c *conversions) producing(group, kind string) []*conversion.Conversion {
	var making []*conversion.Conversion
	for _, one := range c.all {
		if one.Downstream.Group == group && (one.Downstream.Kind == kind || one.Downstream.Kind == conversion.Any) {
			making = append(making, one)
		}
	}
	return making
}

// invalidConversions are conversions of a config that cannot be compiled.
type invalidConversions []edgev2alpha1.Conversion

// mayConvertDown reports whether one of the conversions may be meant for a mailbox object.
func (c invalidConversions) mayConvertDown(mailbox Object) bool {
	return slices.ContainsFunc(c, func(invalid edgev2alpha1.Conversion) bool { return mayConvert(invalid.Upstream, mailbox) })
}

// mayConvertUp reports whether one of the conversions may be meant for a target object.
func (c invalidConversions) mayConvertUp(target Object) bool {
	return slices.ContainsFunc(c, func(invalid edgev2alpha1.Conversion) bool { return mayConvert(invalid.Downstream, target) })
}

// mayConvert reports whether a side of an invalid conversion may be meant for the API of an object.
func mayConvert(side edgev2alpha1.EdgeSyncConfigResource, object Object) bool {
	isGroup := side.Group == object.Resource.Group || side.Group == All || strings.Contains(side.Group, "/")
	return isGroup && (side.Kind == "" || side.Kind == conversion.Any || side.Kind == object.Kind)
}

// convertFunc returns the name of an object on the other side, and the conversion; nil if both sides have the same name.
type convertFunc func(*conversions, conversion.Name) (conversion.Name, *conversion.Conversion)

func (c *conversions) down(mailbox conversion.Name) (conversion.Name, *conversion.Conversion) {
	return c.convert(c.byUpstream, mailbox, (*conversion.Conversion).Down)
}

func (c *conversions) up(target conversion.Name) (conversion.Name, *conversion.Conversion) {
	return c.convert(c.byDownstream, target, (*conversion.Conversion).Up)
}

// convert applies the first conversion that matches the object.
func (c *conversions) convert(
	index map[conversionKey][]int,
	called conversion.Name,
	convert func(*conversion.Conversion, conversion.Name) (conversion.Name, bool),
) (conversion.Name, *conversion.Conversion) {
	found, result := len(c.all), called
	for _, kind := range []string{called.GVK.Kind, conversion.Any} {
		for _, name := range []string{called.Name, ""} {
			for _, place := range index[conversionKey{called.GVK.Group, kind, name}] {
				if place >= found {
					break
				}
				if converted, ok := convert(c.all[place], called); ok {
					found, result = place, converted
					break
				}
			}
		}
	}
	if result == called {
		return called, nil
	}
	return result, c.all[found]
}

// DownstreamKinds returns the kinds that conversions of any config produce from objects of a kind of the mailbox: sorted, each
// once, without the kind itself. A version is empty if the conversion has none.
func (m *Matcher) DownstreamKinds(kind schema.GroupKind) []schema.GroupVersionKind {
	if m == nil {
		return nil
	}
	var found []schema.GroupVersionKind
	for _, config := range m.configs {
		for _, converted := range config.conversions.all {
			up, down := converted.Upstream, converted.Downstream
			if up.Group != kind.Group || up.Kind != kind.Kind && up.Kind != conversion.Any {
				continue
			}
			made := schema.GroupVersionKind{Group: down.Group, Version: down.Version, Kind: down.Kind}
			if made.Kind == conversion.Any {
				made.Kind = kind.Kind
			}
			if made.GroupKind() != kind {
				found = append(found, made)
			}
		}
	}
	slices.SortFunc(found, func(a, b schema.GroupVersionKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Version, b.Version))
	})
	return slices.Compact(found)
}

// targetEntries returns the entries that an entry for target objects stands for. Older configs use the mailbox's names of such
// objects: if no conversion produces the entry's kind, but some convert it, the entry stands for their results.
func (c *conversions) targetEntries(entry edgev2alpha1.EdgeSyncConfigResource) []edgev2alpha1.EdgeSyncConfigResource {
	var images []edgev2alpha1.EdgeSyncConfigResource
	for _, converted := range c.all {
		if appliesTo(converted.Downstream, entry) {
			return []edgev2alpha1.EdgeSyncConfigResource{entry}
		}
		if image, ok := convertEntry(entry, converted); ok {
			images = append(images, image)
		}
	}
	if len(images) == 0 {
		return []edgev2alpha1.EdgeSyncConfigResource{entry}
	}
	return images
}

func appliesTo(pattern conversion.Pattern, entry edgev2alpha1.EdgeSyncConfigResource) bool {
	return pattern.Group == entry.Group &&
		(pattern.Kind == entry.Kind || pattern.Kind == conversion.Any || entry.Kind == All)
}

// convertEntry returns an entry for the results of a conversion, given an entry for mailbox objects.
func convertEntry(entry edgev2alpha1.EdgeSyncConfigResource, converted *conversion.Conversion) (image edgev2alpha1.EdgeSyncConfigResource, ok bool) {
	up, down := converted.Upstream, converted.Downstream
	if up.Group != entry.Group {
		return image, false
	}
	// A conversion uses "*" for any kind and "" for any other value. An entry uses "" for any version and "*" for any other
	// value.
	if up.Kind == conversion.Any {
		up.Kind, down.Kind = "", ""
	}
	kind, kindOK := convertValue(entry.Kind, All, up.Kind, down.Kind)
	version, versionOK := convertValue(entry.Version, "", up.Version, down.Version)
	namespace, namespaceOK := convertValue(entry.Namespace, All, up.Namespace, down.Namespace)
	name, nameOK := convertValue(entry.Name, All, up.Name, down.Name)
	return edgev2alpha1.EdgeSyncConfigResource{
		Group: down.Group, Version: version, Kind: kind, Namespace: namespace, Name: name,
	}, kindOK && versionOK && namespaceOK && nameOK
}

// convertValue returns the value of an entry on the other side of a conversion from one value to another.
func convertValue(value, open, from, to string) (narrowed string, ok bool) {
	switch {
	case from == "":
		return value, true
	case value == open:
		return to, true
	default:
		return to, value == from
	}
}
