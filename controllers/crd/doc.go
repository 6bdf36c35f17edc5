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

// Package crd installs CustomResourceDefinitions on targets and keeps them in sync, for PublishedResources that say
// installCRD.
//
// What to do about a definition is decided by [Decide], which is pure. An [Installer] carries it out on one target, one
// definition at a time; a [Controller] does so for all that one target must have, when something has happened.
//
// A definition is the hub's if it carries the hub's label and a mark that names the PublishedResource it was installed for.
// Any other is used as it is. The hub never takes one over, never takes a version away that a target has, and never
// deletes a definition, since all objects would go with it.
package crd
