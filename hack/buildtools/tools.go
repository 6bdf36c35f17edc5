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
	// dir is the directory below hack/tools with the module that pins the tool.
	dir string
	// module is the required module that contains the program. The version of the module is the tool's version.
	module  string
	pkg     string
	ldflags func(version string) string
	// purposes are the values of -for that include the tool.
	purposes []string
}

const (
	forDemo   = "demo"
	forTest   = "test"
	forVerify = "verify"
	// forRelease is for SBOMs and archives.
	forRelease = "release"
	// forCompatibility is for the oldest and the newest Kubernetes that synchub is tested with.
	forCompatibility = "compatibility"
	// forShards is for a kcp of several shards.
	forShards = "shards"
	forAll    = "all"
)

// purposes are the values of -for.
var purposes = []string{forDemo, forTest, forVerify, forRelease, forCompatibility, forShards, forAll}

// table is in build order: the longest builds come first, so that later steps are faster than expected.
var table = []tool{
	{name: "kcp", dir: "kcp", module: "github.com/kcp-dev/kcp", pkg: "github.com/kcp-dev/kcp/cmd/kcp",
		ldflags: stripped, purposes: []string{forDemo, forTest}},
	kubernetes("kube-apiserver", forDemo, forTest),
	kubernetes("kube-controller-manager", forDemo, forTest),
	kubernetes("kube-scheduler", forDemo, forTest),
	kubernetes("kubectl", forDemo, forTest),
	{name: "kwok", dir: "kwok", module: "sigs.k8s.io/kwok", pkg: "sigs.k8s.io/kwok/cmd/kwok",
		ldflags: stripped, purposes: []string{forDemo, forTest}},
	{name: "etcd", dir: "etcd", module: "go.etcd.io/etcd/server/v3", pkg: "go.etcd.io/etcd/server/v3",
		ldflags: stripped, purposes: []string{forDemo, forTest}},
	{name: "helm", dir: "helm", module: "helm.sh/helm/v3", pkg: "helm.sh/helm/v3/cmd/helm",
		ldflags: stripped, purposes: []string{forTest, forRelease}},
	{name: "promtool", dir: "promtool", module: "github.com/prometheus/prometheus", pkg: "github.com/prometheus/prometheus/cmd/promtool",
		ldflags: stripped, purposes: []string{forTest}},
	{name: "golangci-lint", dir: "golangci-lint", module: "github.com/golangci/golangci-lint/v2",
		pkg: "github.com/golangci/golangci-lint/v2/cmd/golangci-lint", ldflags: stripped, purposes: []string{forVerify}},
	{name: "controller-gen", dir: "controller-gen", module: "sigs.k8s.io/controller-tools",
		pkg: "sigs.k8s.io/controller-tools/cmd/controller-gen", ldflags: stripped, purposes: []string{forVerify}},
	{name: "crd-ref-docs", dir: "crd-ref-docs", module: "github.com/elastic/crd-ref-docs", pkg: "github.com/elastic/crd-ref-docs",
		ldflags: stripped, purposes: []string{forVerify}},
	{name: "govulncheck", dir: "govulncheck", module: "golang.org/x/vuln", pkg: "golang.org/x/vuln/cmd/govulncheck",
		ldflags: stripped, purposes: []string{forVerify}},
	{name: "vale", dir: "vale", module: "github.com/vale-cli/vale/v3", pkg: "github.com/vale-cli/vale/v3/cmd/vale",
		ldflags: stripped, purposes: []string{forVerify}},
	{name: "addlicense", dir: "addlicense", module: "github.com/google/addlicense", pkg: "github.com/google/addlicense",
		ldflags: stripped, purposes: []string{forVerify}},
	{name: "go-licenses", dir: "go-licenses", module: "github.com/google/go-licenses/v2", pkg: "github.com/google/go-licenses/v2",
		ldflags: stripped, purposes: []string{forVerify}},
	{name: "helm-docs", dir: "helm-docs", module: "github.com/norwoodj/helm-docs", pkg: "github.com/norwoodj/helm-docs/cmd/helm-docs",
		ldflags: stripped, purposes: []string{forVerify}},
	{name: "hugo", dir: "hugo", module: "github.com/gohugoio/hugo", pkg: "github.com/gohugoio/hugo", ldflags: stripped, purposes: []string{forVerify}},
	{name: "d2", dir: "d2", module: "oss.terrastruct.com/d2", pkg: "oss.terrastruct.com/d2", ldflags: stripped, purposes: []string{forVerify}},
	{name: "syft", dir: "syft", module: "github.com/anchore/syft", pkg: "github.com/anchore/syft/cmd/syft",
		ldflags: mainVersion, purposes: []string{forRelease}},
	{name: "goreleaser", dir: "goreleaser", module: "github.com/goreleaser/goreleaser/v2", pkg: "github.com/goreleaser/goreleaser/v2",
		ldflags: mainVersion, purposes: []string{forRelease}},
	{name: "ko", dir: "ko", module: "github.com/google/ko", pkg: "github.com/google/ko", ldflags: koVersion},
	ofShards("kcp-front-proxy"),
	ofShards("cache-server"),
	otherAPIServer("oldest"),
	otherAPIServer("newest"),
}

func kubernetes(name string, purposes ...string) tool {
	return tool{name: name, dir: "kubernetes", module: "k8s.io/kubernetes", pkg: "k8s.io/kubernetes/cmd/" + name,
		ldflags: kubernetesVersion, purposes: purposes}
}

// ofShards returns a program that a kcp of several shards needs beside kcp itself.
func ofShards(name string) tool {
	return tool{name: name, dir: "kcp", module: "github.com/kcp-dev/kcp", pkg: "github.com/kcp-dev/kcp/cmd/" + name,
		ldflags: stripped, purposes: []string{forShards}}
}

// otherAPIServer returns the API server of the oldest or the newest Kubernetes that synchub is tested with.
func otherAPIServer(age string) tool {
	return tool{name: "kube-apiserver-" + age, dir: "kubernetes-" + age, module: "k8s.io/kubernetes", pkg: "k8s.io/kubernetes/cmd/kube-apiserver",
		ldflags: kubernetesVersion, purposes: []string{forCompatibility}}
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
		if purpose == forAll || slices.Contains(t.purposes, purpose) || slices.Contains(names, t.name) {
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
