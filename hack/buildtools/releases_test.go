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
	"path/filepath"
	"slices"
	"testing"
)

func TestReleases(t *testing.T) {
	linux, mac := platform{"linux", "amd64"}, platform{"darwin", "arm64"}
	tests := []struct {
		tool, version     string
		on                platform
		url, checksumsURL string
	}{
		{"kcp", "v0.31.2", linux, "https://github.com/kcp-dev/kcp/releases/download/v0.31.2/kcp_0.31.2_linux_amd64.tar.gz",
			"https://github.com/kcp-dev/kcp/releases/download/v0.31.2/kcp_0.31.2_checksums.txt"},
		{"etcd", "v3.6.5", linux, "https://github.com/etcd-io/etcd/releases/download/v3.6.5/etcd-v3.6.5-linux-amd64.tar.gz",
			"https://github.com/etcd-io/etcd/releases/download/v3.6.5/SHA256SUMS"},
		{"etcd", "v3.6.5", mac, "https://github.com/etcd-io/etcd/releases/download/v3.6.5/etcd-v3.6.5-darwin-arm64.zip",
			"https://github.com/etcd-io/etcd/releases/download/v3.6.5/SHA256SUMS"},
		{"kwok", "v0.8.0", mac, "https://github.com/kubernetes-sigs/kwok/releases/download/v0.8.0/kwok-darwin-arm64",
			"https://api.github.com/repos/kubernetes-sigs/kwok/releases/tags/v0.8.0"},
		{"kube-scheduler", "v1.35.4", linux, "https://dl.k8s.io/release/v1.35.4/bin/linux/amd64/kube-scheduler",
			"https://dl.k8s.io/release/v1.35.4/bin/linux/amd64/kube-scheduler.sha256"},
		{"kubectl", "v1.35.4", mac, "https://dl.k8s.io/release/v1.35.4/bin/darwin/arm64/kubectl",
			"https://dl.k8s.io/release/v1.35.4/bin/darwin/arm64/kubectl.sha256"},
	}
	for _, test := range tests {
		release, ok := pinned{tool: tool{name: test.tool}, version: test.version}.releaseFor(test.on)
		if !ok || release.URL != test.url || release.ChecksumURL != test.checksumsURL || release.Program != test.tool {
			t.Errorf("release of %s for %s: %+v, %t", test.tool, test.on, release, ok)
		}
	}
}

// All that the demo needs can be downloaded on Linux, so that nothing is compiled there but the hub.
func TestTheDemoIsDownloaded(t *testing.T) {
	demo, err := choose("demo", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range demo {
		p, err := pinTool(filepath.Join("..", "tools"), tool)
		if err != nil {
			t.Fatal(err)
		}
		for _, on := range platforms {
			if _, ok := p.releaseFor(on); !ok && on.os == "linux" {
				t.Errorf("no release of %s for %s", tool.name, on)
			}
		}
	}
	for name := range releases {
		if !slices.Contains(allNames(), name) {
			t.Errorf("%s has a release, but is no tool", name)
		}
	}
}
