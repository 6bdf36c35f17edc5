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

// Package fieldpath follows paths to fields of objects: parsed texts of the form that v1alpha1.FieldPath documents.
//
// A path is a list of steps. A name goes into a map, the other steps go into a list: [3] to the item in this place, [*]
// to every item, and [?(@.name=="app")] to the items that are maps with this value in this field. A value that is no
// text is compared by how JSON writes it, so that [?(@.port=="80")] finds a port. A path that meets something else than
// its step needs leads nowhere.
//
// The same paths speak of fields in managedFields, where an item of a list is known by its keys and not by its place:
// there [3] means any item, as [*] does, and [?(@.name=="app")] the one with this key.
//
// The package is pure: it knows data, not objects of an API.
package fieldpath
