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

// Package crd installs CustomResourceDefinitions on targets and keeps them in sync, for PublishedResources with installCRD.
//
// A [Controller] does so for all CRDs that one target must have. It calls an [Installer], which reads one CRD, carries out the
// decision of [Decide], and returns the resulting [State]. [Decide] and [Desired] are pure. Package syncmanager runs one
// Controller per connection to a target and calls [Controller.SetInstallations].
//
// A CRD is the hub's if it has the hub's label and a mark that names the PublishedResource for which it was installed. The hub
// uses any other CRD as it is, and never takes it over. The hub never removes a version that a target has. It never deletes a CRD,
// because all its custom resources would be deleted, too.
package crd
