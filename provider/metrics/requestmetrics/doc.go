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

// Package requestmetrics counts every request the hub makes, at the HTTP transport, by the side it goes to, by its class and
// by what it does.
//
// The classes are those of the design's first rule: one write for a change and nothing at rest can only be trusted if
// it is counted where nothing can slip past. What a request that failed may say to people is decided here too.
package requestmetrics
