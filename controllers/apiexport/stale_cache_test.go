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

package apiexport

import (
	"context"
	"errors"
	"slices"
	"testing"

	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
)

// fakeProvider is a provider workspace whose API server and cache may differ: writes go to the server, and the client of the cluster reads
// the cache.
type fakeProvider struct {
	cluster.Cluster
	server client.WithWatch
	// cached are the exports as the cache shows them; the server's content is shown for all other objects.
	cached map[string]*apisv1alpha2.APIExport
	// direct is the error of reads past the cache.
	direct error
	// refusesClaim and refusesSchema are the claim in the workload export and the new schema that kcp refuses
	// with the error refusal.
	refusesClaim, refusesSchema string
	refusal                     error
}

func newFakeProvider(t *testing.T, objects ...client.Object) *fakeProvider {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{apisv1alpha1.AddToScheme, apisv1alpha2.AddToScheme, synchubv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	p := &fakeProvider{cached: map[string]*apisv1alpha2.APIExport{}}
	p.server = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, to client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if export, ok := object.(*apisv1alpha2.APIExport); ok && findClaim(&export.Spec, schema.GroupResource{Resource: p.refusesClaim}) != nil {
				return p.refusal
			}
			return to.Patch(ctx, object, patch, options...)
		},
		Create: func(ctx context.Context, to client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if object.GetName() == p.refusesSchema {
				return p.refusal
			}
			return to.Create(ctx, object, options...)
		},
	}).Build()
	return p
}

func (p *fakeProvider) GetClient() client.Client {
	return interceptor.NewClient(p.server, interceptor.Funcs{
		Get: func(ctx context.Context, from client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if cached := p.cached[key.Name]; cached != nil {
				cached.DeepCopyInto(object.(*apisv1alpha2.APIExport))
				return nil
			}
			return from.Get(ctx, key, object, options...)
		},
	})
}

func (p *fakeProvider) GetAPIReader() client.Reader { return directReader{p} }

// directReader reads past the cache.
type directReader struct{ provider *fakeProvider }

func (r directReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if r.provider.direct != nil {
		return r.provider.direct
	}
	return r.provider.server.Get(ctx, key, object, options...)
}

func (directReader) List(context.Context, client.ObjectList, ...client.ListOption) error {
	panic("the mirror lists nothing")
}

func exportNamed(name string, entries ...string) *apisv1alpha2.APIExport {
	return &apisv1alpha2.APIExport{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: *specOf(entries...)}
}

// entriesOnServer returns the resources that the workload export has on the server.
func (p *fakeProvider) entriesOnServer(t *testing.T) (entries []string) {
	t.Helper()
	var export apisv1alpha2.APIExport
	if err := p.server.Get(t.Context(), client.ObjectKey{Name: "workload"}, &export); err != nil {
		t.Fatal(err)
	}
	for _, exported := range export.Spec.Resources {
		entries = append(entries, schema.GroupResource{Group: exported.Group, Resource: exported.Name}.String()+"="+exported.Schema)
	}
	for _, claim := range export.Spec.PermissionClaims {
		entries = append(entries, schema.GroupResource{Group: claim.Group, Resource: claim.Resource}.String())
	}
	slices.Sort(entries)
	return entries
}

// The cache of a new leader may lack an entry of the mailbox export that the previous leader added. No workload
// workspace may lose the API because of that: its objects would look deleted.
func TestMirrorReadsTheServerBeforeItRemoves(t *testing.T) {
	workload := []string{"as.a.io=wa1", "configmaps"}
	for name, test := range map[string]struct {
		// server and cached are the entries of the mailbox export.
		server, cached []string
		direct         error
		want           []string
		err            string
	}{
		"the cache lacks a schema":       {server: []string{"as.a.io=a1", "configmaps"}, cached: []string{"configmaps"}, want: workload},
		"the cache lacks a claim":        {server: []string{"as.a.io=a1", "configmaps"}, cached: []string{"as.a.io=a1"}, want: workload},
		"the cache lacks all":            {server: []string{"as.a.io=a1", "configmaps", "secrets"}, want: []string{"as.a.io=wa1", "configmaps", "secrets"}},
		"withdrawn":                      {server: []string{"configmaps"}, cached: []string{"configmaps"}, want: []string{"configmaps"}},
		"the server cannot be read":      {server: []string{"configmaps"}, cached: []string{"configmaps"}, direct: errors.New("no answer"), want: workload, err: "keeps its entries: no answer"},
		"nothing is removed, so no read": {server: []string{"as.a.io=a1", "configmaps", "secrets"}, cached: []string{"as.a.io=a1", "configmaps", "secrets"}, direct: errors.New("no answer"), want: []string{"as.a.io=wa1", "configmaps", "secrets"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			provider := newFakeProvider(t, exportNamed("mailbox", test.server...), exportNamed("workload", workload...))
			provider.direct = test.direct
			controller := &Controller{Options: Options{Provider: provider, Export: "mailbox", WorkloadExport: "workload"}}
			_, err := controller.mirrorExport(t.Context(), exportNamed("mailbox", test.cached...))
			if test.err == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(test.err)))
			}
			g.Expect(provider.entriesOnServer(t)).To(Equal(test.want))
		})
	}
}

// A stale cache of the workload export causes no loss either: the patch is a conflict.
func TestMirrorDoesNotOverwriteAChange(t *testing.T) {
	g := NewWithT(t)
	provider := newFakeProvider(t, exportNamed("mailbox", "configmaps", "secrets"), exportNamed("workload", "configmaps"))
	stale := exportNamed("workload")
	stale.ResourceVersion = "1"
	provider.cached["workload"] = stale
	controller := &Controller{Options: Options{Provider: provider, Export: "mailbox", WorkloadExport: "workload"}}
	_, err := controller.mirrorExport(t.Context(), exportNamed("mailbox", "configmaps", "secrets"))
	g.Expect(err).To(MatchError(ContainSubstring("cannot update the APIExport workload")))
	g.Expect(provider.entriesOnServer(t)).To(Equal([]string{"configmaps"}))
}

// An entry that kcp refuses in the workload export blocks no other entry there, and is reported.
func TestMirrorOfRefusedEntries(t *testing.T) {
	resource := schema.GroupResource{Resource: "secrets"}
	for name, refusal := range map[string]error{
		"forbidden":     apierrors.NewForbidden(resource, "x", nil),
		"invalid":       apierrors.NewInvalid(schema.GroupKind{Kind: "APIExport"}, "x", nil),
		"a bad request": apierrors.NewBadRequest("no"),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			mailbox := []string{"as.a.k8s.io=a1", "bs.b.io=b1", "configmaps", "secrets"}
			a, b := &apisv1alpha1.APIResourceSchema{}, &apisv1alpha1.APIResourceSchema{}
			a.Name, b.Name = "a1", "b1"
			a.Annotations = map[string]string{apiextensionsv1.KubeAPIApprovedAnnotation: "unapproved", "other": "x"}
			provider := newFakeProvider(t, exportNamed("mailbox", mailbox...), exportNamed("workload"), a, b)
			provider.refusesClaim, provider.refusesSchema, provider.refusal = "secrets", "wb1", refusal
			controller := &Controller{Options: Options{Provider: provider, Export: "mailbox", WorkloadExport: "workload"}}
			refused, err := controller.mirrorExport(t.Context(), exportNamed("mailbox", mailbox...))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(refused).To(And(HaveLen(2), HaveKey(resource), HaveKey(schema.GroupResource{Group: "b.io", Resource: "bs"})))
			g.Expect(provider.entriesOnServer(t)).To(Equal([]string{"as.a.k8s.io=wa1", "configmaps"}), "an export must not name a missing schema")
			var copied apisv1alpha1.APIResourceSchema
			g.Expect(provider.server.Get(t.Context(), client.ObjectKey{Name: "wa1"}, &copied)).To(Succeed())
			g.Expect(copied.Annotations).To(Equal(map[string]string{apiextensionsv1.KubeAPIApprovedAnnotation: "unapproved"}))
		})
	}
	// One patch is enough if kcp refuses only a schema. A failure is not a refusal, and a copy that another
	// replica has created in between is not a failure.
	g := NewWithT(t)
	provider := newFakeProvider(t, exportNamed("mailbox", "bs.b.io=b1"), exportNamed("workload"), &apisv1alpha1.APIResourceSchema{ObjectMeta: metav1.ObjectMeta{Name: "b1"}})
	controller := &Controller{Options: Options{Provider: provider, Export: "mailbox", WorkloadExport: "workload"}}
	provider.refusesSchema, provider.refusal = "wb1", apierrors.NewForbidden(resource, "wb1", nil)
	_, err := controller.mirrorExport(t.Context(), exportNamed("mailbox", "bs.b.io=b1", "configmaps"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(provider.entriesOnServer(t)).To(Equal([]string{"configmaps"}))
	provider.refusesSchema, provider.refusal = "wb1", apierrors.NewAlreadyExists(resource, "wb1")
	g.Expect(controller.ensureCopy(t.Context(), "b1", schema.GroupResource{Group: "b.io", Resource: "bs"})).To(Succeed())
	provider.refusal = apierrors.NewInternalError(errors.New("no"))
	_, err = controller.mirrorExport(t.Context(), exportNamed("mailbox", "bs.b.io=b1"))
	g.Expect(err).To(MatchError(ContainSubstring("cannot create the APIResourceSchema wb1")))
}

// The workload export gets the original of a twin, with the content of the twin's schema.
func TestMirrorOfATwin(t *testing.T) {
	g := NewWithT(t)
	const twin = "v1.apiservices.denatured.synchub.dev"
	mailbox := exportNamed("mailbox", "apiservices.denatured.synchub.dev="+twin, "roles.denatured.synchub.dev=v1.roles.denatured.synchub.dev")
	source := &apisv1alpha1.APIResourceSchema{ObjectMeta: metav1.ObjectMeta{Name: twin}}
	source.Spec.Group, source.Spec.Names.Kind = "denatured.synchub.dev", "APIService"
	provider := newFakeProvider(t, mailbox, exportNamed("workload"), source)
	controller := &Controller{Options: Options{Provider: provider, Export: "mailbox", WorkloadExport: "workload"}}
	refused, err := controller.mirrorExport(t.Context(), mailbox)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(refused).To(BeEmpty())
	g.Expect(provider.entriesOnServer(t)).To(Equal([]string{"apiservices.apiregistration.k8s.io=wv1.apiservices.apiregistration.k8s.io", "roles.rbac.authorization.k8s.io"}))
	var copied apisv1alpha1.APIResourceSchema
	g.Expect(provider.server.Get(t.Context(), client.ObjectKey{Name: "wv1.apiservices.apiregistration.k8s.io"}, &copied)).To(Succeed())
	g.Expect(copied.Spec.Group + " " + copied.Spec.Names.Kind).To(Equal("apiregistration.k8s.io APIService"))
	g.Expect(copied.Annotations).To(HaveKey(apiextensionsv1.KubeAPIApprovedAnnotation), "kcp refuses a schema of a group of Kubernetes without it")

	made := &exportPlan{resources: []*resourcePlan{{entry: &exportEntry{GroupResource: schema.GroupResource{Group: "denatured.synchub.dev", Resource: "apiservices"}, schema: twin}}}}
	g.Expect(made.markNotPlaceable(map[schema.GroupResource]error{{Group: "apiregistration.k8s.io", Resource: "apiservices"}: errors.New("no")})).To(Succeed())
	g.Expect(made.resources[0].notPlaceable).To(HaveLen(1))
}

// fakeCounter reports that the hub's finalizer is removed from all mailbox objects, or not.
type fakeCounter struct {
	Counter
	unpublished bool
}

func (c *fakeCounter) IsUnpublished(schema.GroupResource) bool { return c.unpublished }

// A PublishedResource keeps the hub's finalizer while mailbox objects wait for their targets: afterwards nobody
// would remove the objects' finalizers.
func TestFinalizerOfAPublishedResource(t *testing.T) {
	for name, test := range map[string]struct {
		terminating, has, waits bool
		schemaName              string
		duplicate, unpublished  bool
		want                    bool
	}{
		"nothing waits":    {want: false},
		"objects may wait": {waits: true, want: true},
		"they do not any more, but other ones may":        {has: true, want: true},
		"terminating, and objects wait":                   {terminating: true, has: true, schemaName: "s", want: true},
		"terminating, and no object waits":                {terminating: true, has: true, schemaName: "s", unpublished: true, want: false},
		"terminating, and mailboxes never had its schema": {terminating: true, has: true, want: false},
		"terminating, and an older one publishes the API": {terminating: true, has: true, schemaName: "s", duplicate: true, want: false},
		"terminating with a foreign finalizer":            {terminating: true, waits: true, schemaName: "s", want: false},
		"terminating, objects wait, and the plan too":     {terminating: true, has: true, waits: true, schemaName: "s", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			resource := &synchubv1alpha1.PublishedResource{ObjectMeta: metav1.ObjectMeta{Name: "a", Finalizers: []string{"example.org/other"}}}
			resource.Status.SchemaName = test.schemaName
			if test.has {
				resource.Finalizers = append(resource.Finalizers, Finalizer)
			}
			hosting := newFakeProvider(t, resource)
			if test.terminating {
				g.Expect(hosting.server.Delete(t.Context(), resource.DeepCopy())).To(Succeed())
			}
			stored := &synchubv1alpha1.PublishedResource{}
			g.Expect(hosting.server.Get(t.Context(), client.ObjectKeyFromObject(resource), stored)).To(Succeed())
			candidate := &resourcePlan{published: stored, synced: &plan.Resource{WaitForTarget: test.waits}}
			if test.duplicate {
				candidate.notExported = &problem{reason: ReasonDuplicate}
			}
			controller := &Controller{Options: Options{Hosting: hosting.server, Counter: &fakeCounter{unpublished: test.unpublished}}}
			g.Expect(controller.reconcileFinalizer(t.Context(), candidate)).To(Succeed())
			after := &synchubv1alpha1.PublishedResource{}
			g.Expect(hosting.server.Get(t.Context(), client.ObjectKeyFromObject(resource), after)).To(Succeed())
			g.Expect(slices.Contains(after.Finalizers, Finalizer)).To(Equal(test.want))
			g.Expect(after.Finalizers).To(ContainElement("example.org/other"))
		})
	}
}
