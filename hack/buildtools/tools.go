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
	"fmt"
	"slices"
	"strings"
)

// tool is a program and the pinned module that contains it.
type tool struct {
	name string
	// dir is the directory below hack/tools with the module that pins the tool. The version of the required module that contains pkg is
	// the tool's version.
	dir, pkg string
	// purposes are the values of -for that include the tool, separated by spaces.
	purposes string
	ldflags  func(version string) string
}

const forAll = "all"

// purposes are the values of -for. Those for compatibility are the oldest and the newest Kubernetes that synchub is tested with, and
// those for shards a kcp of several shards. Pictures are drawn from the dashboards.
var purposes = []string{"demo", "test", "verify", "image", "release", "compatibility", "shards", "pictures", forAll}

const (
	kcp        = "github.com/kcp-dev/kcp/cmd/"
	kubernetes = "k8s.io/kubernetes/cmd/"
	prometheus = "github.com/prometheus/prometheus/cmd/"
)

// table is in build order: the longest builds come first, so that later steps are faster than expected.
var table = []tool{
	{"kcp", "kcp", kcp + "kcp", "demo test", stripped},
	{"kube-apiserver", "kubernetes", kubernetes + "kube-apiserver", "demo test", kubernetesVersion},
	{"kube-controller-manager", "kubernetes", kubernetes + "kube-controller-manager", "demo test", kubernetesVersion},
	{"kube-scheduler", "kubernetes", kubernetes + "kube-scheduler", "demo test", kubernetesVersion},
	{"kubectl", "kubernetes", kubernetes + "kubectl", "demo test", kubernetesVersion},
	{"kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok", "demo test", stripped},
	{"etcd", "etcd", "go.etcd.io/etcd/server/v3", "demo test", stripped},
	{"helm", "helm", "helm.sh/helm/v3/cmd/helm", "test", stripped},
	{"promtool", "prometheus", prometheus + "promtool", "test", stripped},
	{"prometheus", "prometheus", prometheus + "prometheus", "pictures", stripped},
	{"golangci-lint", "golangci-lint", "github.com/golangci/golangci-lint/v2/cmd/golangci-lint", "verify", stripped},
	{"controller-gen", "controller-gen", "sigs.k8s.io/controller-tools/cmd/controller-gen", "verify", stripped},
	{"crd-ref-docs", "crd-ref-docs", "github.com/elastic/crd-ref-docs", "verify", stripped},
	{"govulncheck", "govulncheck", "golang.org/x/vuln/cmd/govulncheck", "verify", stripped},
	{"vale", "vale", "github.com/vale-cli/vale/v3/cmd/vale", "verify", stripped},
	{"addlicense", "addlicense", "github.com/google/addlicense", "verify", stripped},
	{"go-licenses", "go-licenses", "github.com/google/go-licenses/v2", "verify", stripped},
	{"helm-docs", "helm-docs", "github.com/norwoodj/helm-docs/cmd/helm-docs", "verify", stripped},
	{"hugo", "hugo", "github.com/gohugoio/hugo", "verify", stripped},
	{"d2", "d2", "oss.terrastruct.com/d2", "verify", stripped},
	{"syft", "syft", "github.com/anchore/syft/cmd/syft", "release", mainVersion},
	{"goreleaser", "goreleaser", "github.com/goreleaser/goreleaser/v2", "release", mainVersion},
	{"ko", "ko", "github.com/google/ko", "image", koVersion},
	{"kcp-front-proxy", "kcp", kcp + "kcp-front-proxy", "shards", stripped},
	{"cache-server", "kcp", kcp + "cache-server", "shards", stripped},
	{"kube-apiserver-oldest", "kubernetes-oldest", kubernetes + "kube-apiserver", "compatibility", kubernetesVersion},
	{"kube-apiserver-newest", "kubernetes-newest", kubernetes + "kube-apiserver", "compatibility", kubernetesVersion},
}

// stripped returns linker flags that omit debug information; this halves the time to link.
func stripped(string) string { return "-s -w" }

// mainVersion returns linker flags that set the version of a program with a variable for it. syft writes it into SBOMs.
func mainVersion(version string) string {
	return stripped(version) + " -X main.version=" + strings.TrimPrefix(version, "v")
}

// koVersion returns linker flags that set the version of ko, which writes it into SBOMs.
func koVersion(version string) string {
	return stripped(version) + " -X github.com/google/ko/pkg/commands.Version=" + version
}

// kubernetesVersion returns linker flags that set the version of a Kubernetes program, as its release scripts do.
func kubernetesVersion(version string) string {
	const pkg = "k8s.io/component-base/version"
	parts := append(strings.Split(strings.TrimPrefix(version, "v"), "."), "", "")
	return fmt.Sprintf("%s -X %[2]s.gitVersion=%[3]s -X %[2]s.gitMajor=%[4]s -X %[2]s.gitMinor=%[5]s",
		stripped(version), pkg, version, parts[0], parts[1])
}

// choose returns the tools for a purpose and the named ones. With neither it returns all tools.
func choose(purpose string, names []string) ([]tool, error) {
	if purpose == "" && len(names) == 0 {
		purpose = forAll
	}
	if purpose != "" && !slices.Contains(purposes, purpose) {
		return nil, fmt.Errorf("-for %s: it must be one of %s", purpose, strings.Join(purposes, ", "))
	}
	for _, name := range names {
		if !slices.ContainsFunc(table, func(t tool) bool { return t.name == name }) {
			return nil, fmt.Errorf("there is no tool %q; the tools are %s", name, strings.Join(allNames(), ", "))
		}
	}
	var chosen []tool
	for _, t := range table {
		if purpose == forAll || slices.Contains(strings.Fields(t.purposes), purpose) || slices.Contains(names, t.name) {
			chosen = append(chosen, t)
		}
	}
	return chosen, nil
}

func allNames() []string {
	names := make([]string, len(table))
	for i, t := range table {
		names[i] = t.name
	}
	return names
}
