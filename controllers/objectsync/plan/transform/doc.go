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

// Package transform makes, from an object in a mailbox, the object that the target must hold, and from an object of a
// target the one that the mailbox must hold, or the status that it must show.
//
// What belongs to one side alone stays there: identity, bookkeeping, status, owners and finalizers, the labels and
// annotations of kcp, of kubectl and of KubeStellar, our own marks, and what only the API server of that side can fill
// in. A conversion changes what the object is called.
//
// The package is pure: it never changes its input, which may be an informer's, and does no I/O.
package transform
