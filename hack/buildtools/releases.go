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
	"strings"

	"github.com/synchub-dev/synchub/hack/buildtools/download"
)

// platform is an operating system and an architecture, as Go names them.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// platforms are those whose checksums -pin writes.
var platforms = []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}

// findRelease returns the release of a tool for a platform; ok is false if its project publishes none.
type findRelease func(version string, on platform) (release download.Release, ok bool)

// releases are the tools that -download downloads. It builds the others.
var releases = map[string]findRelease{
	"kcp":                     kcpRelease,
	"kube-apiserver":          kubernetesServer("kube-apiserver"),
	"kube-controller-manager": kubernetesServer("kube-controller-manager"),
	"kube-scheduler":          kubernetesServer("kube-scheduler"),
	"kubectl":                 kubernetesRelease("kubectl"),
	"kwok":                    kwokRelease,
	"etcd":                    etcdRelease,
}

func (p pinned) releaseFor(on platform) (download.Release, bool) {
	find, ok := releases[p.name]
	if !ok {
		return download.Release{}, false
	}
	return find(p.version, on)
}

func kcpRelease(version string, on platform) (download.Release, bool) {
	base := "https://github.com/kcp-dev/kcp/releases/download/" + version
	number := strings.TrimPrefix(version, "v")
	return download.Release{
		Program:      "kcp",
		URL:          fmt.Sprintf("%s/kcp_%s_%s_%s.tar.gz", base, number, on.os, on.arch),
		ChecksumURL:  fmt.Sprintf("%s/kcp_%s_checksums.txt", base, number),
		ReadChecksum: download.List,
	}, true
}

func etcdRelease(version string, on platform) (download.Release, bool) {
	base := "https://github.com/etcd-io/etcd/releases/download/" + version
	archive := "tar.gz"
	if on.os == "darwin" {
		archive = "zip"
	}
	return download.Release{
		Program:      "etcd",
		URL:          fmt.Sprintf("%s/etcd-%s-%s-%s.%s", base, version, on.os, on.arch, archive),
		ChecksumURL:  base + "/SHA256SUMS",
		ReadChecksum: download.List,
	}, true
}

// kwokRelease takes the checksum from GitHub, since the project publishes none.
func kwokRelease(version string, on platform) (download.Release, bool) {
	return download.Release{
		Program:      "kwok",
		URL:          fmt.Sprintf("https://github.com/kubernetes-sigs/kwok/releases/download/%s/kwok-%s-%s", version, on.os, on.arch),
		ChecksumURL:  "https://api.github.com/repos/kubernetes-sigs/kwok/releases/tags/" + version,
		ReadChecksum: download.GitHubRelease,
	}, true
}

func kubernetesRelease(program string) findRelease {
	return func(version string, on platform) (download.Release, bool) {
		url := fmt.Sprintf("https://dl.k8s.io/release/%s/bin/%s/%s/%s", version, on.os, on.arch, program)
		return download.Release{Program: program, URL: url, ChecksumURL: url + ".sha256", ReadChecksum: download.Single}, true
	}
}

// kubernetesServer is a program of the control plane, which Kubernetes publishes for Linux only.
func kubernetesServer(program string) findRelease {
	return func(version string, on platform) (download.Release, bool) {
		if on.os != "linux" {
			return download.Release{}, false
		}
		return kubernetesRelease(program)(version, on)
	}
}
