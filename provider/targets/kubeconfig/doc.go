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

// Package kubeconfig decides which SyncTargets may use a Secret with a kubeconfig: those that the Secret itself names.
//
// A reference in a SyncTarget is no permission, because somebody who may create SyncTargets need not be allowed to read
// Secrets. `kubectl synchub register` writes the permission; the hub checks it before it uses the content of the Secret.
// The package is pure.
package kubeconfig
