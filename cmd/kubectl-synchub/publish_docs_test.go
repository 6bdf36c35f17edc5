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

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/publish"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// The commands on the page work as they stand, one after the other, and the hosting cluster accepts the objects that the last
// one prints.
func TestDocumentedPublishCommandsWork(t *testing.T) {
	p := newPublishTest(t)
	_, section, _ := strings.Cut(docsPage(t), "\n## Publish from a file of CRDs\n")
	section, _, _ = strings.Cut(section, "\n## ")
	commands := indentedCommand.FindAllStringSubmatch(section, -1)
	if len(commands) != 3 {
		t.Fatalf("the section shows %d commands", len(commands))
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile(filepath.Join(".", "crds.yaml"), []byte(crdOf("Widget", 0)), 0o600); err != nil {
		t.Fatal(err)
	}
	wants := []string{
		lines("cm widgets created", "pr widgets created"),
		lines("cm widgets unchanged", "pr widgets configured"),
	}
	var last printed
	for i, shown := range commands {
		last = succeed(t, append(strings.Fields(shown[1]), "-n", "hub")...)
		if i < len(wants) && last.out != wants[i] {
			t.Errorf("%s prints\n%s", shown[1], last.out)
		}
	}
	suite.Apply(t, p.Config, last.out)
	if !p.widgets(t).Spec.InstallCRD {
		t.Error("the printed objects take installCRD back")
	}
	for _, part := range []string{"`schema-widgets.example.com`", "`widgets.example.com`", "`" + publish.ConfigMapKey + "`", "`" + publish.DefaultNamespace + "` by default"} {
		if !strings.Contains(section, part) {
			t.Errorf("the section does not say %s", part)
		}
	}
}
