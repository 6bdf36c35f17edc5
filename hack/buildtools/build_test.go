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
	"path"
	"slices"
	"testing"
)

func TestBatches(t *testing.T) {
	all := []pinned{
		{tool: tool{name: "kcp", dir: "kcp"}, flags: "-s"},
		{tool: tool{name: "kube-apiserver", dir: "kubernetes"}, flags: "-s -X a"},
		{tool: tool{name: "kubectl", dir: "kubernetes"}, flags: "-s -X a"},
		{tool: tool{name: "kubelet", dir: "kubernetes"}, flags: "-s -X b"},
		{tool: tool{name: "etcd", dir: "etcd"}, flags: "-s"},
	}
	var got []string
	for _, batch := range batches(all) {
		got = append(got, names(batch))
	}
	if want := []string{"kcp", "kube-apiserver, kubectl", "kubelet", "etcd"}; !slices.Equal(got, want) {
		t.Errorf("batches %q, want %q", got, want)
	}
}

// go names a program that it builds together with other programs after its package, and build looks for it under the tool's name.
func TestToolsOfOneBatchAreNamedAfterTheirPackages(t *testing.T) {
	var all []pinned
	for _, tool := range table {
		all = append(all, pinned{tool: tool, flags: tool.ldflags("v1.2.3")})
	}
	for _, batch := range batches(all) {
		for _, p := range batch {
			if len(batch) > 1 && path.Base(p.pkg) != p.name {
				t.Errorf("%s is built from %s together with %s", p.name, p.pkg, names(batch))
			}
		}
	}
}
