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
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/synchub-dev/synchub/test/fixtures"
	"github.com/synchub-dev/synchub/test/framework/suite"
	"github.com/synchub-dev/synchub/test/tier"
)

// The commands on the page work as they stand, one after the other.
func TestDocumentedPlacementCommandsWork(t *testing.T) {
	tier.Thorough(t)
	b := newBindTest(t, "bind-docs")
	b.allowBind(t)
	page := string(suite.ReadFile(t, "../../docs/placement.md"))
	commands := indentedCommand.FindAllStringSubmatch(page, -1)
	if len(commands) < 6 {
		t.Errorf("the page shows %d commands", len(commands))
	}
	for _, shown := range commands {
		args := strings.Fields(shown[1])
		switch args[0] {
		case "allow":
			// It is for an inventory workspace, see TestAllow.
			continue
		case "unbind":
			args = append(args, "--provider-workspace", bindProvider, "--yes")
		case "bind":
			args = append(args, "--provider-workspace", bindProvider)
		}
		succeed(t, args...)
		if shown[1] == "bind compute root:inventory" {
			b.takesSpecs(t, page)
		}
	}
	if b.binding(t) != nil {
		t.Error("the APIBinding is there")
	}
}

// takesSpecs creates an EdgePlacement with each spec of a page, and the first of the objects that the page shows whole, in a dry run.
func (b *bindTest) takesSpecs(t *testing.T, page string) {
	t.Helper()
	specs := yamlBlock.FindAllStringSubmatch(page, -1)
	if len(specs) == 0 {
		t.Error("the page shows no spec")
	}
	suite.Apply(t, b.kcp.Workspace(b.path), "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
	for _, spec := range specs {
		manifest, _, _ := strings.Cut(spec[1], "\n---\n")
		if !strings.HasPrefix(manifest, "apiVersion:") {
			manifest = "apiVersion: edge.kubestellar.io/v2alpha1\nkind: EdgePlacement\nmetadata: {name: example}\n" + manifest
		}
		object := fixtures.Object(t, manifest)
		if err := b.workspace.Create(t.Context(), object, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
			t.Errorf("%v in\n%s", err, spec[1])
		}
	}
}

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")
