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

// Package transform computes the desired object: for the target from a mailbox object, for the mailbox from a target
// object, and the status to return.
//
// The desired object does not have fields that belong to the other side: identity, bookkeeping, status, owners and finalizers,
// the labels and annotations of kcp, kubectl and KubeStellar, the hub's marks, and fields that only the API server of that side
// can set. A conversion changes the name of the object.
//
// The package is pure. It never changes its input, which may be shared with an informer.
package transform
