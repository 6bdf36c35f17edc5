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

// Package fastjson makes dynamic clients that decode what a server sends only once.
//
// client-go's own read all that comes for its kind first, then to see that it is JSON, and only then for the object: most of what
// a write cost the hub was to decode the answer, and most of what an event cost was to decode it. What a watch sends they read three
// times more: to see where an event ends, and twice for what is around the object.
package fastjson
