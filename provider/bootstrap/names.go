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

package bootstrap

const (
	// HashKeySecret and HashKeyNamespace name the Secret with the key of the hashes in marks; HashKey is the key in the
	// Secret's data.
	HashKeySecret    = "synchub-hash-key" //nolint:gosec // the name of a Secret is no secret
	HashKeyNamespace = "default"
	HashKey          = "key"
	// hubRole is the name of the ClusterRole of the hub's user, and of its bindings.
	hubRole = "synchub:hub"
	// inventoryRole is the ClusterRole that allows binding the inventory export.
	inventoryRole = "synchub:inventory"
	// workloadRole is the ClusterRole that allows binding the workload export.
	workloadRole = "synchub:workload"
	// accessRole is kcp's own role for access to a workspace.
	accessRole = "system:kcp:workspace:access"
)
