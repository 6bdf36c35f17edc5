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

// Package metrics provides a [Collector] that computes metrics at each scrape from running components. A component adds
// itself when it starts and removes itself when it ends. Nothing is updated between two scrapes, and nothing remains of a
// component that has ended: a hub that does not lead has no series at all. The metrics themselves are in the packages of
// their components.
package metrics
