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

// Package kubeconfig decides which kubeconfigs the hub accepts, and which SyncTargets may use them.
//
// A kubeconfig is data: [Parse] executes, opens and follows nothing in it, and refuses a kubeconfig that needs more than a
// server and a credential. [DeniedNetworks] refuse a server by its address, in the kubeconfig and at each dial.
// [ReplaceToken] writes a renewed [Token].
//
// A Secret names the SyncTargets that may use its kubeconfig; [Allows] checks that. A reference in a SyncTarget is no
// permission, because a user who may create SyncTargets need not be allowed to read Secrets. `kubectl synchub register`
// writes the permission, and the hub checks it before it uses the content of the Secret.
package kubeconfig
