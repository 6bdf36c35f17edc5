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

package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
)

// Each client of the plugin must have limits: client-go's defaults make a command take a minute where there are many APIs.
func TestClientLimits(t *testing.T) {
	t.Parallel()
	options := NewWorkspaceOptions(genericiooptions.NewTestIOStreamsDiscard())
	*options.Cluster.APIServer = "https://kcp.example.org/clusters/root:shop"
	inWorkspace, err := options.Cluster.ToRESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	hosting := &HostingFlags{Kubeconfig: kubeconfigFile(t)}
	inHosting, err := hosting.Config(options.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	target, err := NewTargetReader(&rest.Config{Host: "https://target.example.org"})
	if err != nil {
		t.Fatal(err)
	}
	for name, config := range map[string]*rest.Config{"workspace": inWorkspace, "hosting cluster": inHosting, "target": target.Config} {
		if config.QPS != ClientQPS || config.Burst != ClientBurst {
			t.Errorf("%s: %v requests a second, burst %d", name, config.QPS, config.Burst)
		}
	}
}

// kubeconfigFile returns the path of a kubeconfig.
func kubeconfigFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	content := "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{name: a, cluster: {server: https://hosting.example.org}}]\ncontexts: [{name: a, context: {cluster: a, user: a}}]\nusers: [{name: a}]\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A command that makes its flags in another way has client-go's limits.
func TestAllFlagsAreMadeInOnePlace(t *testing.T) {
	t.Parallel()
	err := filepath.WalkDir("..", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".go" || filepath.Base(file) == "cluster_flags.go" || strings.HasSuffix(file, "_test.go") {
			return err
		}
		content, err := os.ReadFile(file) //nolint:gosec // a file of the plugin
		if strings.Contains(string(content), "NewConfigFlags(") {
			t.Errorf("%s: use cli.NewClusterFlags", file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
