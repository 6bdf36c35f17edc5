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

// Package syncmanager decides which resources are synced with each target. For each resource of a
// SyncTarget it runs one sync controller of package objectsync.
//
// A sync controller runs while the configs of the mailbox select the resource, and afterwards until the target
// has no synced object of the resource. That must survive a crash: the manager records the resource in the
// hub's ledger before the controller's first write. It removes the record only after a list on the target was
// empty. So a hub that starts after the last config was deleted still finds the objects that the config brought
// to the target.
//
// Package synctarget calls [Manager.StartSync], [Manager.StopSync] and [Manager.Resume]. Package apiexport calls
// [Manager.Publish] and [Manager.SetSchemas], and package apiresourceschema fills the [crd.Store]. The manager also runs the
// CRD controller and the schema check of each target. It does not connect to targets, and does not write the status of SyncTargets or configs.
//
// A [Manager] decides which SyncTargets are synced. It has a targetState for each, and each reconcile of one is a pass. The APIs that all
// mailboxes get are in the catalog. A counter counts the objects of one SyncTarget, and a [FleetCounter] adds them up.
package syncmanager
