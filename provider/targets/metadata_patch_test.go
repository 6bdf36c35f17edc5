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

package targets

import (
	"net/http"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/synchub-dev/synchub/provider/targets/metadatapatch"
)

func TestReplaceFields(t *testing.T) {
	t.Parallel()
	forEachKind(t, func(t *testing.T, k kind, connection *Connection, client dynamic.ResourceInterface, namespace string) {
		g := NewWithT(t)
		ctx := t.Context()
		read, err := client.Create(ctx, k.object(namespace, "replaced"), metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		values := map[string]any{"/metadata/annotations": map[string]any{"a": "1"}}
		other, outdated := read.DeepCopy(), read.DeepCopy()
		other.SetUID("11111111-2222-3333-4444-555555555555")
		outdated.SetResourceVersion("1")
		for _, wrong := range []*unstructured.Unstructured{other, outdated} {
			err := connection.Objects.ReplaceFields(ctx, k.resource, wrong, values)
			g.Expect(apierrors.IsConflict(err) || apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		}
		g.Expect(client.Get(ctx, "replaced", metav1.GetOptions{})).To(Equal(read))
		g.Expect(connection.Objects.ReplaceFields(ctx, k.resource, read, values)).To(Succeed())
		g.Expect(values).To(HaveLen(1))
		replaced, err := client.Get(ctx, "replaced", metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(replaced.GetAnnotations()).To(Equal(map[string]string{"a": "1"}))
	})
}

func TestPatchMetadata(t *testing.T) {
	t.Parallel()
	forEachKind(t, func(t *testing.T, k kind, connection *Connection, client dynamic.ResourceInterface, namespace string) {
		g := NewWithT(t)
		ctx := t.Context()
		bare := k.object(namespace, "edited")
		bare.SetAnnotations(nil)
		object, err := client.Create(ctx, bare, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		edit := func(uid types.UID, edits metadatapatch.Patch) (*unstructured.Unstructured, error) {
			return connection.Objects.PatchMetadata(ctx, k.resource, keyOf(object), uid, edits)
		}
		unchanged := func() {
			t.Helper()
			g.Expect(client.Get(ctx, "edited", metav1.GetOptions{})).To(Equal(object))
		}

		// Without labels or annotations to remove, nothing is written.
		_, err = edit(object.GetUID(), metadatapatch.Patch{RemoveLabels: []string{"a"}, RemoveAnnotations: []string{"example.org/a_b"}})
		g.Expect(err).NotTo(HaveOccurred())
		unchanged()

		_, err = edit("11111111-2222-3333-4444-555555555555", metadatapatch.Patch{SetLabels: map[string]string{"a": "1"}})
		g.Expect(apierrors.IsInvalid(err) || apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
		_, err = edit(object.GetUID(), metadatapatch.Patch{SetLabels: map[string]string{"a": "1"}, ResourceVersion: "1"})
		g.Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
		unchanged()

		edited, err := edit(object.GetUID(), metadatapatch.Patch{
			SetLabels:         map[string]string{"a": "1", "b": "1"},
			SetAnnotations:    map[string]string{"example.org/a_b": "1", "kept": "1"},
			RemoveLabels:      []string{"b", "c"},
			RemoveAnnotations: []string{"missing"},
			ResourceVersion:   object.GetResourceVersion(),
		})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(client.Get(ctx, "edited", metav1.GetOptions{})).To(Equal(edited))
		g.Expect(edited.GetLabels()).To(Equal(map[string]string{"a": "1", "b": "1"}), "a label that is both set and removed is set")
		g.Expect(edited.GetAnnotations()).To(Equal(map[string]string{"example.org/a_b": "1", "kept": "1"}))

		edited, err = edit(object.GetUID(), metadatapatch.Patch{RemoveLabels: []string{"a"}, RemoveAnnotations: []string{"example.org/a_b"}})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(edited.GetLabels()).To(Equal(map[string]string{"b": "1"}))
		g.Expect(edited.GetAnnotations()).To(Equal(map[string]string{"kept": "1"}))

		g.Expect(client.Delete(ctx, "edited", metav1.DeleteOptions{})).To(Succeed())
		_, err = edit(object.GetUID(), metadatapatch.Patch{SetLabels: map[string]string{"a": "1"}})
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
	})
}

// Another manager's fields become fields of our apply, so that they are removed when we omit them.
func TestPatchMetadataOfManagedFields(t *testing.T) {
	t.Parallel()
	forEachKind(t, func(t *testing.T, k kind, connection *Connection, client dynamic.ResourceInterface, namespace string) {
		g := NewWithT(t)
		ctx := t.Context()
		object := k.object(namespace, "taken-over")
		created, err := client.Create(ctx, object, metav1.CreateOptions{FieldManager: "other"})
		g.Expect(err).NotTo(HaveOccurred())
		entries := created.GetManagedFields()
		g.Expect(entries).To(HaveLen(1))
		entries[0].Manager, entries[0].Operation = fieldManager, metav1.ManagedFieldsOperationApply

		_, err = connection.Objects.PatchMetadata(ctx, k.resource, keyOf(object), created.GetUID(), metadatapatch.Patch{ManagedFields: entries, ResourceVersion: "1"})
		g.Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
		taken, err := connection.Objects.PatchMetadata(ctx, k.resource, keyOf(object), created.GetUID(), metadatapatch.Patch{ManagedFields: entries, ResourceVersion: created.GetResourceVersion()})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(managersOf(taken)).To(Equal([]string{"Apply by " + fieldManager}))

		object.SetAnnotations(map[string]string{kept: "1"})
		applied, err := connection.Objects.Apply(ctx, k.resource, object, created.GetUID())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(applied.GetAnnotations()).To(Equal(map[string]string{kept: "1"}))
	})
}

// An edit without a fence is never sent.
func TestPatchMetadataNeedsAFence(t *testing.T) {
	g := NewWithT(t)
	var sent atomic.Int64
	connection := connectTo(t, newProxy(t, steady(t), func(request *http.Request) {
		if request.Method == http.MethodPatch && !request.URL.Query().Has("dryRun") {
			sent.Add(1)
		}
	}))
	key := types.NamespacedName{Namespace: "default", Name: "a"}
	_, err := connection.Objects.PatchMetadata(t.Context(), configMaps, key, "", metadatapatch.Patch{SetLabels: map[string]string{"a": "1"}})
	g.Expect(err).To(MatchError(ContainSubstring("default/a")))
	_, err = connection.Objects.PatchMetadata(t.Context(), configMaps, key, "uid", metadatapatch.Patch{ManagedFields: []metav1.ManagedFieldsEntry{}})
	g.Expect(err).To(MatchError(ContainSubstring("resourceVersion")))
	g.Expect(sent.Load()).To(BeZero())
}

func TestDryRuns(t *testing.T) {
	t.Parallel()
	target := steady(t)
	connection := connect(t, target)
	admin, namespace := administrator(t, target), newNamespace(t, target)
	for _, k := range kinds {
		t.Run(k.kind, func(t *testing.T) {
			g := NewWithT(t)
			ctx := t.Context()
			client := k.in(admin, namespace)
			object := k.object(namespace, "tried")
			g.Expect(connection.Objects.DryRunCreate(ctx, k.resource, object)).To(Succeed())
			_, err := client.Get(ctx, "tried", metav1.GetOptions{})
			g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
			_, err = connection.Objects.DryRunApply(ctx, k.resource, object, "11111111-2222-3333-4444-555555555555")
			g.Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)

			created, err := client.Create(ctx, object, metav1.CreateOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(connection.Objects.DryRunCreate(ctx, k.resource, object)).To(Succeed(), "a taken name is no error")
			wrong := object.DeepCopy()
			wrong.SetLabels(map[string]string{"a": "not/a/value"})
			g.Expect(apierrors.IsInvalid(connection.Objects.DryRunCreate(ctx, k.resource, wrong))).To(BeTrue())

			changed := object.DeepCopy()
			changed.SetAnnotations(map[string]string{kept: "changed"})
			applied, err := connection.Objects.DryRunApply(ctx, k.resource, changed, created.GetUID())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(applied.GetAnnotations()).To(HaveKeyWithValue(kept, "changed"))
			_, err = connection.Objects.DryRunApply(ctx, k.resource, changed, "11111111-2222-3333-4444-555555555555")
			g.Expect(apierrors.IsConflict(err) || apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
			g.Expect(client.Get(ctx, "tried", metav1.GetOptions{})).To(Equal(created))
		})
	}
	g := NewWithT(t)
	err := connection.Objects.DryRunCreate(t.Context(), configMaps, kinds[0].object("missing", "tried"))
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
}
