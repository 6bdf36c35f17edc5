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
	"maps"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

func TestEndpointURLs(t *testing.T) {
	slice := func(status any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"status": status}}
	}
	endpoints := func(items ...any) *unstructured.Unstructured { return slice(map[string]any{"endpoints": items}) }
	for name, tt := range map[string]struct {
		object any
		want   []string
	}{
		"nothing":               {nil, nil},
		"something else":        {cache.DeletedFinalStateUnknown{Key: "a"}, nil},
		"no status":             {&unstructured.Unstructured{Object: map[string]any{}}, nil},
		"a status of text":      {slice("text"), nil},
		"no endpoints":          {slice(map[string]any{}), nil},
		"an empty list":         {endpoints(), nil},
		"one":                   {endpoints(map[string]any{"url": "https://a"}), []string{"https://a"}},
		"more":                  {endpoints(map[string]any{"url": "https://a"}, map[string]any{"url": "https://b"}), []string{"https://a", "https://b"}},
		"some of no known form": {endpoints("https://x", map[string]any{"url": int64(1)}, map[string]any{}, map[string]any{"url": "https://a"}), []string{"https://a"}},
		"no list":               {slice(map[string]any{"endpoints": map[string]any{"url": "https://a"}}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := endpointURLs(tt.object); !slices.Equal(got, tt.want) {
				t.Errorf("want %q, got %q", tt.want, got)
			}
		})
	}
}

// The endpoints follow the list. Nothing answers at these addresses.
func TestSetEndpoints(t *testing.T) {
	const one, two, three = "https://127.0.0.1:1/one", "https://127.0.0.1:1/two", "https://127.0.0.1:1/three"
	g := NewWithT(t)
	mailboxes := startMailboxes(t, configMaps)
	mailboxes.parts.endpoints.known = false
	urls := func() []string { return slices.Sorted(maps.Keys(mailboxes.parts.endpoints.byURL)) }
	g.Expect(mailboxes.HasSynced()).To(BeFalse())

	mailboxes.setEndpoints([]string{one, two})
	g.Expect(urls()).To(Equal([]string{one, two}))
	g.Expect(slices.Collect(maps.Keys(mailboxes.parts.endpoints.byURL[one].informers))).To(ConsistOf(bindingsResource, configMaps))
	first, second := mailboxes.parts.endpoints.byURL[one], mailboxes.parts.endpoints.byURL[two]

	mailboxes.SetResources([]schema.GroupVersionResource{secrets})
	mailboxes.SetResources([]schema.GroupVersionResource{secrets})
	mailboxes.setEndpoints([]string{two, three})
	g.Expect(urls()).To(Equal([]string{three, two}))
	g.Expect(mailboxes.parts.endpoints.byURL[two]).To(BeIdenticalTo(second))
	g.Expect(first.ctx.Err()).To(HaveOccurred(), "it is gone")
	g.Expect(second.ctx.Err()).NotTo(HaveOccurred())
	for _, endpoint := range mailboxes.parts.endpoints.byURL {
		g.Expect(slices.Collect(maps.Keys(endpoint.informers))).To(ConsistOf(bindingsResource, configMaps, secrets))
	}

	// With endpoints that have not answered yet, the caches are not synced; without endpoints there is nothing to wait for.
	mailboxes.parts.endpoints.known = true
	g.Expect(mailboxes.HasSynced()).To(BeFalse())
	mailboxes.setEndpoints(nil)
	g.Expect(urls()).To(BeEmpty())
	g.Expect(second.ctx.Err()).To(HaveOccurred())
	g.Expect(mailboxes.HasSynced()).To(BeTrue())
}

// The hub sends its credentials only to valid URLs of virtual workspaces, and ignores all other URLs.
func TestValidEndpoints(t *testing.T) {
	for name, tt := range map[string]struct{ urls, want []string }{
		"none":                      {nil, nil},
		"one":                       {[]string{"https://a/services/apiexport/x/y"}, []string{"https://a/services/apiexport/x/y"}},
		"more":                      {[]string{"https://a/x", "https://b:6443/x"}, []string{"https://a/x", "https://b:6443/x"}},
		"a slash at the end":        {[]string{"https://a/x/"}, []string{"https://a/x"}},
		"without encryption":        {[]string{"http://a/x", "https://b/x"}, []string{"https://b/x"}},
		"another scheme":            {[]string{"ftp://a/x", "file:///etc/passwd"}, nil},
		"no scheme":                 {[]string{"a/x", "127.0.0.1:6443"}, nil},
		"no host":                   {[]string{"https:///x", "https://"}, nil},
		"nothing":                   {[]string{""}, nil},
		"no URL":                    {[]string{"://", "https://[::1/x", "https://a\x00/x", "https://a:port/x"}, nil},
		"with credentials":          {[]string{"https://user:pass@a/x"}, nil},
		"with a query":              {[]string{"https://a/x?y=z"}, nil},
		"with a fragment":           {[]string{"https://a/x#y"}, nil},
		"the good one of many bad":  {[]string{"://", "https://a/x", ""}, []string{"https://a/x"}},
		"an address of version six": {[]string{"https://[::1]:6443/x"}, []string{"https://[::1]:6443/x"}},
	} {
		t.Run(name, func(t *testing.T) {
			mailboxes := startMailboxes(t)
			if got := mailboxes.validEndpoints(tt.urls); !slices.Equal(got, tt.want) {
				t.Errorf("want %q, got %q", tt.want, got)
			}
		})
	}
}

// A URL that is listed twice, in any form, is watched once.
func TestEndpointsAreWatchedOnce(t *testing.T) {
	g := NewWithT(t)
	shard := newFakeShard(t, caches{bindingsResource: bindings(here), configMaps: {object(here, "a")}})
	mailboxes := startMailboxes(t, configMaps)
	mailboxes.setEndpoints([]string{shard.url(), shard.url() + "/", shard.url()})
	g.Expect(mailboxes.parts.endpoints.byURL).To(HaveLen(1))
	g.Eventually(func() State {
		_, state := mailboxes.Get(configMaps, here, key("a"))
		return state
	}).Should(Equal(Present))
	g.Expect(shard.watchers(bindingsResource)).To(BeNumerically("<=", 1))
}
