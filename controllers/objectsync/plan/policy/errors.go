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

// Reasons of a [DeniedError], as they stand in conditions, events and the status of configs.
const (
	// ReasonNamespaceProtected: the namespace is one that nothing goes to or comes from by default.
	ReasonNamespaceProtected = "NamespaceProtected"
	// ReasonNamespaceNotAllowed: the SyncTarget is bound to other namespaces.
	ReasonNamespaceNotAllowed = "NamespaceNotAllowed"
	// ReasonPrivilegedUpsync: objects of the API act inside kcp, so a target may not bring them up.
	ReasonPrivilegedUpsync = "PrivilegedUpsync"
	// ReasonNameReserved: kcp or the hub keeps the object of that name in a mailbox.
	ReasonNameReserved = "NameReserved"
	// ReasonConversionNotPublished: a conversion makes a kind that no PublishedResource publishes.
	ReasonConversionNotPublished = "ConversionNotPublished"
	// ReasonConversionBypassesRules: a conversion to another kind would leave the rules of a PublishedResource.
	ReasonConversionBypassesRules = "ConversionBypassesRules"
)

// DeniedError says why something does not pass, and what to do about it.
type DeniedError struct {
	// Reason is one of the Reason constants.
	Reason, Message string
}

func (r *DeniedError) Error() string { return r.Message }
