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

// Package plan plans the writes for one object, given its observed state on both sides.
//
// A [Planner] computes a [DownPlan] and an [UpPlan] from a [Snapshot]. The caller executes them. The planner calls [DecideDown]
// and [DecideUp], which are pure functions from facts to a [Decision]. Every rule about overwriting, releasing and deleting is
// therefore in this package, and its tables are tested without a server. A [Resource] has the rules of one PublishedResource.
package plan
