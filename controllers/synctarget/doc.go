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

// Package synctarget is the controller of SyncTargets, the registrations of target clusters in inventory workspaces.
//
// [Controller.Reconcile] reads the kubeconfig Secret of a SyncTarget, makes package targets connect, and
// verifies which cluster responds. It then assigns the target to the sync manager, or drains the target, and
// writes the status. The package also renews tokens and, for a SyncTarget that is being deleted, cleans up the
// target.
//
// The package does not sync objects; package syncmanager does. It does not create or delete mailboxes: package
// mailbox does, and calls [Controller.IsCleanedUp] before it deletes one. Connections and the sync manager
// publish their changes on topics that the controller subscribes to.
package synctarget
