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

// Package aggregation combines the statuses that an object has on several clusters into one, which the source of the object shows.
//
// It adds numbers up, or takes those of the cluster that has come least far, and is careful with everything else: what is not the same everywhere is left out, and a condition is True
// only if it is True on every cluster.
package aggregation
