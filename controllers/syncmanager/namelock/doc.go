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

// Package namelock frees names of APIs that kcp reserves in a mailbox. The sync manager calls [Releaser.Release] for APIs that
// a mailbox does not have, and [Releaser.RetryBinding] to make kcp bind them.
//
// kcp records in an annotation of each LogicalCluster whether a name belongs to an APIBinding or to a CRD. kcp
// does not bind an API whose name belongs to a CRD, and the name stays reserved after the CRD is deleted. kcp
// removes such a record only if the record has an expiry in the past and the CRD does not exist. A [Releaser]
// therefore writes an expiry. kcp still checks that the CRD is gone.
//
// If no name is reserved, kcp retries the binding after up to a quarter of an hour, or at once when the APIBinding changes.
// A [Releaser] therefore annotates the APIBinding.
//
// Both use the hub's own rights in the workspace as its creator. The package never deletes a CRD, because kcp
// would delete the CRD's objects too.
package namelock
