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

import (
	"os"
	"regexp"
	"runtime/debug"
	"testing"
)

func TestVersion(t *testing.T) {
	if got := Version("v0.3.0"); got != "v0.3.0" {
		t.Errorf("the stamped version has become %q", got)
	}
	for version, want := range map[string]string{"v0.3.0": "v0.3.0", "(devel)": Unstamped, "": Unstamped} {
		info := &debug.BuildInfo{}
		info.Main.Version = version
		if got := ofModule(info); got != want {
			t.Errorf("%q has become %q, want %q", version, got, want)
		}
	}
	if got := ofModule(nil); got != Unstamped {
		t.Errorf("without information it is %q", got)
	}
}

// `go install …@version` refuses a module whose go.mod has directives that only apply to the main module.
func TestTheModuleCanBeInstalled(t *testing.T) {
	content, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if found := regexp.MustCompile(`(?m)^(replace|exclude)\b.*`).Find(content); found != nil {
		t.Errorf("go.mod has a directive that prevents go install: %s", found)
	}
}

func TestImage(t *testing.T) {
	if got := Image("synchub-tunnel", "v0.3.0"); got != ImageProject+"/synchub-tunnel:0.3.0" {
		t.Errorf("got %s", got)
	}
	for version, want := range map[string]bool{
		"v0.3.0": true, "0.3.0": true, "v0.3.0-rc.1": true, Unstamped: false, "2b502693": false, "v0.3.0-5-g2b502693": false, "v0.3.0-dirty": false, "v0.3": false,
	} {
		if got := IsRelease(version); got != want {
			t.Errorf("%s is a release: %v", version, got)
		}
	}
}
