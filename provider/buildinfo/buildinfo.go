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

package buildinfo

import "runtime/debug"

// Unstamped is the version of a program into which the linker has stamped none.
const Unstamped = "dev"

// Version returns the version that the linker has stamped. A program from `go install` has none, and Version returns the
// version of its module.
func Version(stamped string) string {
	if stamped != Unstamped {
		return stamped
	}
	info, _ := debug.ReadBuildInfo()
	return ofModule(info)
}

// ofModule returns the version of the main module if the program was built from a released version, not from a checkout.
func ofModule(info *debug.BuildInfo) string {
	if info == nil || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return Unstamped
	}
	return info.Main.Version
}
