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

// Package discovery reads from a cluster what defines one of its APIs, as a CustomResourceDefinition: the definition
// itself or, for a kind that is built in or served by an aggregated server, one that is made of the cluster's discovery
// and its OpenAPI v3 document.
//
// Nothing is taken from discovery alone: a kind that the cluster lists but does not describe is refused. A definition
// that may not be read counts as none, since the OpenAPI document repeats its schema; only printer columns are lost, and
// a note says so.
package discovery
