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

// Package fieldpath parses paths in the form of v1alpha1.FieldPath, and reads and changes the fields that they lead to.
//
// A path is a list of steps. A name enters a map, the other steps enter a list: [3] the item at this index, [*] every item, and
// [?(@.name=="app")] the items that are maps with this value in this field. A value that is not text is compared by its JSON
// form, so that [?(@.port=="80")] finds a port. A path leads nowhere if a value does not have the type that a step needs.
//
// The same paths select fields in managedFields, where an item of a list has keys and not an index: there [3] means any item,
// like [*], and [?(@.name=="app")] means the item with this key.
//
// The package is pure, and does not depend on the API of an object.
package fieldpath
