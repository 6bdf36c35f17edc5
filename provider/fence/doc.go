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

// Package fence keeps a replica from writing while it does not hold its Lease. Several replicas of the hub may run at once, and
// all of them read. Only the replica that holds the Lease may write. A paused replica cannot know that another one took the Lease
// during the pause. Therefore the transport of each client refuses writes after a deadline.
package fence
