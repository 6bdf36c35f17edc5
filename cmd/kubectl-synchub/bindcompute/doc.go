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

// Package bindcompute makes a kcp workspace a workload workspace, for the kubectl plugin: it binds the workload export,
// accepts the claims of the export, and creates an EdgePlacement that selects the Locations of an inventory workspace. It
// also undoes this.
//
// All requests have the user's credentials. The user must be allowed to bind the export, and needs no other right in the
// provider workspace: kcp shows the claims of the export in the status of the APIBinding.
package bindcompute
