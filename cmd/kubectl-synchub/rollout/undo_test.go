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

package rollout

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/test/fixtures"
)

// fakeWorkspace stands for a workload workspace with objects, which a user reads and changes with the user's own rights.
type fakeWorkspace struct {
	*cli.Reader
	objects *dynamicfake.FakeDynamicClient
}

func newFakeWorkspace(t *testing.T, objects ...string) *fakeWorkspace {
	t.Helper()
	stored := make([]runtime.Object, 0, len(objects))
	for _, text := range objects {
		stored = append(stored, fixtures.Object(t, text))
	}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	w := &fakeWorkspace{objects: dynamicfake.NewSimpleDynamicClient(clientgoscheme.Scheme, stored...)}
	shop := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": "shop"}}}
	metadataScheme := metadatafake.NewTestScheme()
	_ = metav1.AddMetaToScheme(metadataScheme)
	w.Reader = &cli.Reader{Objects: w.objects, Mapper: mapper, Metadata: metadatafake.NewSimpleMetadataClient(metadataScheme, shop)}
	return w
}

// writes returns the verbs and names of all requests that change an object.
func (w *fakeWorkspace) writes() (all []string) {
	for _, action := range w.objects.Actions() {
		if action, ok := action.(clienttesting.CreateAction); ok {
			written := action.GetObject().(*unstructured.Unstructured)
			all = append(all, fmt.Sprintf("%s %s %s/%s", action.GetVerb(), action.GetResource().Resource, action.GetNamespace(), written.GetName()))
		}
	}
	slices.Sort(all)
	return all
}

// revisionOf returns a PlacementRevision with objects.
func revisionOf(t *testing.T, number int64, objects ...string) edgev2alpha1.PlacementRevision {
	t.Helper()
	made := edgev2alpha1.PlacementRevision{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("shop-%d", number)}, Revision: number}
	for _, text := range objects {
		raw, err := fixtures.Object(t, text).MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		made.Objects = append(made.Objects, runtime.RawExtension{Raw: raw})
	}
	return made
}

// shopPlacement selects the objects of the namespaces of the team shop.
func shopPlacement(t *testing.T) *rules.Placement {
	t.Helper()
	compiled, err := rules.Compile(&edgev2alpha1.EdgePlacement{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: edgev2alpha1.EdgePlacementSpec{
		Downsync: []edgev2alpha1.DownsyncObjectTest{{NamespaceSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"team": "shop"}}}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func newUndo(dryRun string) (*undoOptions, *bytes.Buffer) {
	var out bytes.Buffer
	options := &undoOptions{InventoryOptions: cli.NewInventoryOptions(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &bytes.Buffer{}})}
	options.DryRun = dryRun
	return options, &out
}

const (
	pricesNow    = "{apiVersion: v1, kind: ConfigMap, metadata: {name: prices, namespace: shop, uid: u1, resourceVersion: '7', labels: {new: label}}, data: {bread: '3'}}"
	pricesBefore = "{apiVersion: v1, kind: ConfigMap, metadata: {name: prices, namespace: shop}, data: {bread: '2'}}"
	hoursBefore  = "{apiVersion: v1, kind: ConfigMap, metadata: {name: hours, namespace: shop}, data: {monday: closed}}"
)

// Who may write PlacementRevisions must not get anything through a user with more rights: only objects that the EdgePlacement selects are
// restored, and never a Secret.
func TestUndoOfAForgedRevision(t *testing.T) {
	for name, forged := range map[string]string{ //nolint:gosec // made up
		"a new Secret":              "{apiVersion: v1, kind: Secret, metadata: {name: forged, namespace: shop}, data: {password: Zm9yZ2Vk}}",
		"a Secret that is there":    "{apiVersion: v1, kind: Secret, metadata: {name: password, namespace: shop}, data: {password: Zm9yZ2Vk}}",
		"another namespace":         "{apiVersion: v1, kind: ConfigMap, metadata: {name: forged, namespace: kube-system}}",
		"an unknown namespace":      "{apiVersion: v1, kind: ConfigMap, metadata: {name: forged, namespace: unknown}}",
		"a cluster-scoped object":   "{apiVersion: v1, kind: Namespace, metadata: {name: forged, labels: {team: shop}}}",
		"what kcp makes itself":     "{apiVersion: v1, kind: ConfigMap, metadata: {name: kube-root-ca.crt, namespace: shop}}",
		"a copy of another cluster": "{apiVersion: v1, kind: ConfigMap, metadata: {name: forged, namespace: shop, annotations: {synchub.dev/mark: '{}'}}}",
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newFakeWorkspace(t, pricesNow, "{apiVersion: v1, kind: Secret, metadata: {name: password, namespace: shop}, data: {password: b3du}}")
			undo, _ := newUndo(cli.DryRunNone)
			found, err := undo.plan(t.Context(), w.Reader, shopPlacement(t), []edgev2alpha1.PlacementRevision{revisionOf(t, 1, forged, pricesBefore)})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found.objects).To(HaveLen(1))
			g.Expect(found.objects[0].object.GetName()).To(Equal("prices"))
		})
	}
}

// An undo creates what is missing and changes what differs, at the version that it has compared.
func TestUndoRestores(t *testing.T) {
	for dryRun, test := range map[string]struct {
		dryRun []string
		writes []string
	}{
		cli.DryRunNone:   {nil, []string{"create configmaps shop/hours", "update configmaps shop/prices"}},
		cli.DryRunServer: {[]string{metav1.DryRunAll}, []string{"create configmaps shop/hours", "update configmaps shop/prices"}},
		cli.DryRunClient: {nil, nil},
	} {
		t.Run(dryRun, func(t *testing.T) {
			g := NewWithT(t)
			w := newFakeWorkspace(t, pricesNow)
			undo, out := newUndo(dryRun)
			found, err := undo.plan(t.Context(), w.Reader, shopPlacement(t), []edgev2alpha1.PlacementRevision{revisionOf(t, 1, pricesBefore, hoursBefore)})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(undo.restoreAll(t.Context(), found.objects)).To(Succeed())
			g.Expect(w.writes()).To(Equal(test.writes))
			for _, action := range w.objects.Actions() {
				switch action := action.(type) {
				case clienttesting.UpdateActionImpl:
					g.Expect(action.UpdateOptions.DryRun).To(Equal(test.dryRun))
					updated := action.Object.(*unstructured.Unstructured)
					g.Expect(updated.GetResourceVersion()).To(Equal("7"), "a change that the command has not compared is a conflict")
					g.Expect(updated.GetUID()).To(BeEquivalentTo("u1"))
					g.Expect(updated.GetLabels()).To(BeEmpty())
					g.Expect(updated.Object["data"]).To(Equal(map[string]any{"bread": "2"}))
				case clienttesting.CreateActionImpl:
					g.Expect(action.CreateOptions.DryRun).To(Equal(test.dryRun))
				}
			}
			g.Expect(out.String()).To(And(ContainSubstring("configmap/prices restored"), ContainSubstring("configmap/hours created")))
		})
	}
}

// A dry run shows how the objects would differ, and for a program only the objects.
func TestUndoShowsDifferences(t *testing.T) {
	const (
		present = "{apiVersion: v1, kind: ConfigMap, metadata: {name: prices, namespace: shop, uid: u1, resourceVersion: '7', generation: 3, annotations: {synchub.dev/rollout: x}}, data: {bread: '3'}}"
		change  = " data:\n-  bread: \"3\"\n+  bread: \"2\"\n"
		added   = "+  monday: closed\n"
	)
	for name, test := range map[string]struct {
		dryRun, format string
		parts, not     []string
	}{
		"on the client":          {cli.DryRunClient, "", []string{"configmap/prices restored (client dry run)\nconfigmap/hours created (client dry run)\ndiff ", change, added}, []string{"defaulted", "resourceVersion", "u1"}},
		"on the server":          {cli.DryRunServer, "", []string{"configmap/prices restored (server dry run)\nconfigmap/hours created (server dry run)\ndiff ", change, added, "+  defaulted: "}, []string{"resourceVersion", "u1"}},
		"on the server, as YAML": {cli.DryRunServer, "yaml", []string{"bread: \"2\"", "monday: closed"}, []string{"diff ", "\n+"}},
		"names":                  {cli.DryRunServer, "name", []string{"configmap/prices"}, []string{"diff ", "\n+"}},
		"no dry run":             {cli.DryRunNone, "", []string{"configmap/prices restored\nconfigmap/hours created\n"}, []string{"diff ", "\n+"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newFakeWorkspace(t, present)
			// The server completes what it is given.
			w.objects.PrependReactor("*", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
				if written, ok := action.(clienttesting.CreateAction); ok {
					completed := written.GetObject().(*unstructured.Unstructured).DeepCopy()
					g.Expect(unstructured.SetNestedField(completed.Object, "yes", "data", "defaulted")).To(Succeed())
					return true, completed, nil
				}
				return false, nil, nil
			})
			undo, out := newUndo(test.dryRun)
			*undo.Output.OutputFormat = test.format
			g.Expect(undo.Complete()).To(Succeed())
			found, err := undo.plan(t.Context(), w.Reader, shopPlacement(t), []edgev2alpha1.PlacementRevision{revisionOf(t, 1, pricesBefore, hoursBefore)})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(undo.restoreAll(t.Context(), found.objects)).To(Succeed())
			for _, part := range test.parts {
				g.Expect(out.String()).To(ContainSubstring(part))
			}
			for _, part := range test.not {
				g.Expect(out.String()).NotTo(ContainSubstring(part))
			}
		})
	}
}

// Without a number the newest revision that differs counts, with a number that one.
func TestUndoChoosesARevision(t *testing.T) {
	first, second := revisionOf(t, 1, hoursBefore), revisionOf(t, 2, pricesBefore)
	present := revisionOf(t, 3, "{apiVersion: v1, kind: ConfigMap, metadata: {name: prices, namespace: shop, labels: {new: label}}, data: {bread: '3'}}")
	for name, test := range map[string]struct {
		revisions []edgev2alpha1.PlacementRevision
		number    int64
		want      int64
		objects   int
		err       string
	}{
		"the newest that differs":        {revisions: []edgev2alpha1.PlacementRevision{first, second, present}, want: 2, objects: 1},
		"a number":                       {revisions: []edgev2alpha1.PlacementRevision{first, second, present}, number: 1, want: 1, objects: 1},
		"the number of the present one":  {revisions: []edgev2alpha1.PlacementRevision{first, second, present}, number: 3, want: 3},
		"none differs":                   {revisions: []edgev2alpha1.PlacementRevision{present}, want: 3},
		"an unknown number":              {revisions: []edgev2alpha1.PlacementRevision{first}, number: 7, err: "there is no revision 7"},
		"no revision":                    {err: "the hub keeps no revision"},
		"one that cannot be read":        {revisions: []edgev2alpha1.PlacementRevision{{ObjectMeta: metav1.ObjectMeta{Name: "odd"}, Objects: []runtime.RawExtension{{Raw: []byte("{")}}}}, err: "the PlacementRevision odd cannot be read"},
		"an API that is not there":       {revisions: []edgev2alpha1.PlacementRevision{revisionOf(t, 1, "{apiVersion: example.org/v1, kind: Widget, metadata: {name: w, namespace: shop}}")}, err: "does not have the API of Widget w any more"},
		"an object that cannot be read":  {revisions: []edgev2alpha1.PlacementRevision{revisionOf(t, 1, "{apiVersion: v1, kind: ConfigMap, metadata: {name: refused, namespace: shop}}")}, err: "cannot compare ConfigMap refused"},
		"one before it, without reading": {revisions: []edgev2alpha1.PlacementRevision{revisionOf(t, 1, "{apiVersion: v1, kind: ConfigMap, metadata: {name: refused, namespace: shop}}"), second}, want: 2, objects: 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newFakeWorkspace(t, pricesNow)
			w.objects.PrependReactor("get", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
				return action.(clienttesting.GetAction).GetName() == "refused", nil, fmt.Errorf("refused")
			})
			undo, _ := newUndo(cli.DryRunNone)
			undo.toRevision = test.number
			found, err := undo.plan(t.Context(), w.Reader, shopPlacement(t), test.revisions)
			if test.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found.revision).To(Equal(test.want))
			g.Expect(found.objects).To(HaveLen(test.objects))
		})
	}
}

// A write that fails names its object, and is not reported as done.
func TestUndoReportsAFailure(t *testing.T) {
	w := newFakeWorkspace(t, pricesNow)
	w.objects.PrependReactor("update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, fmt.Errorf("it changed") })
	undo, out := newUndo(cli.DryRunNone)
	found, err := undo.plan(t.Context(), w.Reader, shopPlacement(t), []edgev2alpha1.PlacementRevision{revisionOf(t, 1, pricesBefore)})
	if err != nil {
		t.Fatal(err)
	}
	if err := undo.restoreAll(t.Context(), found.objects); err == nil || !strings.Contains(err.Error(), "cannot restore ConfigMap prices: it changed") || out.Len() > 0 {
		t.Errorf("got %v, and printed %q", err, out)
	}
}

func TestHistory(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	web := "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, annotations: {kubernetes.io/change-cause: faster}}, spec: {template: {spec: {initContainers: [{name: i, image: 'init:1'}], containers: [{name: a, image: 'web:2'}, {name: b, image: 'web:2'}]}}}}"
	// The newest revision took the place of the oldest one, so its object is the oldest.
	revisions := []edgev2alpha1.PlacementRevision{revisionOf(t, 5, pricesBefore), revisionOf(t, 6, pricesBefore, web), revisionOf(t, 7, web)}
	for i, completed := range []time.Duration{time.Hour, time.Minute} {
		revisions[i].CreationTimestamp = metav1.NewTime(now.Add(-time.Duration(i+1) * 24 * time.Hour))
		revisions[i].CompletedAt = &metav1.Time{Time: now.Add(-completed)}
	}
	for revision, want := range map[int64]string{
		0: "REVISION OBJECTS AGE 5 1 60m 6 2 60s 7 1 <unknown>",
		6: "KIND NAME IMAGES CHANGE-CAUSE ConfigMap shop/prices Deployment shop/web init:1,web:2 faster",
	} {
		streams, _, out, _ := genericiooptions.NewTestIOStreams()
		options := &historyOptions{WorkspaceOptions: cli.NewWorkspaceOptions(streams), revision: revision}
		if err := options.print("shop", revisions, now); err != nil || strings.Join(strings.Fields(out.String()), " ") != want {
			t.Errorf("revision %d: %v, it prints\n%s", revision, err, out)
		}
	}
	options := &historyOptions{WorkspaceOptions: cli.NewWorkspaceOptions(genericiooptions.NewTestIOStreamsDiscard()), revision: 4}
	if err := options.print("shop", revisions, now); err == nil || !strings.Contains(err.Error(), "there is no revision 4") {
		t.Errorf("got %v", err)
	}
}
