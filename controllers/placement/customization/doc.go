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

// Package customization changes an object of a workload workspace for one destination: it expands parameters, whose values are
// labels and annotations of the SyncTarget and its Location, and makes the replacements of a Customizer.
//
// The package is pure. Users write the objects, the Customizers and the annotations that request customization,
// so the growth of each object is limited. The result is an object of the same workspace: the caller removes
// the annotations and labels that are never synced, as from all objects.
package customization
