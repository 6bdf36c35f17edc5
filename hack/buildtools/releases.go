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
	"strings"

	"github.com/synchub-dev/synchub/hack/buildtools/download"
)

// platform is an operating system and an architecture, as Go names them.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// platforms are those whose checksums -pin writes.
var platforms = []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}

// urls are the addresses of a project's releases, with variables in braces. version begins with a v, and number does not.
type urls struct {
	file, checksum string
	read           download.ChecksumReader
	linuxOnly      bool
}

const (
	kcpReleases        = "https://github.com/kcp-dev/kcp/releases/download/{version}/"
	etcdReleases       = "https://github.com/etcd-io/etcd/releases/download/{version}/"
	kubernetesReleases = "https://dl.k8s.io/release/{version}/bin/{os}/{arch}/{program}"
)

// kubernetesServer is a program of the control plane, which Kubernetes publishes for Linux only.
var kubernetesServer = urls{kubernetesReleases, kubernetesReleases + ".sha256", download.Single, true}

// releases are the tools that can be downloaded. All other tools are built.
var releases = map[string]urls{
	"kcp":                     {kcpReleases + "kcp_{number}_{os}_{arch}.tar.gz", kcpReleases + "kcp_{number}_checksums.txt", download.List, false},
	"kube-apiserver":          kubernetesServer,
	"kube-controller-manager": kubernetesServer,
	"kube-scheduler":          kubernetesServer,
	"kubectl":                 {kubernetesReleases, kubernetesReleases + ".sha256", download.Single, false},
	"etcd":                    {etcdReleases + "etcd-{version}-{os}-{arch}.{archive}", etcdReleases + "SHA256SUMS", download.List, false},
	// The project publishes no checksum, so it is GitHub's.
	"kwok": {
		"https://github.com/kubernetes-sigs/kwok/releases/download/{version}/kwok-{os}-{arch}",
		"https://api.github.com/repos/kubernetes-sigs/kwok/releases/tags/{version}", download.GitHubRelease, false,
	},
}

// releaseFor returns the release of a tool for a platform; ok is false if its project publishes none.
func (p pinned) releaseFor(on platform) (release download.Release, ok bool) {
	of, ok := releases[p.name]
	if !ok || of.linuxOnly && on.os != "linux" {
		return download.Release{}, false
	}
	archive := "tar.gz"
	if on.os == "darwin" {
		archive = "zip"
	}
	fill := strings.NewReplacer("{program}", p.name, "{version}", p.version, "{number}", strings.TrimPrefix(p.version, "v"),
		"{os}", on.os, "{arch}", on.arch, "{archive}", archive)
	return download.Release{Program: p.name, URL: fill.Replace(of.file), ChecksumURL: fill.Replace(of.checksum), ReadChecksum: of.read}, true
}
