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
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/suite"
	"github.com/synchub-dev/synchub/test/tier"
)

// An operator who starts with the wrong command gets the advice to run init.
func TestInitRunsBeforeRun(t *testing.T) {
	tier.Thorough(t)
	g, kcp := NewWithT(t), suite.KCP(t)
	// A kcp workspace suffices as hosting cluster.
	hosting, err := kcp.WorkspaceKubeconfig("root")
	g.Expect(err).NotTo(HaveOccurred())
	run := func(arguments ...string) outcome {
		return synchub(t, append([]string{"run", "--kcp-kubeconfig", kcp.HubKubeconfig, "--hosting-kubeconfig", hosting, "--provider-workspace", "root:hub",
			"--metrics-bind-address", "0", "--health-probe-bind-address", "0", "--log-level", "error"}, arguments...)...)
	}
	initialize := func(kubeconfig string) outcome {
		return synchub(t, "init", "--kcp-kubeconfig", kubeconfig, "--provider-workspace", "root:hub", "--hub-user", servers.HubUser,
			"--inventory-group", "operators,auditors", "--inventory-group", "administrators", "--workload-group", "developers")
	}
	unprepared := "the provider workspace root:hub is not prepared for this user; run `synchub init --provider-workspace root:hub --hub-user <user>` as its administrator"

	expectError(t, run(), unprepared)
	expectError(t, initialize(kcp.HubKubeconfig), "this user may not", "use the kubeconfig of an administrator")
	_, err = framework.CreateWorkspace(t.Context(), kcp.Config, "root", "hub", "")
	g.Expect(err).NotTo(HaveOccurred())
	expectError(t, run(), unprepared)
	expectError(t, initialize(kcp.HubKubeconfig), "this user may not", "use the kubeconfig of an administrator")

	dry := synchub(t, "init", "--kcp-kubeconfig", kcp.Kubeconfig, "--provider-workspace", "root:hub", "--hub-user", servers.HubUser, "--dry-run", "-o", "yaml")
	g.Expect(dry.code).To(BeZero(), dry.stderr)
	g.Expect(dry.stderr).To(MatchRegexp(`(?m)^created +RoleBinding synchub:hub \(dry run\)$`))
	g.Expect(dry.stdout).To(ContainSubstring("---\napiVersion: apis.kcp.io/v1alpha2\nkind: APIExport\n"))
	expectError(t, run(), unprepared)

	first := initialize(kcp.Kubeconfig)
	g.Expect(first.code).To(BeZero(), first.stderr)
	g.Expect(first.stderr).To(BeEmpty())
	g.Expect(first.stdout).To(MatchRegexp(`(?m)^unchanged +Workspace root:hub$`))
	for _, object := range []string{
		"APIExport mailbox.edge.kubestellar.io", "APIExport edge.kubestellar.io", "APIExport workload.edge.kubestellar.io", "WorkspaceType mailbox",
		"ClusterRoleBinding synchub:inventory", "ClusterRoleBinding synchub:workload",
	} {
		g.Expect(first.stdout).To(MatchRegexp(`(?m)^created +` + object + `$`))
	}
	second := initialize(kcp.Kubeconfig)
	g.Expect(second.code).To(BeZero(), second.stderr)
	g.Expect(strings.Count(second.stdout, "\n")).To(Equal(strings.Count(first.stdout, "\n")))
	for line := range strings.Lines(second.stdout) {
		g.Expect(line).To(HavePrefix("unchanged "))
	}

	// The hub does not mistake other errors for an unprepared workspace.
	content, err := os.ReadFile(kcp.HubKubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	elsewhere := file(t, strings.ReplaceAll(string(content), kcp.Config.Host, "https://127.0.0.1:1"))
	got := run("--kcp-kubeconfig", elsewhere)
	expectError(t, got, "cannot reach the provider workspace root:hub", "127.0.0.1:1")
	g.Expect(got.stderr).NotTo(ContainSubstring("synchub init"))
	stranger := file(t, strings.ReplaceAll(string(content), kcp.HubConfig.BearerToken, "5ecret"))
	got = run("--kcp-kubeconfig", stranger)
	expectError(t, got, "kcp does not accept the credentials", "root:hub")
	g.Expect(got.stderr).NotTo(ContainSubstring("5ecret"))

	// An address that the hub cannot listen on is not a failure of the hosting cluster.
	expectError(t, run("--health-probe-bind-address", "127.0.0.1:no-port"), "set --health-probe-bind-address", "no-port")
	nowhere := file(t, goodKubeconfig)
	expectError(t, run("--hosting-kubeconfig", nowhere), "check --hosting-kubeconfig", "127.0.0.1:1")
}

// The chart runs this command as a step. A kcp workspace suffices as hosting cluster.
func TestWaitForAPI(t *testing.T) {
	tier.Thorough(t)
	g, kcp := NewWithT(t), suite.KCP(t)
	hosting, err := kcp.WorkspaceKubeconfig("root")
	g.Expect(err).NotTo(HaveOccurred())
	wait := func(api string) outcome {
		return synchub(t, "wait-for-api", api, "--hosting-kubeconfig", hosting, "--timeout", "2s")
	}
	got := wait("apibindings.apis.kcp.io")
	g.Expect(got.code).To(BeZero(), got.stderr)
	g.Expect(got.stdout).To(Equal("the cluster serves apibindings.apis.kcp.io\n"))
	for _, api := range []string{"publishedresources.synchub.dev", "nothings.apis.kcp.io", "apibindings"} {
		expectError(t, wait(api), "does not serve "+api)
	}
}
