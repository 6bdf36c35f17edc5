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

// Package scenario holds the benchmarks. Each [Scenario] lets the hub do a task on real servers. If its result is a ratio,
// the baseline syncer does the same task on the same servers in alternation.
//
// All scenarios share one [Env]. Namespaces with the prefix "hub" are selected for the hub, and those with the prefix
// "bare" are for the baseline syncer. Each scenario waits until the hub is idle before it measures.
package scenario
