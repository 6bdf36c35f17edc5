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

// Package publish has the command publish. [Plan] and [PlanDefinition] plan the PublishedResources that give all mailboxes
// resources of one target, or of a file of CustomResourceDefinitions; they write nothing.
//
// A resource that is already published from another source is not changed, even if its schema differs: a second
// PublishedResource of the same resource would only report that the older one takes precedence.
package publish
