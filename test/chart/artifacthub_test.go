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

package chart

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/synchub-dev/synchub/apis/schemas"
	"github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/test/framework"
)

const pagesURL = "https://github.com/synchub-dev/synchub/blob/main/"

// annotation decodes one of the chart's annotations for Artifact Hub, which are YAML in a string.
func annotation(t *testing.T, root, name string, into any) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "charts", "synchub", "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var metadata struct {
		Annotations map[string]string `json:"annotations"`
	}
	if err := yaml.Unmarshal(content, &metadata); err != nil {
		t.Fatal(err)
	}
	text := metadata.Annotations["artifacthub.io/"+name]
	if text == "" {
		t.Fatalf("Chart.yaml has no annotation %s", name)
	}
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func TestArtifactHubLinksLeadToFiles(t *testing.T) {
	root, err := framework.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	var links []struct{ Name, URL string }
	annotation(t, root, "links", &links)
	for _, link := range links {
		file, ours := strings.CutPrefix(link.URL, pagesURL)
		if !ours || link.Name == "" {
			t.Errorf("%v is no link to a file of the repository with a name", link)
			continue
		}
		if _, err := os.Stat(filepath.Join(root, file)); err != nil {
			t.Errorf("%s: %v", link.Name, err)
		}
	}
}

func TestArtifactHubKnowsTheDefinition(t *testing.T) {
	root, err := framework.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	var definitions []struct{ Kind, Version, Name, DisplayName, Description string }
	annotation(t, root, "crds", &definitions)
	if len(definitions) != 1 {
		t.Fatalf("it lists %d definitions", len(definitions))
	}
	listed, definition := definitions[0], schemas.PublishedResourceCRD()
	if listed.Name != definition.Name || listed.Kind != definition.Spec.Names.Kind || listed.Version != definition.Spec.Versions[0].Name {
		t.Errorf("it lists %+v", listed)
	}
	var examples []v1alpha1.PublishedResource
	annotation(t, root, "crdsExamples", &examples)
	if len(examples) == 0 || examples[0].APIVersion != definition.Spec.Group+"/"+listed.Version || examples[0].Kind != listed.Kind {
		t.Errorf("its examples are %+v", examples)
	}
}

func TestArtifactHubShowsChanges(t *testing.T) {
	root, err := framework.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	var changes []struct{ Kind, Description string }
	annotation(t, root, "changes", &changes)
	for _, change := range changes {
		if !slices.Contains([]string{"added", "changed", "deprecated", "removed", "fixed", "security"}, change.Kind) || change.Description == "" {
			t.Errorf("%+v is no change that Artifact Hub shows", change)
		}
	}
}
