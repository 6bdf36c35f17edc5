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

// Package registration makes a cluster known to the hub, for the operator's own tool: on the cluster an identity with
// rights for the resources that an operator named or published, in an inventory workspace the Secret with its kubeconfig and
// the SyncTarget.
//
// Everything is created, or updated where it differs, so that a second run changes nothing and keeps the identity. What
// somebody else made under one of the names is never touched; the error says so. The hub takes no part in this and never has
// the administrator's credentials.
package registration
