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
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/synchub-dev/synchub/test/framework"
)

// target returns an administrator's client config for one of the clusters.
func target(name string) *rest.Config { return clusters[name].Config }

// value returns a field of an object; it is empty if the object or the field does not exist.
func value(ctx context.Context, config *rest.Config, resource schema.GroupVersionResource, namespace, name string, path ...string) string {
	object, err := framework.Get(ctx, config, resource, namespace, name)
	if err != nil {
		return ""
	}
	found, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
	if found == nil {
		return ""
	}
	return fmt.Sprint(found)
}

// patch applies a merge patch, to a subresource if one is given.
func patch(ctx context.Context, config *rest.Config, resource schema.GroupVersionResource, namespace, name, content string, subresources ...string) {
	GinkgoHelper()
	client, err := dynamic.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	_, err = client.Resource(resource).Namespace(namespace).Patch(ctx, name, types.MergePatchType, []byte(content), metav1.PatchOptions{FieldManager: "e2e"}, subresources...)
	Expect(err).NotTo(HaveOccurred())
}

func apply(ctx context.Context, config *rest.Config, manifest string) {
	GinkgoHelper()
	Expect(framework.Apply(ctx, config, manifest)).To(Succeed())
}

func remove(ctx context.Context, config *rest.Config, resource schema.GroupVersionResource, namespace, name string) {
	GinkgoHelper()
	Expect(framework.Delete(ctx, config, resource, namespace, name)).To(Succeed())
}

func eventuallyExists(ctx context.Context, config *rest.Config, resource schema.GroupVersionResource, namespace, name string) {
	GinkgoHelper()
	Eventually(framework.Exists).WithContext(ctx).WithArguments(config, resource, namespace, name).Should(BeTrue(), "%s %s/%s", resource.Resource, namespace, name)
}

func eventuallyGone(ctx context.Context, config *rest.Config, resource schema.GroupVersionResource, namespace, name string) {
	GinkgoHelper()
	Eventually(framework.Exists).WithContext(ctx).WithArguments(config, resource, namespace, name).Should(BeFalse(), "%s %s/%s", resource.Resource, namespace, name)
}

// identities returns, by name, the UID and the resourceVersion of all objects of a namespace whose name has the prefix.
func identities(ctx context.Context, config *rest.Config, resource schema.GroupVersionResource, namespace, prefix string) map[string]string {
	GinkgoHelper()
	objects, err := framework.List(ctx, config, resource, namespace, "")
	Expect(err).NotTo(HaveOccurred())
	found := map[string]string{}
	for i := range objects {
		if strings.HasPrefix(objects[i].GetName(), prefix) {
			found[objects[i].GetName()] = string(objects[i].GetUID()) + "@" + objects[i].GetResourceVersion()
		}
	}
	return found
}

// configMap returns a ConfigMap with one entry.
func configMap(namespace, name, entry string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata: {name: %s, namespace: %s}
data: {entry: %q}
`, name, namespace, entry)
}

func namespace(name string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %s}
`, name)
}

// fill creates ConfigMaps in a mailbox, in an existing namespace.
func fill(ctx context.Context, mailbox *rest.Config, namespace, prefix string, count int) {
	GinkgoHelper()
	client, err := dynamic.NewForConfig(mailbox)
	Expect(err).NotTo(HaveOccurred())
	for i := range count {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": fmt.Sprintf("%s%d", prefix, i)},
			"data":     map[string]any{"number": fmt.Sprint(i)},
		}}
		_, err := client.Resource(configMaps).Namespace(namespace).Create(ctx, object, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
}

// documents joins YAML documents to one manifest.
func documents(manifests ...string) string { return strings.Join(manifests, "\n---\n") }
