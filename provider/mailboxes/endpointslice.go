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
			options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, m.export).String()
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
			m.lock.Lock()
			m.endpointsKnown = true
			m.lock.Unlock()
		}
	}()
	informer.RunWithContext(ctx)
	return nil
}

func endpointURLs(object any) []string {
	slice, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	endpoints, _, _ := unstructured.NestedSlice(slice.Object, "status", "endpoints")
	urls := make([]string, 0, len(endpoints))
	for _, endpoint := range endpoints {
		if fields, ok := endpoint.(map[string]any); ok {
			if url, ok := fields["url"].(string); ok {
				urls = append(urls, url)
			}
		}
	}
	return urls
}

// setEndpoints starts new endpoints, and stops removed endpoints with their caches. The mailboxes of a stopped endpoint become
// Unknown, and nothing is deleted anywhere.
func (m *Mailboxes) setEndpoints(urls []string) {
	wanted := m.validEndpoints(urls)
	m.lock.Lock()
	var stopped []*endpoint
	for url, endpoint := range m.endpoints {
		if !slices.Contains(wanted, url) {
			m.log.Info("the endpoint was removed", "endpoint", url)
			delete(m.endpoints, url)
			stopped = append(stopped, endpoint)
		}
	}
	for _, url := range wanted {
		if _, ok := m.endpoints[url]; !ok {
			m.startEndpoint(url)
		}
	}
	m.lock.Unlock()
	// Stopping waits for handlers, and those take the lock.
	for _, endpoint := range stopped {
		endpoint.stop()
		for _, mailbox := range endpoint.mailboxes() {
			m.releaseMailbox(mailbox)
		}
	}
}

// validEndpoints returns the URLs that can be endpoints.
func (m *Mailboxes) validEndpoints(urls []string) (usable []string) {
	for _, url := range urls {
		checked, err := normalizeURL(url)
		if err != nil {
			m.log.Error(err, "ignoring an endpoint of the export", "export", m.export)
			continue
		}
		usable = append(usable, checked)
	}
	return usable
}

// startEndpoint requires the lock.
func (m *Mailboxes) startEndpoint(url string) {
	endpoint, err := newEndpoint(m.ctx, m, url)
	if err != nil {
		m.log.Error(err, "ignoring an endpoint of the export", "export", m.export)
		return
	}
	m.log.Info("watching the endpoint", "endpoint", url)
	m.endpoints[url] = endpoint
	for _, resource := range m.resources {
		endpoint.startInformer(resource)
	}
}

func (m *Mailboxes) stopEndpoints() {
	m.lock.Lock()
	endpoints := slices.Collect(maps.Values(m.endpoints))
	m.endpoints = map[string]*endpoint{}
	m.lock.Unlock()
	for _, endpoint := range endpoints {
		endpoint.stop()
	}
	m.absence.Wait()
}
