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

// Package image has what ko needs to build the container images of synchub, and tests of these images. See `make image` and
// .ko.yaml.
//
// base is an OCI layout: an image for each platform without files, with a user who is not root. ko takes its base from
// there, as from its cache, so it needs no registry, and each release has the same base. The root certificates are in the programs.
package image
