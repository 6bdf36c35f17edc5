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

// Package scenario holds what is measured: each scenario has the hub do something on real servers and, where the figure is a
// ratio, has the same done directly on the same servers in turn with it.
//
// All scenarios share one [Env], in which namespaces that begin with "hub" are selected for the hub, and those that begin
// with "bare" are left to the bare syncer. Each scenario waits until the hub is at rest before it measures.
package scenario
