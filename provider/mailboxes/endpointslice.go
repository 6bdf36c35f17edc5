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

	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

var endpointSliceResource = apisv1alpha1.SchemeGroupVersion.WithResource("apiexportendpointslices")

// runEndpointSliceInformer keeps one endpoint for each URL of the export's APIExportEndpointSlice, which kcp gives the name of
// the export. The slice may be empty, and URLs come and go: kcp lists a shard only while a mailbox lives on it.
func (m *Mailboxes) runEndpointSliceInformer(ctx context.Context, client dynamic.Interface) error {
	informer := dynamicinformer.NewFilteredDynamicInformer(client, endpointSliceResource, metav1.NamespaceAll, 0, cache.Indexers{},
		func(options *metav1.ListOptions) {
			options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, m.parts.options.Export).String()
		}).Informer()
	handlers, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { m.setEndpoints(endpointURLs(object)) },
		UpdateFunc: func(_, object any) { m.setEndpoints(endpointURLs(object)) },
		DeleteFunc: func(any) { m.setEndpoints(nil) },
	})
	if err != nil {
		return err
	}
	go func() {
		if cache.WaitForCacheSync(ctx.Done(), handlers.HasSynced) {
			m.parts.endpoints.markKnown()
		}
	}()
	informer.RunWithContext(ctx)
	return nil
}

func endpointURLs(object any) (urls []string) {
	slice, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	for _, endpoint := range nestedMaps(slice, "status", "endpoints") {
		if url, ok := endpoint["url"].(string); ok {
			urls = append(urls, url)
		}
	}
	return urls
}

// setEndpoints starts new endpoints, and stops removed endpoints with their caches. The mailboxes of a stopped endpoint become
// Unknown, and nothing is deleted anywhere.
func (m *Mailboxes) setEndpoints(urls []string) {
	stopped := m.parts.endpoints.replace(m.validEndpoints(urls), func(ctx context.Context, url string) (*endpoint, error) { return newEndpoint(ctx, m.parts, url) })
	for _, endpoint := range stopped {
		endpoint.log.Info("the endpoint was removed")
		endpoint.stop()
		for _, mailbox := range endpoint.mailboxes() {
			m.parts.release(mailbox)
		}
	}
}

// validEndpoints returns the URLs that can be endpoints.
func (m *Mailboxes) validEndpoints(urls []string) (usable []string) {
	for _, url := range urls {
		checked, err := normalizeURL(url)
		if err != nil {
			m.parts.options.Log.Error(err, "ignoring an endpoint of the export", "export", m.parts.options.Export)
			continue
		}
		usable = append(usable, checked)
	}
	return usable
}

// stopEndpoints stops all endpoints, without a report that their mailboxes are gone.
func (m *Mailboxes) stopEndpoints() {
	for _, endpoint := range m.parts.endpoints.replace(nil, nil) {
		endpoint.stop()
	}
	m.parts.absences.verifier.Wait()
}
