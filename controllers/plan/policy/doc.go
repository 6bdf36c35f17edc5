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

// Package policy decides which objects may be synced, by namespace, API and name. Its decisions do not depend on the configs of a
// mailbox or the objects of a target.
//
// It denies by default. Only an operator can allow more, explicitly, in a PublishedResource or a SyncTarget.
//
// The package is pure, and reads only names.
package policy
