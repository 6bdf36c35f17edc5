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

// Package aggregation combines an object's statuses on several clusters into the status of the object's source.
//
// It adds up numbers, or takes the numbers of the cluster with the least progress. It leaves out other values that differ between
// clusters. A condition is True only if it is True on every cluster. An expression can combine statuses in another way, and upsynced
// objects into one value.
package aggregation
