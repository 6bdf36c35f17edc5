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

// Package rbac says what the hub must be allowed to do on a target: as the rules of a role, for whoever grants it, and as
// single verbs, for whoever asks whether it was granted. Both come from one table, so that they cannot differ.
//
// It is pure. What the hub asks of a target is decided elsewhere: provider/targets and provider/discovery make the requests.
package rbac
