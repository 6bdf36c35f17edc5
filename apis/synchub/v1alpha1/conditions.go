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
	// ConditionReady sums up: True when mailboxes have the API and its objects can be synced.
	ConditionReady = "Ready"

	// ConditionSchemaReady is True when the schema was found and converted, or when none is needed because the
	// resource is claimed.
	ConditionSchemaReady = "SchemaReady"

	// ConditionExported is True when the mailbox export carries the schema or the claim.
	ConditionExported = "Exported"

	// ConditionAPIsMissing is True, and names SyncTargets, while mailboxes do not have the API although the export carries it.
	ConditionAPIsMissing = "APIsMissing"

	// ConditionMutatedReference is True, and names the entries of related, when mutation changes the field by which they find
	// objects and they have no naming: copies keep the names of their originals, so the primary does not name them on its
	// other side.
	ConditionMutatedReference = "MutatedReference"

	// ConditionNotImplemented is True, and names the fields, when the object sets fields that this release accepts
	// but does not act upon.
	ConditionNotImplemented = "NotImplemented"
)
