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

// Package tenants keeps on one cluster what the namespaces of workload workspaces need there: a ServiceAccount for each workspace, and in
// each namespace a RoleBinding for it, a ResourceQuota and a LimitRange. The hub writes these objects as itself, before it writes the
// first object of the workspace into the namespace.
//
// After a restart the caches of the cluster, which a label restricts to these objects, show that nothing is to be done.
package tenants
