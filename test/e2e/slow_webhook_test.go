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
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	gosync "sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/mailbox"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

// slowWebhook is an admission webhook that answers no request before it is released. kcp waits 30 seconds for each, and then admits it.
type slowWebhook struct {
	server   *httptest.Server
	released chan struct{}
	release  func()
}

func newSlowWebhook() *slowWebhook {
	w := &slowWebhook{released: make(chan struct{})}
	w.release = gosync.OnceFunc(func() { close(w.released) })
	w.server = httptest.NewTLSServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
			http.Error(response, err.Error(), http.StatusBadRequest)
			return
		}
		select {
		case <-w.released:
		case <-request.Context().Done():
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		_ = json.NewEncoder(response).Encode(review)
	}))
	DeferCleanup(w.server.Close)
	DeferCleanup(w.release)
	return w
}

// install makes a workspace ask the webhook about writes of a resource, and returns once it does not admit one at once.
func (w *slowWebhook) install(ctx context.Context, workspace *rest.Config, group, resource string) {
	GinkgoHelper()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.server.Certificate().Raw})
	apply(ctx, workspace, fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: slow-%[4]s}
webhooks:
- name: slow.example.com
  clientConfig: {url: %[1]q, caBundle: %[2]s}
  rules: [{apiGroups: [%[3]q], apiVersions: [v1], resources: [%[4]s], operations: [CREATE, UPDATE]}]
  sideEffects: None
  admissionReviewVersions: [v1]
  failurePolicy: Ignore
  timeoutSeconds: 30
`, w.server.URL, base64.StdEncoding.EncodeToString(ca), group, resource))
	probe := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "probe"},
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "probe"},
	}}
	probe.SetAPIVersion("v1")
	probe.SetKind("ConfigMap")
	gvr, namespace := schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}, "default"
	if group != "" {
		probe.SetAPIVersion(group + "/v1")
		probe.SetKind("ClusterRoleBinding")
		namespace = ""
	} else {
		delete(probe.Object, "roleRef")
	}
	client, err := dynamic.NewForConfig(workspace)
	Expect(err).NotTo(HaveOccurred())
	Eventually(func() bool {
		short, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		_, err := client.Resource(gvr).Namespace(namespace).Create(short, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return errors.Is(err, context.DeadlineExceeded)
	}).WithContext(ctx).Should(BeTrue(), "the webhook is not asked")
}

// grants returns a spec that gives users 32 roles in a mailbox.
func grants() string {
	var all []string
	for i := range 32 {
		all = append(all, fmt.Sprintf(`{"clusterRole": "role-%d", "subjects": [{"kind": "User", "name": "alice"}]}`, i))
	}
	return `{"spec": {"mailboxAccess": [` + strings.Join(all, ",") + `]}}`
}

var _ = Describe("a workspace whose admission webhook is slow", func() {
	It("delays the access to its own mailbox only, and the SyncTarget reports the reason", thorough, func(ctx SpecContext) {
		webhook, inventory, other := newSlowWebhook(), newInventory(ctx, "slow-mailboxes"), newInventory(ctx, "beside-slow-mailboxes")
		slow := make([]string, 9)
		for i := range slow {
			slow[i] = fmt.Sprintf("slow-%d", i)
			webhook.install(ctx, register(ctx, inventory, slow[i], "florin"), "rbac.authorization.k8s.io", "clusterrolebindings")
		}
		for _, name := range slow {
			patch(ctx, inventory.Config, installation.SyncTargets, "", name, grants())
		}
		reason := func(ctx context.Context, inventory *installation.Inventory, name string) string {
			found, err := inventory.SyncTarget(ctx, name)
			if err != nil {
				return err.Error()
			}
			if condition := meta.FindStatusCondition(found.Status.Conditions, edgev2alpha1.ConditionMailboxReady); condition != nil {
				return condition.Reason
			}
			return ""
		}
		for _, name := range slow {
			Eventually(reason).WithContext(ctx).WithArguments(inventory, name).WithTimeout(time.Minute).Should(Equal(mailbox.ReasonAccessPending))
			Expect(message(ctx, inventory.Config, installation.SyncTargets, name, "MailboxReady")).To(And(ContainSubstring("admission webhook"), Not(ContainSubstring("preparing"))))
		}
		By("creating mailboxes for other SyncTargets, in the same inventory and in another one")
		for _, beside := range []*installation.Inventory{inventory, other} {
			Expect(beside.Register(ctx, "quick", kubeconfigOf("florin"), nil)).To(Succeed())
			Eventually(reason).WithContext(ctx).WithArguments(beside, "quick").WithTimeout(time.Minute).Should(Equal(mailbox.ReasonReady))
		}
		webhook.release()
		for _, name := range slow {
			Eventually(reason).WithContext(ctx).WithArguments(inventory, name).Should(Equal(mailbox.ReasonReady))
			eventuallyExists(ctx, mailboxConfig(ctx, inventory, name), clusterRoleBindings, "", "synchub:role-31")
		}
	}, NodeTimeout(5*time.Minute))

	It("delays the placement in its own mailbox only, and the EdgePlacement names it", thorough, Label("faults"), func(ctx SpecContext) {
		const ns = "slow-placement"
		webhook, inventory, workload := newSlowWebhook(), newInventory(ctx, ns), newWorkload(ctx, ns+"-workload")
		for _, name := range []string{"florin", "guilder"} {
			Expect(inventory.Register(ctx, name, kubeconfigOf(name), map[string]string{"env": "prod"})).To(Succeed())
		}
		apply(ctx, inventory.Config, location("prod", "prod", workload.Path))
		eventuallyPlaced(ctx, workload, documents(namespace(ns), configMap(ns, "prices", "1"), placementOn("shop", ns)))
		Eventually(readyStatus).WithContext(ctx).WithArguments(workload, "shop").Should(Equal("True"))

		webhook.install(ctx, mailboxOf(ctx, inventory, "florin"), "", "configmaps")
		const count = 120
		fill(ctx, workload.Config, ns, "slow", count)
		Eventually(identities).WithContext(ctx).WithArguments(target("guilder"), configMaps, ns, "slow").WithTimeout(60 * time.Second).Should(HaveLen(count))
		apply(ctx, workload.Config, configMap(ns, "prices", "2"))
		Eventually(value).WithContext(ctx).WithArguments(target("guilder"), configMaps, ns, "prices", "data", "entry").WithTimeout(time.Minute).Should(Equal("2"))
		Eventually(readyReason).WithContext(ctx).WithArguments(workload, "shop").Should(Equal(rules.ReasonMailboxSlow))
		// On a busy machine the last objects of guilder count as slow for a moment too.
		Eventually(message).WithContext(ctx).WithArguments(workload.Config, edgePlacements, "shop", "Ready").Should(And(ContainSubstring("florin ("), Not(ContainSubstring("guilder"))))
		Expect(value(ctx, workload.Config, edgePlacements, "", "shop", "status", "progressing")).To(ContainSubstring(rules.ReasonMailboxSlow))

		webhook.release()
		Eventually(identities).WithContext(ctx).WithArguments(target("florin"), configMaps, ns, "slow").Should(HaveLen(count))
		Eventually(readyStatus).WithContext(ctx).WithArguments(workload, "shop").Should(Equal("True"))
		Expect(framework.Exists(ctx, target("florin"), configMaps, ns, "prices")).To(BeTrue())
	}, NodeTimeout(4*time.Minute))
})
