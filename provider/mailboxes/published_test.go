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

package mailboxes_test

import (
	"context"
	"slices"
	"testing"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/mailboxes/absence"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/tier"
)

// A resource is watched before kcp serves it, and after kcp no longer serves it. Neither affects other resources.
func TestPublishedResourcesComeAndGo(t *testing.T) {
	tier.Thorough(t)
	f := newTestHub(t)
	f.slice.set(f.first.url)
	f.eventually(f.hub.HasSynced).Should(BeTrue())
	onSecrets := &recordingSubscriber{}
	f.hub.Subscribe(secrets, f.first.own, onSecrets)
	discover := func() error {
		_, err := f.hub.Discover(t.Context(), schema.GroupVersion{}, secrets.Resource, "")
		return err
	}
	state := func() mailboxes.State {
		_, state := f.hub.Get(secrets, f.first.own, key("published"))
		return state
	}
	f.eventually(f.watchers).Should(Equal(3), "the slice, bindings and config maps")
	atRest := f.watchRoutines()
	direct, err := f.first.client(f.first.own.String())
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(direct.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "published"}})).To(Succeed())

	f.hub.SetResources([]schema.GroupVersionResource{secrets})
	f.eventually(f.hub.HasSynced).Should(BeTrue(), "HasSynced does not wait for a resource that is not served yet")
	f.Expect(state()).To(Equal(mailboxes.Unknown))
	f.Expect(discover()).To(MatchError(mailboxes.ErrNotServed))
	f.expectEvents(f.first, f.first.own, "beside-unserved")

	f.Expect(f.first.claim(t.Context(), secrets.GroupResource(), "")).To(Succeed())
	f.remindUntilAccepted()
	f.eventually(state).Should(Equal(mailboxes.Present))
	f.eventually(onSecrets.wasReset).Should(BeTrue())
	f.Expect(discover()).To(Succeed())

	f.Expect(f.first.changeExport(t.Context(), func(export *apisv1alpha2.APIExport) {
		claims := &export.Spec.PermissionClaims
		*claims = (*claims)[:len(*claims)-1]
	})).To(Succeed())
	f.eventually(discover).Should(MatchError(mailboxes.ErrNotServed))
	f.expectEvents(f.first, f.first.own, "beside-unpublished")
	f.hub.SetResources(nil)
	f.Expect(state()).To(Equal(mailboxes.Unknown))
	f.Expect(f.hub.Absences.TakeVerifiedAbsence(f.first.own, absence.Candidate{Resource: secrets, Key: key("published"), Missing: true})).To(BeFalse())
	f.eventually(f.watchRoutines).Should(BeNumerically("<=", atRest))

	onSecrets.wasReset()
	f.hub.SetResources([]schema.GroupVersionResource{secrets})
	f.Expect(f.first.claim(t.Context(), secrets.GroupResource(), "")).To(Succeed())
	f.remindUntilAccepted()
	f.eventually(state).Should(Equal(mailboxes.Present))
	f.eventually(onSecrets.wasReset).Should(BeTrue(), "the subscriber is the same")
}

// wheels is the API of a foreign export.
const wheels = `
apiVersion: apis.kcp.io/v1alpha1
kind: APIResourceSchema
metadata: {name: today.wheels.example.org}
spec:
  group: example.org
  names: {plural: wheels, singular: wheel, kind: Wheel, listKind: WheelList}
  scope: Namespaced
  conversion: {strategy: None}
  versions:
  - {name: v1, served: true, storage: false, schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - {name: v2, served: true, storage: true, subresources: {status: {}}, schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: apis.kcp.io/v1alpha2
kind: APIExport
metadata: {name: example.org}
spec:
  resources:
  - {group: example.org, name: wheels, schema: today.wheels.example.org, storage: {crd: {}}}
`

// An API that is claimed from another export is discovered although no mailbox binds it.
func TestDiscoverAClaimOnAnotherExport(t *testing.T) {
	tier.Thorough(t)
	f := newTestHub(t)
	f.slice.set(f.first.url)
	_, err := framework.CreateWorkspace(t.Context(), f.first.Config, "root", "wheels", "")
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(framework.Apply(t.Context(), f.first.Workspace("root:wheels"), wheels)).To(Succeed())
	maker, err := f.first.client("root:wheels")
	f.Expect(err).NotTo(HaveOccurred())
	var export apisv1alpha2.APIExport
	f.eventually(func(g Gomega) {
		g.Expect(maker.Get(t.Context(), types.NamespacedName{Name: "example.org"}, &export)).To(Succeed())
		g.Expect(export.Status.IdentityHash).NotTo(BeEmpty())
	}).Should(Succeed())
	discover := func(version, resource, kind string) (metav1.APIResource, error) {
		return f.hub.Discover(t.Context(), schema.GroupVersion{Group: "example.org", Version: version}, resource, kind)
	}
	f.eventually(f.hub.HasSynced).Should(BeTrue())
	_, err = discover("", "wheels", "")
	f.Expect(err).To(MatchError(mailboxes.ErrNotServed))

	// kcp makes no mailbox Ready while the export claims an API that no workspace binds.
	t.Cleanup(func() {
		f.Expect(f.first.changeExport(context.WithoutCancel(t.Context()), func(export *apisv1alpha2.APIExport) {
			export.Spec.PermissionClaims = slices.DeleteFunc(export.Spec.PermissionClaims, func(claim apisv1alpha2.PermissionClaim) bool { return claim.Group == "example.org" })
		})).To(Succeed())
	})
	f.Expect(f.first.claim(t.Context(), schema.GroupResource{Group: "example.org", Resource: "wheels"}, export.Status.IdentityHash)).To(Succeed())
	f.eventually(func() error {
		_, err := discover("", "wheels", "")
		return err
	}).Should(Succeed())
	for name, ask := range map[string]func() (metav1.APIResource, error){
		"by its name": func() (metav1.APIResource, error) { return discover("", "wheels", "") },
		"by its kind": func() (metav1.APIResource, error) { return discover("", "", "Wheel") },
		"by version":  func() (metav1.APIResource, error) { return discover("v2", "wheels", "") },
	} {
		found, err := ask()
		f.Expect(err).NotTo(HaveOccurred(), name)
		f.Expect(found.Group).To(Equal("example.org"), name)
		f.Expect(found.Version).To(Equal("v2"), name)
		f.Expect(found.Name).To(Equal("wheels"), name)
		f.Expect(found.Kind).To(Equal("Wheel"), name)
		f.Expect(found.Namespaced).To(BeTrue(), name)
	}
	status, err := discover("", "wheels/status", "")
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(status.Name).To(Equal("wheels/status"))
	_, err = discover("v3", "wheels", "")
	f.Expect(err).To(MatchError(mailboxes.ErrNotServed))
}
