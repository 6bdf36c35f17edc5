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
	"strconv"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/synchub-dev/synchub/test/framework"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// custom returns an API of namespaced custom resources with a status subresource.
func custom(group, version, resource, kind string) api {
	return api{GroupVersionResource: schema.GroupVersionResource{Group: group, Version: version, Resource: resource}, kind: kind}
}

// object returns the manifest of an object. Its content is YAML in flow style, such as "spec: {size: 1}".
func (a api) object(namespace, name, content string) string {
	if namespace != "" {
		namespace = ", namespace: " + namespace
	}
	return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: %q%s}\n%s\n", a.GroupVersion(), a.kind, name, namespace, content)
}

// define installs the CRDs of APIs on a cluster, and returns when the APIs are served.
func define(ctx context.Context, config *rest.Config, apis ...api) {
	GinkgoHelper()
	for _, api := range apis {
		apply(ctx, config, api.definition())
	}
	for _, api := range apis {
		Eventually(framework.Condition).WithContext(ctx).WithArguments(config, definitions, "", api.GroupResource().String(), "Established").
			Should(Equal("True"), "%s must be served", api.GroupResource())
	}
}

// history records the revisions at which objects came and went.
type history struct {
	lock        sync.Mutex
	came, ended map[string]int
}

// follow records creations and deletions of served resources until the spec ends. Revisions of different resources are
// comparable, since the servers of the suite store all of them in one etcd.
func follow(ctx context.Context, config *rest.Config, namespace string, resources ...schema.GroupVersionResource) *history {
	GinkgoHelper()
	client, err := dynamic.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	followed := &history{came: map[string]int{}, ended: map[string]int{}}
	for _, resource := range resources {
		known, err := client.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: 1})
		Expect(err).NotTo(HaveOccurred())
		events, err := client.Resource(resource).Namespace(namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: known.GetResourceVersion()})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(events.Stop)
		go followed.record(resource.Resource, events)
	}
	return followed
}

func (h *history) record(resource string, events watch.Interface) {
	for event := range events.ResultChan() {
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		revision, err := strconv.Atoi(object.GetResourceVersion())
		if err != nil {
			continue
		}
		name := resource + "/" + object.GetName()
		h.lock.Lock()
		if event.Type == watch.Added {
			h.came[name] = revision
		}
		if event.Type == watch.Deleted {
			h.ended[name] = revision
		}
		h.lock.Unlock()
	}
}

// cameAt and endedAt return the revision for "<resource>/<name>", or zero.
func (h *history) cameAt(object string) int  { return h.at(h.came, object) }
func (h *history) endedAt(object string) int { return h.at(h.ended, object) }

func (h *history) at(revisions map[string]int, object string) int {
	h.lock.Lock()
	defer h.lock.Unlock()
	return revisions[object]
}

// expectMoved expects that the object to was created before the object from, which it replaces, was deleted.
func (h *history) expectMoved(ctx context.Context, from, to string) {
	GinkgoHelper()
	Eventually(h.endedAt).WithContext(ctx).WithArguments(from).ShouldNot(BeZero(), from)
	Eventually(h.cameAt).WithContext(ctx).WithArguments(to).ShouldNot(BeZero(), to)
	Expect(h.cameAt(to)).To(BeNumerically("<", h.endedAt(from)), "%s must come before %s goes", to, from)
}
