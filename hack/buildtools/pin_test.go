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
)

// fixture is a repository with one pinned tool.
type fixture struct {
	tools, bin string
	tool       tool
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	f := fixture{
		tools: t.TempDir(),
		bin:   t.TempDir(),
		tool:  tool{name: "saw", dir: "saw", pkg: "example.org/saw/v2/cmd/saw", ldflags: stripped},
	}
	f.write(t, filepath.Join(f.tools, "saw", "go.mod"), "module m\n\nrequire example.org/saw/v2 v2.1.0\n")
	f.write(t, filepath.Join(f.tools, "saw", "go.sum"), "example.org/saw/v2 v2.1.0 h1:abc=\n")
	return f
}

func (f fixture) write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// built simulates a build of the tool from its current pin.
func (f fixture) built(t *testing.T) {
	t.Helper()
	p, err := pinTool(f.tools, f.tool)
	if err != nil {
		t.Fatal(err)
	}
	f.write(t, p.binary(f.bin), "binary")
	if err := p.recordInstalled(f.bin); err != nil {
		t.Fatal(err)
	}
}

func (f fixture) outdated(t *testing.T) bool {
	t.Helper()
	missing, err := outdated(f.tools, f.bin, []tool{f.tool})
	if err != nil {
		t.Fatal(err)
	}
	return len(missing) == 1
}

func TestOutdated(t *testing.T) {
	tests := []struct {
		name   string
		change func(t *testing.T, f *fixture)
		want   bool
	}{
		{"nothing changed", func(*testing.T, *fixture) {}, false},
		{"binary removed", func(t *testing.T, f *fixture) {
			if err := os.Remove(filepath.Join(f.bin, "saw")); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"built by hand, without a pin", func(t *testing.T, f *fixture) {
			if err := os.Remove(filepath.Join(f.bin, ".saw.pin")); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"another version required", func(t *testing.T, f *fixture) {
			f.write(t, filepath.Join(f.tools, "saw", "go.mod"), "module m\n\nrequire example.org/saw/v2 v2.2.0\n")
		}, true},
		{"a dependency's checksum changed", func(t *testing.T, f *fixture) {
			f.write(t, filepath.Join(f.tools, "saw", "go.sum"), "example.org/saw/v2 v2.1.0 h1:xyz=\n")
		}, true},
		{"other flags", func(_ *testing.T, f *fixture) { f.tool.ldflags = kubernetesVersion }, true},
		{"other package", func(_ *testing.T, f *fixture) { f.tool.pkg += "2" }, true},
		{"another tool's pin changed", func(t *testing.T, f *fixture) {
			f.write(t, filepath.Join(f.tools, "plane", "go.mod"), "module p\n")
		}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			f.built(t)
			test.change(t, &f)
			if got := f.outdated(t); got != test.want {
				t.Errorf("outdated: %t, want %t", got, test.want)
			}
		})
	}
}

func TestOutdatedBeforeTheFirstBuild(t *testing.T) {
	f := newFixture(t)
	if !f.outdated(t) {
		t.Error("a tool that was never built is not outdated")
	}
}

func TestPinNeedsTheRequirement(t *testing.T) {
	f := newFixture(t)
	f.write(t, filepath.Join(f.tools, "saw", "go.mod"), "module m\n")
	if _, err := pinTool(f.tools, f.tool); err == nil || !strings.Contains(err.Error(), "requires no module that contains example.org/saw/v2/cmd/saw") {
		t.Errorf("error %v does not name the missing requirement", err)
	}
}

func TestRequiredVersion(t *testing.T) {
	const goMod = `module m

require example.org/one v1.0.0

require (
	example.org/two v2.0.0-rc.1 // indirect
	example.org/twofold v3.0.0
)

replace example.org/three => example.org/four v4.0.0
`
	for pkg, want := range map[string]string{
		"example.org/one": "v1.0.0", "example.org/two/cmd/two": "v2.0.0-rc.1", "example.org/twofold/cmd": "v3.0.0", "example.org/three": "", "example.org": "",
	} {
		if got := requiredVersion(goMod, pkg); got != want {
			t.Errorf("version of %s: %q, want %q", pkg, got, want)
		}
	}
}

func TestEveryToolIsPinned(t *testing.T) {
	for _, tool := range table {
		if _, err := pinTool(filepath.Join("..", "tools"), tool); err != nil {
			t.Error(err)
		}
	}
}

func TestKubernetesVersion(t *testing.T) {
	const want = "-s -w -X k8s.io/component-base/version.gitVersion=v1.35.4" +
		" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=35"
	if got := kubernetesVersion("v1.35.4"); got != want {
		t.Errorf("flags\n%s, want\n%s", got, want)
	}
}

func TestMainVersion(t *testing.T) {
	if got, want := mainVersion("v1.40.0"), "-s -w -X main.version=1.40.0"; got != want {
		t.Errorf("flags %s, want %s", got, want)
	}
}

func TestChoose(t *testing.T) {
	tests := []struct {
		purpose string
		names   []string
		want    string
		wantErr string
	}{
		{want: strings.Join(allNames(), " ")},
		{purpose: forAll, want: strings.Join(allNames(), " ")},
		{purpose: "verify", want: "golangci-lint controller-gen crd-ref-docs govulncheck vale addlicense go-licenses helm-docs hugo d2"},
		{purpose: "demo", want: "kcp kube-apiserver kube-controller-manager kube-scheduler kubectl kwok etcd"},
		{purpose: "release", want: "syft goreleaser"},
		{names: []string{"helm", "kcp"}, want: "kcp helm"},
		{purpose: "verify", names: []string{"helm"}, want: "helm golangci-lint controller-gen crd-ref-docs govulncheck vale addlicense go-licenses helm-docs hugo d2"},
		{names: []string{"hammer"}, wantErr: `no tool "hammer"`},
		{purpose: "fun", wantErr: "-for fun"},
	}
	for _, test := range tests {
		chosen, err := choose(test.purpose, test.names)
		if test.wantErr != "" {
			if err == nil || !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("choose(%q, %q): error %v, want one with %q", test.purpose, test.names, err, test.wantErr)
			}
			continue
		}
		var names []string
		for _, c := range chosen {
			names = append(names, c.name)
		}
		if got := strings.Join(names, " "); err != nil || got != test.want {
			t.Errorf("choose(%q, %q): %s, %v; want %s", test.purpose, test.names, got, err, test.want)
		}
	}
}
