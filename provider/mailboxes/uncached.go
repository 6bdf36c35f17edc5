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

package mailboxes

import (
	"context"
	"maps"
	"slices"

	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/provider/transport"
)

// Bound returns the mailboxes whose binding has bound a resource of the export, sorted. The resource need not be watched.
func (m *Mailboxes) Bound(resource schema.GroupResource) (bound []logicalcluster.Name) {
	for _, endpoint := range m.allEndpoints() {
		for _, mailbox := range endpoint.mailboxes() {
			binding := endpoint.binding(mailbox)
			if binding != nil && binding.GetDeletionTimestamp() == nil && listsResource(binding, resource, "status", "boundResources") {
				bound = append(bound, mailbox)
			}
		}
	}
	slices.Sort(bound)
	return slices.Compact(bound)
}

// ListUncached calls visit for each object of a resource in all mailboxes. It sends requests, so that a rarely read resource
// need not be watched. It stops at the first failed request and returns its error.
func (m *Mailboxes) ListUncached(ctx context.Context, resource schema.GroupVersionResource, visit func(mailbox logicalcluster.Name, object *unstructured.Unstructured)) error {
	for _, endpoint := range m.allEndpoints() {
		client := endpoint.clients.ClusterOrDie(logicalcluster.Wildcard).Resource(resource)
		for page, err := range transport.Pages(ctx, metav1.ListOptions{Limit: wildcardPageSize}, client.List) {
			if err != nil {
				return err
			}
			for i := range page.Items {
				visit(logicalcluster.From(&page.Items[i]), &page.Items[i])
			}
		}
	}
	return nil
}

func (m *Mailboxes) allEndpoints() []*endpoint {
	m.lock.RLock()
	defer m.lock.RUnlock()
	return slices.Collect(maps.Values(m.endpoints))
}
