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

package cli

import (
	"strings"
	"testing"
)

func TestValidatePath(t *testing.T) {
	for path, want := range map[string]bool{
		"root": true, "root:teams:web": true, "2yz3r9p5": true, "root:a-b": true,
		"": false, "root:": false, ":root": false, "root:teams:*": false, "Root": false, "root:-a": false, "root/teams": false, "..": false,
		strings.Repeat("a", maxPathLength): true, strings.Repeat("a", maxPathLength+1): false,
	} {
		if err := ValidatePath(path); (err == nil) != want {
			t.Errorf("%q: %v", path, err)
		}
	}
}
