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
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/test/framework"
)

// hostileToken is the hub's token for a hostile target.
const hostileToken = "hostile-target-bearer-token-0123456789"

// hostile starts a server that sends huge responses to all requests but the one for its version, and quotes the credentials
// of requests.
func hostile() *httptest.Server {
	return httptest.NewTLSServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		writer.Header().Set("Content-Type", "application/json")
		switch {
		case request.URL.Path == "/version":
			_, _ = writer.Write([]byte(`{"gitVersion":"v1.35.4"}`))
		case framework.AnswerWithoutClusterID(writer, request):
		case request.Method != http.MethodGet:
			writer.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprintf(writer, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"\u001b[31m%s %s"}`, //nolint:gosec // no browser reads it
				request.Header.Get("Authorization"), strings.Repeat("you sent "+hostileToken+" ", 1000))
		default:
			writer.Header().Set("Content-Encoding", "gzip")
			packed := gzip.NewWriter(writer)
			_, err := packed.Write([]byte(`{"x":"`))
			for part := []byte(strings.Repeat("x", 1<<20)); err == nil; {
				_, err = packed.Write(part)
			}
		}
	}))
}

var _ = Describe("escapes: a hostile target", thorough, Label("escapes"), func() {
	It("is quarantined with a reason, and affects neither the hub's memory nor other targets", func(ctx SpecContext) {
		const ns = "hostile-server"
		server := hostile()
		DeferCleanup(func() {
			server.CloseClientConnections()
			server.Close()
		})
		authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		kubeconfig := fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], "+
			"clusters: [{name: c, cluster: {server: '%s', certificate-authority-data: %s}}], users: [{name: u, user: {token: %s}}]}",
			server.URL, base64.StdEncoding.EncodeToString(authority), hostileToken)

		inventory := newInventory(ctx, ns)
		healthy := sharedMailbox(ctx, "florin")
		before := residentMemory(ctx)
		Expect(inventory.Register(ctx, "hostile", []byte(kubeconfig), nil)).To(Succeed())
		mailbox := mailboxOf(ctx, inventory, "hostile")
		for _, box := range []string{"hostile", "florin"} {
			config := mailbox
			if box == "florin" {
				config = healthy
			}
			apply(ctx, config, documents(namespace(ns), configMap(ns, "first", "1"), everythingIn(ns)))
		}
		Eventually(value).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "", "hostile", "status", "conditions").
			Should(And(ContainSubstring(targets.ReasonTooLarge), ContainSubstring("has more than")))

		By("syncing the healthy one")
		eventuallyExists(ctx, target("florin"), configMaps, ns, "first")
		apply(ctx, healthy, configMap(ns, "second", "2"))
		eventuallyExists(ctx, target("florin"), configMaps, ns, "second")

		By("keeping memory bounded and the token secret")
		Expect(residentMemory(ctx) - before).To(BeNumerically("<", 400<<20))
		Expect(value(ctx, inventory.Config, syncTargets, "", "hostile", "status")).NotTo(ContainSubstring(hostileToken))
		Expect(value(ctx, mailbox, syncerConfigs, "", ns, "status")).NotTo(ContainSubstring(hostileToken))
		log, err := os.ReadFile(hub.LogFile())
		Expect(err).NotTo(HaveOccurred())
		Expect(string(log)).NotTo(ContainSubstring(hostileToken))
	}, NodeTimeout(4*time.Minute))
})

// residentMemory returns the resident memory of the hub in bytes.
func residentMemory(ctx context.Context) float64 {
	GinkgoHelper()
	samples, err := hub.Metrics(ctx)
	Expect(err).NotTo(HaveOccurred())
	return samples["process_resident_memory_bytes"]
}
