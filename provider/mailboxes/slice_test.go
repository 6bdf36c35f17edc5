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
	"os"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/synchub-dev/synchub/provider/kcp"
)

func TestURLsOf(t *testing.T) {
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
			if got := urlsOf(tt.object); !slices.Equal(got, tt.want) {
				t.Errorf("want %q, got %q", tt.want, got)
			}
		})
	}
}

// The endpoints follow the list. Nothing answers at these addresses.
func TestSetEndpoints(t *testing.T) {
	const one, two, three = "https://127.0.0.1:1/one", "https://127.0.0.1:1/two", "https://127.0.0.1:1/three"
	g := NewWithT(t)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	g.Expect(os.WriteFile(kubeconfig, []byte(`
apiVersion: v1
kind: Config
current-context: kcp
clusters: [{name: kcp, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: kcp, context: {cluster: kcp, user: hub}}]
users: [{name: hub, user: {token: x}}]
`), 0o600)).To(Succeed())
	access, err := kcp.Load(kubeconfig, kcp.Limits{QPS: 100, Burst: 100})
	g.Expect(err).NotTo(HaveOccurred())
	mailboxes, _ := newMailboxes(configMaps)
	mailboxes.access, mailboxes.ctx = access, t.Context()
	defer mailboxes.stopAll()
	urls := func() []string { return slices.Sorted(maps.Keys(mailboxes.endpoints)) }
	g.Expect(mailboxes.Synced()).To(BeFalse())

	mailboxes.setEndpoints([]string{one, two})
	g.Expect(urls()).To(Equal([]string{one, two}))
	g.Expect(slices.Collect(maps.Keys(mailboxes.endpoints[one].informers))).To(ConsistOf(bindingsResource, configMaps))
	first, second := mailboxes.endpoints[one], mailboxes.endpoints[two]

	mailboxes.Watch(secrets)
	mailboxes.Watch(secrets)
	mailboxes.setEndpoints([]string{two, three})
	g.Expect(urls()).To(Equal([]string{three, two}))
	g.Expect(mailboxes.endpoints[two]).To(BeIdenticalTo(second))
	g.Expect(first.ctx.Err()).To(HaveOccurred(), "it is gone")
	g.Expect(second.ctx.Err()).NotTo(HaveOccurred())
	for _, endpoint := range mailboxes.endpoints {
		g.Expect(slices.Collect(maps.Keys(endpoint.informers))).To(ConsistOf(bindingsResource, configMaps, secrets))
	}

	// With endpoints that have not answered yet nothing is in step; without any there is nothing to wait for.
	mailboxes.sliced = true
	g.Expect(mailboxes.Synced()).To(BeFalse())
	mailboxes.setEndpoints(nil)
	g.Expect(urls()).To(BeEmpty())
	g.Expect(second.ctx.Err()).To(HaveOccurred())
	g.Expect(mailboxes.Synced()).To(BeTrue())
}
