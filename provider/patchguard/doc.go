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

// Package patchguard protects lists in workspaces from strategic merge patches.
//
// kcp accepts strategic merge patches of exported APIs whose group Kubernetes' clients know, but its OpenAPI lacks the
// extension x-kubernetes-patch-strategy. So kcp replaces a list by the items of a patch instead of merging both: after
// `kubectl set image` a Deployment has only the named container, without its env and ports. The package builds a
// ValidatingAdmissionPolicy that refuses such an update. In the provider workspace it protects all workspaces that bind an
// export of that workspace. See docs/design/0028-strategic-merge-patches.md.
package patchguard
