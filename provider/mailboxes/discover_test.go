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
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestDiscover(t *testing.T) {
	group := func(group, version string) schema.GroupVersion {
		return schema.GroupVersion{Group: group, Version: version}
	}
	resource := func(group, version, resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
	}
	served := caches{
		configMaps:                                nil,
		resource("example.org", "v1", "gears"):    nil,
		resource("example.org", "v1", "wheels"):   nil,
		resource("example.org", "v2", "wheels"):   nil,
		resource("elsewhere.org", "v3", "wheels"): nil,
	}
	for name, tt := range map[string]struct {
		group          schema.GroupVersion
		resource, kind string
		want           schema.GroupVersionResource
	}{
		"of the core group":                  {group("", ""), "configmaps", "", configMaps},
		"of the core group with its version": {group("", "v1"), "configmaps", "", configMaps},
		"not of the core group":              {group("", ""), "secrets", "", schema.GroupVersionResource{}},
		"of no such core version":            {group("", "v7"), "configmaps", "", schema.GroupVersionResource{}},
		"the preferred version":              {group("example.org", ""), "wheels", "", resource("example.org", "v2", "wheels")},
		"a given version":                    {group("example.org", "v1"), "wheels", "", resource("example.org", "v1", "wheels")},
		"the only version that has it":       {group("example.org", ""), "gears", "", resource("example.org", "v1", "gears")},
		"not in that version":                {group("example.org", "v2"), "gears", "", schema.GroupVersionResource{}},
		"no such version":                    {group("example.org", "v9"), "wheels", "", schema.GroupVersionResource{}},
		"no such group":                      {group("example.com", ""), "wheels", "", schema.GroupVersionResource{}},
		"no such resource":                   {group("example.org", ""), "axles", "", schema.GroupVersionResource{}},
		"by its kind":                        {group("example.org", ""), "", "Kind of gears", resource("example.org", "v1", "gears")},
		"by no such kind":                    {group("example.org", ""), "", "gears", schema.GroupVersionResource{}},
		"by both":                            {group("elsewhere.org", ""), "wheels", "Kind of wheels", resource("elsewhere.org", "v3", "wheels")},
		"by two that do not belong together": {group("example.org", ""), "wheels", "Kind of gears", schema.GroupVersionResource{}},
		"a subresource":                      {group("example.org", ""), "gears/status", "", resource("example.org", "v1", "gears/status")},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			mailboxes := startMailboxes(t)
			mailboxes.setEndpoints([]string{newFakeShard(t, served).url()})
			found, err := mailboxes.Discover(t.Context(), tt.group, tt.resource, tt.kind)
			g.Expect(schema.GroupVersionResource{Group: found.Group, Version: found.Version, Resource: found.Name}).To(Equal(tt.want))
			if tt.want.Empty() {
				g.Expect(err).To(MatchError(ErrNotServed))
			} else {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(found.Kind).NotTo(BeEmpty())
				g.Expect(found.Verbs).NotTo(BeEmpty())
			}
		})
	}
}

// Any endpoint can answer, so a dead one is skipped. Without an answer the error is not ErrNotServed.
func TestDiscoverThroughAnyEndpoint(t *testing.T) {
	g := NewWithT(t)
	mailboxes := startMailboxes(t)
	discover := func(ctx context.Context, resource string) error {
		_, err := mailboxes.Discover(ctx, schema.GroupVersion{}, resource, "")
		return err
	}
	g.Expect(discover(t.Context(), "configmaps")).To(MatchError(ErrNotServed), "there is no endpoint yet")
	mailboxes.setEndpoints([]string{nowhere})
	err := discover(t.Context(), "configmaps")
	g.Expect(err).To(MatchError(ContainSubstring("refuses connections")))
	g.Expect(errors.Is(err, ErrNotServed)).To(BeFalse())

	shard := newFakeShard(t, caches{configMaps: nil})
	mailboxes.setEndpoints([]string{nowhere, shard.url()})
	g.Expect(discover(t.Context(), "configmaps")).To(Succeed())
	g.Expect(discover(t.Context(), "secrets")).To(MatchError(ErrNotServed))

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	g.Expect(discover(ended, "configmaps")).To(MatchError(context.Canceled))
}

// Endpoints that answered the last time come first.
func TestEndpointsByRank(t *testing.T) {
	g := NewWithT(t)
	mailboxes := newMailboxes()
	shows := caches{bindingsResource: nil}
	for url, made := range map[string]struct {
		caches caches
		silent bool
	}{
		"https://a": {caches{}, true}, "https://b": {shows, true}, "https://c": {caches{}, false}, "https://d": {shows, false}, "https://e": {shows, false},
	} {
		addEndpoint(t, mailboxes, url, made.caches).unresponsive.Store(made.silent)
	}
	var order []string
	for _, endpoint := range mailboxes.byRank() {
		order = append(order, endpoint.url)
	}
	g.Expect(order).To(Equal([]string{"https://d", "https://e", "https://c", "https://a", "https://b"}))
}
