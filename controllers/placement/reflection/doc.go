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

// Package reflection decides how an upsynced object of a mailbox looks in the workload workspace whose placements select it: its name,
// labels and owners, and whether it has to be written. A reflection is that object in the workspace. Nobody edits it, and no placement
// places it. The package is pure.
package reflection
