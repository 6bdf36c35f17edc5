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

package v1alpha1

// The names in the provider workspace.
const (
	// InventoryExport is the export that inventory workspaces bind. It has the SyncTargets.
	InventoryExport = "edge.kubestellar.io"
	// MailboxExport is the export that mailboxes bind. It has the configs and every published API.
	MailboxExport = "mailbox.edge.kubestellar.io"
	// WorkloadExport is the export that workload workspaces bind. It has the placements and every published API.
	WorkloadExport = "workload.edge.kubestellar.io"
	// WorkspaceType is the type of mailbox workspaces.
	WorkspaceType = "mailbox"
)
