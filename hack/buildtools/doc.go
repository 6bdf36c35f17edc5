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

// Command buildtools installs the programs that the project runs or works with into bin/: those that are missing or whose
// pin changed. It builds each from its own pinned module below hack/tools. With -from=download it downloads the pinned version
// of those that their projects publish as programs for this platform.
//
//	go run ./hack/buildtools [-from source|download|auto] [-for demo|test|verify|image|release|all] [name ...]
//	go run ./hack/buildtools -pin
package main
