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
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

func TestApplyIsFencedByUID(t *testing.T) {
	forEachKind(t, func(t *testing.T, k kind, connection *Connection, client dynamic.ResourceInterface, namespace string) {
		g := NewWithT(t)
		ctx := t.Context()
		object := k.object(namespace, "fenced")

		_, err := connection.Objects.Apply(ctx, k.resource, object, "11111111-2222-3333-4444-555555555555")
		g.Expect(apierrors.IsConflict(err)).To(BeTrue(), "absent: %v", err)
		_, err = client.Get(ctx, "fenced", metav1.GetOptions{})
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)

		first, err := connection.Objects.Create(ctx, k.resource, object)
		g.Expect(err).NotTo(HaveOccurred())
		again, err := connection.Objects.Apply(ctx, k.resource, object, first.GetUID())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again).To(Equal(first), "an apply without changes")

		changed := object.DeepCopy()
		changed.SetAnnotations(map[string]string{kept: "changed"})
		applied, err := connection.Objects.Apply(ctx, k.resource, changed, first.GetUID())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(applied.GetAnnotations()).To(Equal(map[string]string{kept: "changed"}))
		g.Expect(managersOf(applied)).To(Equal([]string{"Apply by " + fieldManager}))
		g.Expect(fmt.Sprint(applied.GetManagedFields()[0].FieldsV1)).NotTo(ContainSubstring("f:uid"))

		g.Expect(client.Delete(ctx, "fenced", metav1.DeleteOptions{})).To(Succeed())
		second, err := client.Create(ctx, object, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		_, err = connection.Objects.Apply(ctx, k.resource, changed, first.GetUID())
		g.Expect(apierrors.IsConflict(err) || apierrors.IsInvalid(err)).To(BeTrue(), "replaced: %v", err)
		g.Expect(client.Get(ctx, "fenced", metav1.GetOptions{})).To(Equal(second))
	})
}

// The UID of the caller counts, not a UID or resourceVersion in the desired object.
func TestFenceWinsOverTheObject(t *testing.T) {
	g := NewWithT(t)
	object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a", "uid": "its own"}, "data": "kept"}}
	before := object.DeepCopy()
	g.Expect(withMetadata(object, "uid", "fence").Object).To(Equal(map[string]any{"metadata": map[string]any{"name": "a", "uid": "fence"}, "data": "kept"}))
	g.Expect(object).To(Equal(before))
	g.Expect(withMetadata(&unstructured.Unstructured{}, "uid", "fence").Object).To(Equal(map[string]any{"metadata": map[string]any{"uid": "fence"}}))
}

func TestDeleteIsFencedByUID(t *testing.T) {
	forEachKind(t, func(t *testing.T, k kind, connection *Connection, client dynamic.ResourceInterface, namespace string) {
		g := NewWithT(t)
		ctx := t.Context()
		object, err := client.Create(ctx, k.object(namespace, "doomed"), metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())

		err = connection.Objects.Delete(ctx, k.resource, keyOf(object), "11111111-2222-3333-4444-555555555555")
		g.Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
		g.Expect(client.Get(ctx, "doomed", metav1.GetOptions{})).To(Equal(object))

		g.Expect(connection.Objects.Delete(ctx, k.resource, keyOf(object), object.GetUID())).To(Succeed())
		_, err = client.Get(ctx, "doomed", metav1.GetOptions{})
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
		g.Expect(connection.Objects.Delete(ctx, k.resource, keyOf(object), object.GetUID())).To(Succeed(), "a missing object is no error")
	})
}

func TestRemoveMetadataIsFencedByUID(t *testing.T) {
	const label, annotation = "example.org/owner", "example.org/mark"
	target := steady(t)
	connection := connect(t, target)
	admin, namespace := administrator(t, target), newNamespace(t, target)
	for _, k := range kinds {
		t.Run(k.kind, func(t *testing.T) {
			g := NewWithT(t)
			ctx := t.Context()
			client := k.in(admin, namespace)
			desired := k.object(namespace, "marked")
			desired.SetLabels(map[string]string{label: "us", kept: "1"})
			desired.SetAnnotations(map[string]string{annotation: "ours", kept: "1"})
			object, err := connection.Objects.Create(ctx, k.resource, desired)
			g.Expect(err).NotTo(HaveOccurred())
			strip := func(uid types.UID) error {
				return connection.Objects.RemoveMetadata(ctx, k.resource, keyOf(object), uid, []string{label}, []string{annotation})
			}

			g.Expect(strip("11111111-2222-3333-4444-555555555555")).NotTo(Succeed())
			g.Expect(client.Get(ctx, "marked", metav1.GetOptions{})).To(Equal(object))

			g.Expect(strip(object.GetUID())).To(Succeed())
			stripped, err := client.Get(ctx, "marked", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(stripped.GetUID()).To(Equal(object.GetUID()))
			g.Expect(stripped.GetLabels()).To(Equal(map[string]string{kept: "1"}))
			g.Expect(stripped.GetAnnotations()).To(Equal(map[string]string{kept: "1"}))

			g.Expect(client.Delete(ctx, "marked", metav1.DeleteOptions{})).To(Succeed())
			g.Expect(strip(object.GetUID())).To(Succeed(), "a missing object is no error")
		})
	}
}
