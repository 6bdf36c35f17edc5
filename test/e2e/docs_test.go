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

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/servers"
)

// shellBlock is a block of commands in the documentation.
var shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

var _ = Describe("the documentation", func() {
	It("has commands in getting started that work as they stand", func(ctx SpecContext) {
		root, err := framework.RepositoryRoot()
		Expect(err).NotTo(HaveOccurred())
		page, err := os.ReadFile(filepath.Join(root, "docs", "getting-started.md"))
		Expect(err).NotTo(HaveOccurred())
		blocks := shellBlock.FindAllStringSubmatch(string(page), -1)
		Expect(blocks).NotTo(BeEmpty())
		script := []string{"set -xeuo pipefail", "cd " + root, "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"}
		for _, block := range blocks {
			script = append(script, block[1])
		}

		path := filepath.Join(suite.Options.Dir, "path")
		Expect(os.MkdirAll(path, 0o755)).To(Succeed())
		for name, tool := range map[string]string{"synchub": "synchub-race", "kubectl": "kubectl"} {
			Expect(os.Symlink(filepath.Join(suite.Options.Bin, tool), filepath.Join(path, name))).To(Succeed())
		}
		process, err := servers.Start(suite.Options, "getting-started", "/bin/bash", []string{"-c", strings.Join(script, "\n")}, []string{
			"PATH=" + path + ":" + os.Getenv("PATH"),
			"HOME=" + path,
			"KCP_KUBECONFIG=" + suite.KCP.Kubeconfig,
			"HUB_KUBECONFIG=" + suite.KCP.HubKubeconfig,
			"HUB_USER=" + servers.HubUser,
			"HOSTING_KUBECONFIG=" + suite.Targets["florin"].Kubeconfig,
			"TARGET_KUBECONFIG=" + suite.Targets["guilder"].Kubeconfig,
			"PROVIDER_WORKSPACE=root:synchub-docs",
		})
		Expect(err).NotTo(HaveOccurred())
		code, err := process.Wait(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(code).To(BeZero(), process.LogTail(40))
	}, NodeTimeout(6*time.Minute))
})
