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
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

// publishFile runs `kubectl synchub publish` for a file, and returns what it prints.
func publishFile(ctx context.Context, file string, args ...string) string {
	GinkgoHelper()
	command := exec.CommandContext(ctx, filepath.Join(suite.Options.Bin, "kubectl-synchub"), append([]string{
		"publish", "--kubeconfig", clusters["hosting"].Kubeconfig, "--namespace", installation.Namespace, "--filename", file, "--wait",
	}, args...)...)
	out, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", out)
	return string(out)
}

// describedFields returns properties of a spec, in the form of sized, whose descriptions have 1 KiB each.
func describedFields(count int) string {
	var text strings.Builder
	for i := range count {
		fmt.Fprintf(&text, "\n  field%d: {type: string, description: %q}", i, strings.Repeat("word ", 205))
	}
	return text.String()
}

var _ = Describe("the plugin publishes a file of definitions", func() {
	It("including large ones, and updates them when they change", thorough, func(ctx SpecContext) {
		const ns, group = "published-file", "file.example.com"
		small, large := custom(group, "v1", "tiles", "Tile"), custom(group, "v1", "mosaics", "Mosaic")
		fields := sized + describedFields(400)
		Expect(len(fields)).To(BeNumerically(">", 300<<10))
		hosting, florin := target("hosting"), target("florin")
		define(ctx, florin, small)
		apply(ctx, florin, large.withSpec(fields+"\n  color: {type: string}", "v1"))
		directory := GinkgoT().TempDir()
		write := func(content ...string) string {
			file := filepath.Join(directory, "crds.yaml")
			Expect(os.WriteFile(file, []byte(documents(content...)), 0o600)).To(Succeed())
			return file
		}
		DeferCleanup(func(ctx SpecContext) {
			for _, one := range []api{small, large} {
				remove(ctx, hosting, publishedResources, "", one.GroupResource().String())
			}
		})

		file := write(small.definition(), large.withSpec(fields, "v1"), configMap(ns, "beside", "x"))
		Expect(publishFile(ctx, file)).To(And(
			ContainSubstring("left out: ConfigMap (1)"),
			ContainSubstring("publishedresource.synchub.dev/tiles.file.example.com created"),
			ContainSubstring("publishedresource.synchub.dev/mosaics.file.example.com created")))
		for _, one := range []api{small, large} {
			Expect(readyCondition(ctx, one.GroupResource().String())).To(HavePrefix("True "), one.Resource)
		}
		mailbox := sharedMailbox(ctx, "florin")
		apply(ctx, mailbox, namespace(ns))
		eventuallyApplied(ctx, mailbox, documents(small.object(ns, "one", "spec: {any: thing}"), large.object(ns, "one", "spec: {size: 3, field399: last}")))
		apply(ctx, mailbox, selecting(ns, small.GroupVersionResource, large.GroupVersionResource))
		eventuallyExists(ctx, florin, small.GroupVersionResource, ns, "one")
		Eventually(specOf).WithContext(ctx).WithArguments(florin, large.GroupVersionResource, ns, "one").Should(Equal(map[string]any{"size": int64(3), "field399": "last"}))

		By("writing nothing for an unchanged file")
		Expect(publishFile(ctx, file)).NotTo(Or(ContainSubstring("created"), ContainSubstring("configured")))

		By("replacing the schema of a changed definition")
		Expect(publishFile(ctx, write(small.definition(), large.withSpec(fields+"\n  color: {type: string}", "v1")))).To(And(
			ContainSubstring("configmap/schema-tiles.file.example.com unchanged"),
			ContainSubstring("configmap/schema-mosaics.file.example.com configured"),
			ContainSubstring("publishedresource.synchub.dev/mosaics.file.example.com unchanged")))
		Eventually(func(g Gomega) {
			g.Expect(framework.Apply(ctx, mailbox, large.object(ns, "painted", "spec: {size: 1, color: white}"))).To(Succeed())
			g.Expect(value(ctx, florin, large.GroupVersionResource, ns, "painted", "spec", "color")).To(Equal("white"))
		}).WithContext(ctx).Should(Succeed())
	}, NodeTimeout(4*time.Minute))
})
