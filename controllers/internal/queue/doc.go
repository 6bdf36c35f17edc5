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

// Package queue has the queues of controllers that do not run in a manager, and keeps slow reconciles away from shared workers.
//
// A [Queue] runs the workers of a controller only while there is work. An idle controller of controller-runtime needs nine
// goroutines, and a quiet fleet has thousands of controllers: each SyncTarget has its own, so that no slow target blocks the
// workers of other targets.
//
// [Lanes] are for workers that all tenants share. A reconcile waits for servers, and a tenant's workspace may take half a minute
// for each request: the tenant controls the admission webhooks there. A worker therefore waits only for a short time. A slower
// reconcile continues in the lane of its tenant without the worker, which takes the next key.
package queue
