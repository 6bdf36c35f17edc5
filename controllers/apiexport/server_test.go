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

package apiexport_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/apiexport"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
	"github.com/synchub-dev/synchub/test/fixtures"
	"github.com/synchub-dev/synchub/test/framework/suite"
	"github.com/synchub-dev/synchub/test/tier"
)

// gadgets returns the manifest of the CRD gadgets in a group.
func gadgets(group string) string {
	return fmt.Sprintf(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gadgets.%[1]s},
spec: {group: %[1]s, scope: Namespaced, names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList},
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`, group)
}

// publish creates PublishedResources by name and spec.
func (w *testEnv) publish(t *testing.T, specs map[string]string) {
	t.Helper()
	for name, spec := range specs {
		resource := &synchubv1alpha1.PublishedResource{ObjectMeta: metav1.ObjectMeta{Name: name}}
		resource.Spec = fixtures.Decode[synchubv1alpha1.PublishedResourceSpec](t, spec)
		if err := w.hosting.Create(t.Context(), resource); err != nil {
			t.Fatal(err)
		}
	}
}

// becomes waits for the reason of a condition and for a part of its message.
func (w *testEnv) becomes(t *testing.T, name, conditionType, reason, part string) {
	t.Helper()
	suite.Eventually(t, func(g Gomega) {
		var resource synchubv1alpha1.PublishedResource
		g.Expect(w.hosting.Get(t.Context(), types.NamespacedName{Name: name}, &resource)).To(Succeed())
		condition := meta.FindStatusCondition(resource.Status.Conditions, conditionType)
		g.Expect(condition).NotTo(BeNil())
		g.Expect(condition.Reason + ": " + condition.Message).To(And(HavePrefix(reason+": "), ContainSubstring(part)))
	})
}

// inExport returns the entries of the mailbox export.
func (w *testEnv) inExport(ctx context.Context, g Gomega) []string {
	return w.entries(ctx, g, synchubv1alpha1.MailboxExport)
}

// entries returns the entries of an export: schemas without their hash, and claims.
func (w *testEnv) entries(ctx context.Context, g Gomega, name string) (found []string) {
	var export apisv1alpha2.APIExport
	g.Expect(w.provider.Get(ctx, types.NamespacedName{Name: name}, &export)).To(Succeed())
	for _, exported := range export.Spec.Resources {
		_, name, _ := strings.Cut(exported.Schema, ".")
		found = append(found, name)
	}
	for _, claim := range export.Spec.PermissionClaims {
		found = append(found, strings.Trim(claim.Resource+"."+claim.Group+"@"+claim.IdentityHash, ".@"))
	}
	return found
}

// synced returns the names of the PublishedResources whose objects are synced.
func (w *testEnv) synced() (names []string) {
	for _, resource := range w.sync.Published() {
		names = append(names, resource.PublishedResource)
	}
	slices.Sort(names)
	return names
}

// hasEvent waits for an event on a PublishedResource, and returns how many events have that reason.
func (w *testEnv) hasEvent(t *testing.T, name, reason, part string) (count int) {
	t.Helper()
	suite.Eventually(t, func(g Gomega) {
		var all eventsv1.EventList
		g.Expect(w.hosting.List(t.Context(), &all, client.InNamespace(metav1.NamespaceDefault))).To(Succeed())
		notes := []string{}
		for _, event := range all.Items {
			if event.Regarding.Name == name && event.Reason == reason {
				notes = append(notes, event.Note)
			}
		}
		g.Expect(notes).To(ContainElement(ContainSubstring(part)))
		count = len(notes)
	})
	return count
}

// All tests share one kcp. One workspace is the hosting cluster, one is the provider workspace, and one belongs
// to a vendor whose export mailboxes bind too.
func TestOnAServer(t *testing.T) {
	tier.Thorough(t)
	w := newTestEnv(t)
	t.Run("built-in APIs of kcp", w.testServedByKCP)
	t.Run("the export", w.testExport)
	t.Run("a restart", w.testRestart)
	t.Run("the workload export", w.testWorkloadExport)
}

// A schema for an API that every workspace has would hide that API in mailboxes, so the hub never makes one.
func (w *testEnv) testServedByKCP(t *testing.T) {
	_, lists, err := suite.Discovery(t, w.kcp.Workspace(vendorPath)).ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range list.APIResources {
			if strings.Contains(resource.Name, "/") {
				continue
			}
			tried++
			for _, named := range []synchubv1alpha1.ResourceDescriptor{{Group: version.Group, Resource: resource.Name}, {Group: version.Group, Kind: resource.Kind}} {
				spec := &synchubv1alpha1.PublishedResourceSpec{Resource: named, API: synchubv1alpha1.APISource{Source: synchubv1alpha1.APISourceSchema}}
				if source, err := publishedresource.APISourceOf(spec); err == nil {
					t.Errorf("kcp serves %+v, which would be hidden by %s", named, source)
				}
			}
		}
	}
	if tried < 20 {
		t.Errorf("only %d resources: they were not found", tried)
	}
}

func (w *testEnv) testExport(t *testing.T) {
	g := NewWithT(t)
	identity := w.vendorExport(t, "gizmos.vendor.example.com")
	w.apply(t, hostingPath, "{apiVersion: v1, kind: ConfigMap, metadata: {name: gadgets, namespace: default}, data: {crd.yaml: "+strconv.Quote(gadgets("export.example.com"))+"}}")
	previous := w.inExport(t.Context(), g)

	w.publish(t, map[string]string{
		"configmaps": "{resource: {resource: configmaps}}",
		"gadgets":    "{resource: {group: export.example.com, resource: gadgets}, api: {schemaFrom: {configMap: {name: gadgets}}}, related: [{identifier: secret, origin: Target, resource: {version: v1, resource: secrets}, object: {template: x}}]}",
		"gizmos":     "{resource: {group: vendor.example.com, resource: gizmos, version: v1}, api: {identityHash: " + identity + "}}",
		// kcp refuses claims on a group whose first part has only one letter.
		"refused": "{resource: {group: a.example.com, resource: as, version: v1}, api: {identityHash: " + identity + "}}",
		"invalid": "{resource: {resource: serviceaccounts}, filter: {cel: '('}}",
	})
	for _, name := range []string{"configmaps", "gadgets", "gizmos"} {
		w.becomes(t, name, synchubv1alpha1.ConditionReady, apiexport.ReasonReady, "")
		w.hasEvent(t, name, apiexport.ReasonReady, "")
	}
	w.becomes(t, "invalid", synchubv1alpha1.ConditionReady, apiexport.ReasonInvalid, "spec.filter.cel: ")
	w.becomes(t, "invalid", synchubv1alpha1.ConditionExported, apiexport.ReasonExported, "")
	w.becomes(t, "refused", synchubv1alpha1.ConditionExported, apiexport.ReasonRefused, "kcp refuses the claim on as.a.example.com")
	w.hasEvent(t, "refused", apiexport.ReasonRefused, "")
	suite.Eventually(t, func(g Gomega) {
		g.Expect(w.inExport(t.Context(), g)).To(ConsistOf(append(previous, "gadgets.export.example.com", "configmaps", "gizmos.vendor.example.com@"+identity, "serviceaccounts", "secrets")))
		g.Expect(w.synced()).To(Equal([]string{"", "configmaps", "gadgets", "gizmos"}))
		// An API that another export provides has the kind and scope that discovery returns.
		for _, resource := range w.sync.Published() {
			if resource.Resource == "gizmos" {
				g.Expect(resource.Kind).To(Equal("Gizmo"))
				g.Expect(resource.Namespaced).To(BeFalse())
				g.Expect(resource.StatusSubresource).To(BeTrue())
				g.Expect(resource.Exported || resource.Native).To(BeFalse())
			}
		}
	})
	// The mailbox caches can list and watch all of these resources.
	suite.Eventually(t, func(g Gomega) { g.Expect(w.boxes.HasSynced()).To(BeTrue()) })

	// If a user removes an entry from the export, the controller adds the entry again.
	suite.Eventually(t, func(g Gomega) {
		var export apisv1alpha2.APIExport
		g.Expect(w.provider.Get(t.Context(), types.NamespacedName{Name: synchubv1alpha1.MailboxExport}, &export)).To(Succeed())
		export.Spec.PermissionClaims = slices.DeleteFunc(export.Spec.PermissionClaims, func(claim apisv1alpha2.PermissionClaim) bool { return claim.Resource == "configmaps" })
		g.Expect(w.provider.Update(t.Context(), &export)).To(Succeed())
	})
	suite.Eventually(t, func(g Gomega) { g.Expect(w.inExport(t.Context(), g)).To(ContainElement("configmaps")) })

	w.testClaimRetries(t)

	// A deleted PublishedResource stops the sync of its objects and changes nothing else.
	after := w.inExport(t.Context(), g)
	g.Expect(w.hosting.Delete(t.Context(), &synchubv1alpha1.PublishedResource{ObjectMeta: metav1.ObjectMeta{Name: "gadgets"}})).To(Succeed())
	w.hasEvent(t, "gadgets", apiexport.ReasonUnpublished, "gadgets.export.example.com is no longer published")
	g.Expect(w.synced()).To(Equal([]string{"configmaps", "gizmos"}))
	g.Expect(w.inExport(t.Context(), g)).To(ConsistOf(after))

	// Another PublishedResource of the same API takes over.
	w.publish(t, map[string]string{"more-configmaps": "{resource: {resource: configmaps}}"})
	w.becomes(t, "more-configmaps", synchubv1alpha1.ConditionReady, apiexport.ReasonDuplicate, "configmaps is published by the older PublishedResource configmaps.")
	g.Expect(w.hosting.Delete(t.Context(), &synchubv1alpha1.PublishedResource{ObjectMeta: metav1.ObjectMeta{Name: "configmaps"}})).To(Succeed())
	w.hasEvent(t, "configmaps", apiexport.ReasonUnpublished, "configmaps is published by the PublishedResource more-configmaps now.")
	w.becomes(t, "more-configmaps", synchubv1alpha1.ConditionReady, apiexport.ReasonReady, "")
	g.Expect(w.synced()).To(Equal([]string{"gizmos", "more-configmaps"}))

	// Each reason causes one event.
	g.Expect(w.hasEvent(t, "refused", apiexport.ReasonRefused, "")).To(Equal(1))
	g.Expect(w.hasEvent(t, "gizmos", apiexport.ReasonReady, "")).To(Equal(1))
}

// kcp accepts claims when the export changes, and does not try again if that fails. The controller makes kcp retry.
func (w *testEnv) testClaimRetries(t *testing.T) {
	mailbox, err := client.New(w.kcp.Workspace(w.mailbox), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	binding := func(g Gomega) *apisv1alpha2.APIBinding {
		var all apisv1alpha2.APIBindingList
		g.Expect(mailbox.List(t.Context(), &all)).To(Succeed())
		at := slices.IndexFunc(all.Items, func(one apisv1alpha2.APIBinding) bool {
			return one.Spec.Reference.Export.Name == synchubv1alpha1.MailboxExport
		})
		g.Expect(at).To(BeNumerically(">=", 0))
		return &all.Items[at]
	}
	isConfigMaps := func(claim apisv1alpha2.AcceptablePermissionClaim) bool { return claim.Resource == "configmaps" }
	// kcp may still be processing an earlier change of the export.
	taken := 0
	NewWithT(t).Eventually(func(g Gomega) {
		found := binding(g)
		if !slices.ContainsFunc(found.Spec.PermissionClaims, isConfigMaps) {
			taken++
		} else {
			taken = 0
			found.Spec.PermissionClaims = slices.DeleteFunc(found.Spec.PermissionClaims, isConfigMaps)
			g.Expect(mailbox.Update(t.Context(), found)).To(Succeed())
		}
		g.Expect(taken).To(BeNumerically(">=", 3))
	}).WithContext(t.Context()).WithPolling(500 * time.Millisecond).Should(Succeed())
	// The controller reconciles every minute and at each event of a PublishedResource.
	NewWithT(t).Eventually(func(g Gomega) {
		w.annotate(t, g, "configmaps")
		g.Expect(slices.ContainsFunc(binding(g).Spec.PermissionClaims, isConfigMaps)).To(BeTrue())
	}).WithContext(t.Context()).WithPolling(time.Second).Should(Succeed())
}

// annotate updates a PublishedResource without an effect on the plan.
func (w *testEnv) annotate(t *testing.T, g Gomega, name string) {
	var resource synchubv1alpha1.PublishedResource
	g.Expect(w.hosting.Get(t.Context(), types.NamespacedName{Name: name}, &resource)).To(Succeed())
	previous := resource.DeepCopy()
	metav1.SetMetaDataAnnotation(&resource.ObjectMeta, "example.org/touched-at", time.Now().Format(time.RFC3339Nano))
	g.Expect(w.hosting.Patch(t.Context(), &resource, client.MergeFrom(previous))).To(Succeed())
}

// A hub that has just started knows no endpoint, so discovery finds no API of another export.
func (w *testEnv) testRestart(t *testing.T) {
	g := NewWithT(t)
	w.becomes(t, "gizmos", synchubv1alpha1.ConditionReady, apiexport.ReasonReady, "")
	w.stop()
	var patches atomic.Int32
	counted := suite.Observe(w.kcp.Workspace(hostingPath), func(request *http.Request) {
		if request.Method == http.MethodPatch && strings.Contains(request.URL.Path, "/publishedresources/") && !strings.Contains(request.URL.Path, "/zz-last/") {
			patches.Add(1)
		}
	})
	g.Expect(w.work(t, counted)).To(Succeed())
	suite.Eventually(t, func(g Gomega) {
		g.Expect(w.boxes.HasSynced()).To(BeTrue())
		g.Expect(w.synced()).To(Equal([]string{"gizmos", "more-configmaps"}))
	})
	// The controller reports the last PublishedResource after all earlier ones.
	w.publish(t, map[string]string{"zz-last": "{resource: {resource: secrets}, filter: {cel: '('}}"})
	w.becomes(t, "zz-last", synchubv1alpha1.ConditionReady, apiexport.ReasonInvalid, "")
	g.Expect(patches.Load()).To(BeZero())
}
