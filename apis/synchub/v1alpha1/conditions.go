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

// Condition types of a PublishedResource.
const (
	// ConditionReady is True when the API is exported to mailboxes and the hub can sync its objects.
	ConditionReady = "Ready"

	// ConditionSchemaReady is True when the hub has found and converted the schema, or needs none because it claims
	// the resource.
	ConditionSchemaReady = "SchemaReady"

	// ConditionExported is True when the mailbox export contains the schema or the claim.
	ConditionExported = "Exported"

	// ConditionAPIsMissing is True while mailboxes lack the API although the export contains it. The message names
	// their SyncTargets.
	ConditionAPIsMissing = "APIsMissing"

	// ConditionMutatedReference is True when mutation changes a field with which an entry of related finds objects, and this
	// entry has no naming.  Copies keep the names of their originals, so the primary on the other side refers to names that
	// do not exist there. The message names the entries.
	ConditionMutatedReference = "MutatedReference"

	// ConditionNotPlaceable is True while kcp refuses the API, or an API of related, in the workload export, so that
	// workload workspaces lack it although mailboxes have it. The message is kcp's.
	ConditionNotPlaceable = "NotPlaceable"

	// ConditionNotImplemented is True when the object sets fields that this release accepts but does not act upon.
	// The message names the fields.
	ConditionNotImplemented = "NotImplemented"
)
