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

// Package registration registers a cluster with the hub, for the kubectl plugin. On the cluster it creates an identity
// with permissions for the resources that an operator named or published. In an inventory workspace it creates the
// Secret with the kubeconfig, and the SyncTarget.
//
// It writes the objects on the cluster by server-side apply, and changes single fields of the objects in the workspace, which
// users and the hub write too. So a second run changes nothing and keeps the identity. If somebody else's object has one of the names, it
// leaves the object alone, and the error names it. The hub takes no part in a registration, and never has the administrator's
// credentials.
package registration
