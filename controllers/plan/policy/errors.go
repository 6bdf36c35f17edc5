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

package policy

// Reasons of a [DeniedError]; they appear in conditions, events and the status of configs.
const (
	// ReasonNamespaceProtected: by default, the hub syncs no objects to or from the namespace.
	ReasonNamespaceProtected = "NamespaceProtected"
	// ReasonNamespaceNotAllowed: the SyncTarget may use only other namespaces.
	ReasonNamespaceNotAllowed = "NamespaceNotAllowed"
	// ReasonPrivilegedUpsync: objects of the API act inside kcp, so a target may not upsync them.
	ReasonPrivilegedUpsync = "PrivilegedUpsync"
	// ReasonNameReserved: kcp or the hub owns the object of that name in a mailbox.
	ReasonNameReserved = "NameReserved"
	// ReasonConversionNotPublished: a conversion produces a kind that no PublishedResource publishes.
	ReasonConversionNotPublished = "ConversionNotPublished"
	// ReasonConversionBypassesRules: a conversion to another kind would evade the rules of a PublishedResource.
	ReasonConversionBypassesRules = "ConversionBypassesRules"
)

// DeniedError contains the reason why an object may not be synced, and the remedy.
type DeniedError struct {
	// Reason is one of the Reason constants.
	Reason, Message string
}

func (r *DeniedError) Error() string { return r.Message }
