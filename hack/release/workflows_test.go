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

package release

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/synchub-dev/synchub/provider/buildinfo"
)

const root = "../.."

// workflow has the fields of a workflow that the tests check.
type workflow struct {
	Permissions map[string]string `json:"permissions"`
	Jobs        map[string]job    `json:"jobs"`
}

type job struct {
	Permissions map[string]string `json:"permissions"`
	Uses        string            `json:"uses"`
	Steps       []step            `json:"steps"`
}

type step struct {
	Uses string `json:"uses"`
	Run  string `json:"run"`
}

// workflows returns the workflows of the repository by the names of their files.
func workflows(t *testing.T) map[string]workflow {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no workflows: %v", err)
	}
	found := map[string]workflow{}
	for _, file := range files {
		var one workflow
		if err := yaml.Unmarshal(readFile(t, file), &one); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if len(one.Jobs) == 0 {
			t.Errorf("%s has no jobs", file)
		}
		found[filepath.Base(file)] = one
	}
	return found
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

var (
	definedTarget = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)
	calledTarget  = regexp.MustCompile(`\bmake (?:-\S+ )*([a-z][a-z0-9-]*)`)
	pinnedAction  = regexp.MustCompile(`^[a-z0-9-]+/[a-z0-9-]+@[0-9a-f]{40}$`)
)

func TestChecksNameTargetsOfTheMakefile(t *testing.T) {
	var targets []string
	for _, match := range definedTarget.FindAllSubmatch(readFile(t, filepath.Join(root, "Makefile")), -1) {
		targets = append(targets, string(match[1]))
	}
	scripts := map[string]string{".ci/run": string(readFile(t, filepath.Join(root, ".ci", "run")))}
	for name, one := range workflows(t) {
		for _, job := range one.Jobs {
			for _, step := range job.Steps {
				scripts[name] += step.Run + "\n"
			}
		}
	}
	for name, script := range scripts {
		for _, match := range calledTarget.FindAllStringSubmatch(script, -1) {
			if !slices.Contains(targets, match[1]) {
				t.Errorf("%s calls make %s, which the Makefile does not have", name, match[1])
			}
		}
	}
	if !strings.Contains(scripts["ci.yaml"], ".ci/run") || !strings.Contains(scripts["release.yaml"], "make release PUBLISH=1") || !strings.Contains(scripts["image.yaml"], "make image") {
		t.Errorf("the workflows run %q", scripts)
	}
}

func TestWorkflowsPinActions(t *testing.T) {
	for name, one := range workflows(t) {
		for _, job := range one.Jobs {
			if called, ok := strings.CutPrefix(job.Uses, "./"); ok {
				if _, err := os.Stat(filepath.Join(root, called)); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			for _, step := range job.Steps {
				if step.Uses != "" && !pinnedAction.MatchString(step.Uses) {
					t.Errorf("%s uses %s, which is not pinned by the hash of a commit", name, step.Uses)
				}
			}
		}
	}
}

// TestWorkflowsHaveFewRights allows a job only what it does: to sign, to publish the site, and to create the release.
func TestWorkflowsHaveFewRights(t *testing.T) {
	for name, one := range workflows(t) {
		if len(one.Permissions) != 1 || one.Permissions["contents"] != "read" {
			t.Errorf("%s has the rights %v, want to read only", name, one.Permissions)
		}
		for title, job := range one.Jobs {
			var scripts strings.Builder
			for _, step := range job.Steps {
				scripts.WriteString(step.Uses + "\n" + step.Run + "\n")
			}
			allowed := map[string]bool{
				"contents=read":  true,
				"contents=write": strings.Contains(scripts.String(), "make release PUBLISH=1"),
				"id-token=write": strings.Contains(scripts.String(), "cosign") || strings.Contains(scripts.String(), "deploy-pages") || job.Uses == "./.github/workflows/image.yaml",
				"pages=write":    strings.Contains(scripts.String(), "deploy-pages"),
			}
			for scope, access := range job.Permissions {
				if !allowed[scope+"="+access] {
					t.Errorf("%s: the job %s has the right %s: %s", name, title, scope, access)
				}
			}
		}
	}
}

// TestChartsDeployTheImageOfTheRelease compares the default image of each chart with the one that the workflow pushes.
func TestChartsDeployTheImageOfTheRelease(t *testing.T) {
	for _, name := range []string{"synchub", "synchub-tunnel"} {
		t.Run(name, func(t *testing.T) { checkImage(t, name) })
	}
	var pushes bool
	for _, step := range workflows(t)["image.yaml"].Jobs["image"].Steps {
		pushes = pushes || strings.Contains(step.Run, `VERSION="$GITHUB_REF_NAME" PUSH="$IMAGE_PROJECT"`)
	}
	if !pushes {
		t.Error("the workflow does not push the images of the version")
	}
}

func checkImage(t *testing.T, name string) {
	t.Helper()
	dir := filepath.Join(root, "charts", name)
	var chart struct {
		Version    string `json:"version"`
		AppVersion string `json:"appVersion"`
	}
	if err := yaml.Unmarshal(readFile(t, filepath.Join(dir, "Chart.yaml")), &chart); err != nil {
		t.Fatal(err)
	}
	if chart.Version == "" || chart.Version != chart.AppVersion {
		t.Errorf("the chart is of version %s and deploys %s: a release has one version", chart.Version, chart.AppVersion)
	}
	var values struct {
		Image struct {
			Registry   string `json:"registry"`
			Repository string `json:"repository"`
			Tag        string `json:"tag"`
		} `json:"image"`
	}
	if err := yaml.Unmarshal(readFile(t, filepath.Join(dir, "values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	if want := buildinfo.ImageProject + "/" + name; values.Image.Registry+"/"+values.Image.Repository != want || values.Image.Tag != "" {
		t.Errorf("the chart deploys %+v, want %s of the chart's appVersion", values.Image, want)
	}
}
