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

// Package findings contains what one controller of the hub finds out and other controllers use.
//
// [Readiness] contains which SyncTargets are Ready, as this hub has observed since its start. The condition Ready contains the same,
// but users may write conditions, so the hub must not base decisions on it. [Withdrawals] contains which copies the hub is about to
// withdraw because an inventory changed: placement publishes them, and the controller of Locations shows them to the administrators
// of the inventory.
package findings
