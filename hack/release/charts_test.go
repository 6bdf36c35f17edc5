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
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// The defaults follow the Pod security standard "restricted", with a root filesystem that nobody can write, and each Pod of the chart has
// them. The tests of test/chart render the charts; this one needs no helm, so that it runs before each commit.
func TestDefaultSecurityContexts(t *testing.T) {
	var values struct {
		Pod       corev1.PodSecurityContext `json:"podSecurityContext"`
		Container corev1.SecurityContext    `json:"containerSecurityContext"`
	}
	if err := yaml.Unmarshal(readFile(t, filepath.Join(root, "charts", "synchub", "values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	seccomp := &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	nobody := new(int64(65532))
	if want := (corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: nobody, RunAsGroup: nobody, FSGroup: nobody, SeccompProfile: seccomp}); !reflect.DeepEqual(values.Pod, want) {
		t.Errorf("podSecurityContext: want %+v, got %+v", want, values.Pod)
	}
	if want := (corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true), RunAsNonRoot: new(true), SeccompProfile: seccomp,
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}); !reflect.DeepEqual(values.Container, want) {
		t.Errorf("containerSecurityContext: want %+v, got %+v", want, values.Container)
	}
}

func TestEachPodHasItsSecurityContexts(t *testing.T) {
	fromValues := []string{
		"      securityContext:\n        {{- toYaml .Values.podSecurityContext | nindent 8 }}\n",
		"          securityContext:\n            {{- toYaml .Values.containerSecurityContext | nindent 12 }}\n",
	}
	for template, want := range map[string][]string{
		"synchub/templates/deployment.yaml":        fromValues,
		"synchub/templates/wait.yaml":              fromValues,
		"synchub-tunnel/templates/deployment.yaml": fromValues,
	} {
		content := string(readFile(t, filepath.Join(root, "charts", template)))
		if containers := strings.Count(content, "image: "); containers != 1 {
			t.Errorf("%s has %d containers, and this test knows one", template, containers)
		}
		for _, part := range want {
			if strings.Count(content, part) != 1 {
				t.Errorf("%s lacks\n%s", template, part)
			}
		}
	}
}

// TestEachValueIsDescribed reads the tables that helm-docs makes of the comments in values.yaml, which has an empty cell for a value
// without one.
func TestEachValueIsDescribed(t *testing.T) {
	for page, least := range map[string]int{"charts/synchub/README.md": 100, "charts/synchub-tunnel/README.md": 20, "docs/reference/values.md": 100} {
		count := 0
		for line := range strings.Lines(string(readFile(t, filepath.Join(root, page)))) {
			if !strings.HasPrefix(line, "| `") {
				continue
			}
			count++
			if strings.HasSuffix(strings.ReplaceAll(strings.TrimSpace(line), " ", ""), "||") {
				t.Errorf("%s: begin the comment of the value with \"# --\", and describe it: %s", page, line)
			}
		}
		if count < least {
			t.Errorf("%s has %d values, want at least %d", page, count, least)
		}
	}
}
