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
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/plan/conversion"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

// All in a list selects every name, namespace or resource.
const All = "*"

// Object holds the facts about an object that selection depends on.
type Object struct {
	// Resource and Kind name the object's API on the side where the object is.
	Resource schema.GroupVersionResource
	Kind     string
	// Namespace is empty for cluster-scoped objects.
	Namespace, Name     string
	Labels, Annotations MetadataMap
	// SecretType is the type of a core Secret; otherwise empty.
	SecretType string
	// Versions are further versions in which the resource is served.
	Versions []string
}

// MetadataMap are an object's labels or annotations as decoded from JSON. They are not copied, because a change of a config
// matches all objects of a mailbox again.
type MetadataMap map[string]any

var _ labels.Labels = MetadataMap(nil)

// Lookup returns the value of an entry, and whether the entry exists. The value of a null is the empty string.
func (e MetadataMap) Lookup(key string) (value string, exists bool) {
	entry, exists := e[key]
	value, _ = entry.(string)
	return value, exists
}

// Get returns the value of an entry, the empty string if there is none.
func (e MetadataMap) Get(key string) string {
	value, _ := e.Lookup(key)
	return value
}

// Has reports whether there is an entry.
func (e MetadataMap) Has(key string) bool {
	_, exists := e[key]
	return exists
}

// API names a resource on one side.
type API struct {
	schema.GroupResource
	Kind string
}

// NamedVersion is a version that an entry names for a resource.
type NamedVersion struct {
	// Config is the config's id, Field the entry's path in it.
	Version, Config, Field string
}

func (o Object) conversionName() conversion.Name {
	return conversion.Name{
		GVK:       o.Resource.GroupVersion().WithKind(o.Kind),
		Namespace: o.Namespace,
		Name:      o.Name,
	}
}

// Selection is how an object is selected.
type Selection struct {
	// Policy is what the hub does with the object's copy on the other side when the selection ends: Orphan if any config requests
	// it.
	Policy ownership.Policy
	// StatusReturn is true if any config requests the status.
	StatusReturn bool
	// Suspended is true if every config that selects the object is suspended.
	Suspended bool
	// Configs names the configs that select the object, as Kind/name, sorted.
	Configs []string
	// Conversion is the conversion of the oldest of these configs that gives the object another name on the other side; nil if
	// both sides have the same name.
	Conversion *conversion.Conversion
	// Overruled names the configs, of Configs, that give the object another name than the oldest one does, sorted.
	Overruled []string
	// Settings are the settings of the entries that select the object; nil for none.
	Settings *Settings
}

// Equal reports whether two selections have the same effect on an object.
func (s Selection) Equal(other Selection) bool {
	return s.Policy == other.Policy && s.StatusReturn == other.StatusReturn && s.Suspended == other.Suspended &&
		equal(s.Conversion, other.Conversion) && s.Settings.equal(other.Settings)
}

func equal(one, other *conversion.Conversion) bool {
	if one == nil || other == nil {
		return one == other
	}
	return *one == *other
}
