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
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/test/framework"
)

var endpointSlices = schema.GroupVersionResource{Group: "apis.kcp.io", Version: "v1alpha1", Resource: "apiexportendpointslices"}

// The safety of upsync depends on these answers.
var _ = Describe("kcp's virtual workspace", func() {
	It("refuses to update or delete an object with another UID", func(ctx SpecContext) {
		const ns = "up-fenced"
		mailbox := sharedMailbox(ctx, "florin")
		apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "settings", "green")))
		seen, err := framework.Get(ctx, mailbox, configMaps, ns, "settings")
		Expect(err).NotTo(HaveOccurred())
		client := throughVirtualWorkspace(ctx, seen.GetAnnotations()["kcp.io/cluster"]).Resource(configMaps).Namespace(ns)
		Eventually(func() error {
			_, err := client.Get(ctx, "settings", metav1.GetOptions{})
			return err
		}).WithContext(ctx).Should(Succeed())

		_, err = client.Create(ctx, seen, metav1.CreateOptions{})
		Expect(err).To(HaveOccurred(), "a create with a resourceVersion")
		again := seen.DeepCopy()
		again.SetResourceVersion("")
		again.SetUID("")
		_, err = client.Create(ctx, again, metav1.CreateOptions{})
		Expect(apierrors.IsAlreadyExists(err)).To(BeTrue(), "a create of what is there: %v", err)
		again.SetNamespace(ns + "-missing")
		_, err = throughVirtualWorkspace(ctx, seen.GetAnnotations()["kcp.io/cluster"]).Resource(configMaps).Namespace(ns+"-missing").Create(ctx, again, metav1.CreateOptions{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "a create in a missing namespace: %v", err)

		patch(ctx, mailbox, configMaps, ns, "settings", `{"data": {"entry": "blue"}}`)
		_, err = client.Update(ctx, seen, metav1.UpdateOptions{})
		Expect(apierrors.IsConflict(err)).To(BeTrue(), "an update with an old resourceVersion: %v", err)
		_, err = client.Patch(ctx, "settings", types.MergePatchType, []byte(`{"metadata": {"uid": "another"}, "data": {"entry": "red"}}`), metav1.PatchOptions{})
		Expect(apierrors.IsConflict(err)).To(BeTrue(), "a patch with another UID: %v", err)
		another := types.UID("another")
		err = client.Delete(ctx, "settings", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &another}})
		Expect(apierrors.IsConflict(err)).To(BeTrue(), "a delete with another UID: %v", err)
		Expect(value(ctx, mailbox, configMaps, ns, "settings", "data", "entry")).To(Equal("blue"))
	}, NodeTimeout(2*time.Minute))
})

// throughVirtualWorkspace returns a client for a mailbox with the hub's rights, through the virtual workspace.
func throughVirtualWorkspace(ctx context.Context, cluster string) dynamic.Interface {
	GinkgoHelper()
	slice, err := framework.Get(ctx, synchub.InWorkspace(synchub.Workspace), endpointSlices, "", synchubv1alpha1.MailboxExport)
	Expect(err).NotTo(HaveOccurred())
	endpoints, _, err := unstructured.NestedSlice(slice.Object, "status", "endpoints")
	Expect(err).NotTo(HaveOccurred())
	Expect(endpoints).NotTo(BeEmpty())
	config, err := clientcmd.BuildConfigFromFlags("", synchub.HubKubeconfig)
	Expect(err).NotTo(HaveOccurred())
	config.Host = fmt.Sprintf("%s/clusters/%s", endpoints[0].(map[string]any)["url"], cluster)
	client, err := dynamic.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	return client
}
