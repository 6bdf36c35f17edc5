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

// Package mailbox gives every SyncTarget its mailbox workspace, and takes it away when the SyncTarget is deleted.
//
// A mailbox is deleted only for a SyncTarget that is seen terminating with the hub's finalizer, never because a
// SyncTarget is not seen; and not even then if the inventory workspace or its binding is going too, since nobody asked
// for the end of that target's workload.
package mailbox
