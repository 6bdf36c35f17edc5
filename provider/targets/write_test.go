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
	"errors"
	"fmt"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/synchub-dev/synchub/test/framework"
)

var (
	configMaps   = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	clusterRoles = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	widgets      = schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "widgets"}
	gadgets      = schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "gadgets"}
)

// Two fields that every kind has.
const (
	kept    = "example.org/kept"
	omitted = "example.org/omitted"
)

// kind is a kind of object that the hub writes.
type kind struct {
	resource   schema.GroupVersionResource
	kind       string
	namespaced bool
}

var kinds = []kind{
	{configMaps, "ConfigMap", true},
	{clusterRoles, "ClusterRole", false},
	{widgets, "Widget", true},
	{gadgets, "Gadget", false},
}

// object returns an object with two annotations.
func (k kind) object(namespace, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(k.resource.GroupVersion().String())
	object.SetKind(k.kind)
	object.SetName(name)
	if k.namespaced {
		object.SetNamespace(namespace)
	}
	object.SetAnnotations(map[string]string{kept: "1", omitted: "2"})
	return object
}

// forEachKind runs a test for each kind on the steady target. client is an administrator's client for the kind.
func forEachKind(t *testing.T, test func(t *testing.T, k kind, connection *Connection, client dynamic.ResourceInterface, namespace string)) {
	t.Helper()
	target := steady(t)
	connection, admin, namespace := connect(t, target), administrator(t, target), newNamespace(t, target)
	for _, k := range kinds {
		t.Run(k.kind, func(t *testing.T) { test(t, k, connection, k.in(admin, namespace), namespace) })
	}
}

// in returns a client for the objects of the kind.
func (k kind) in(client dynamic.Interface, namespace string) dynamic.ResourceInterface {
	if k.namespaced {
		return client.Resource(k.resource).Namespace(namespace)
	}
	return client.Resource(k.resource)
}

func keyOf(object *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// setCreateByApply sets how the connection creates objects.
func setCreateByApply(connection *Connection, byApply bool) {
	connection.Objects.lock.Lock()
	defer connection.Objects.lock.Unlock()
	connection.Objects.creation = &creationMode{epoch: connection.Health.Epoch(), byApply: byApply}
}

// forEachCreateMode runs a test for each kind and each of the two modes to create.
func forEachCreateMode(t *testing.T, connection *Connection, test func(t *testing.T, k kind, suffix string)) {
	for mode, byApply := range map[string]bool{"apply": true, "post": false} {
		setCreateByApply(connection, byApply)
		for _, k := range kinds {
			t.Run(mode+"/"+k.kind, func(t *testing.T) { test(t, k, mode) })
		}
	}
}

func TestCreate(t *testing.T) {
	target := steady(t)
	connection := connect(t, target)
	admin, namespace := administrator(t, target), newNamespace(t, target)

	forEachCreateMode(t, connection, func(t *testing.T, k kind, mode string) {
		g := NewWithT(t)
		ctx := t.Context()
		object := k.object(namespace, "owned-"+mode)
		before := object.DeepCopy()

		created, err := connection.Objects.Create(ctx, k.resource, object)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(object).To(Equal(before), "the caller's object must not change")
		g.Expect(k.in(admin, namespace).Get(ctx, object.GetName(), metav1.GetOptions{})).To(Equal(created))
		g.Expect(managersOf(created)).To(Equal([]string{"Apply by " + fieldManager}))

		// An apply removes omitted fields.
		object.SetAnnotations(map[string]string{kept: "1"})
		applied, err := connection.Objects.Apply(ctx, k.resource, object, created.GetUID())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(applied.GetAnnotations()).To(Equal(map[string]string{kept: "1"}))
		g.Expect(applied.GetUID()).To(Equal(created.GetUID()))
	})
}

// A create never overwrites an existing object.
func TestCreateNeverOverwrites(t *testing.T) {
	target := steady(t)
	connection := connect(t, target)
	admin, namespace := administrator(t, target), newNamespace(t, target)

	forEachCreateMode(t, connection, func(t *testing.T, k kind, mode string) {
		ctx := t.Context()
		client := k.in(admin, namespace)
		for owner, write := range map[string]func(object *unstructured.Unstructured) (*unstructured.Unstructured, error){
			"the hub": func(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
				return connection.Objects.Create(ctx, k.resource, object)
			},
			"somebody": func(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
				return client.Create(ctx, object, metav1.CreateOptions{})
			},
			"another applier": func(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
				return client.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: "somebody"})
			},
		} {
			t.Run(owner, func(t *testing.T) {
				g := NewWithT(t)
				object := k.object(namespace, fmt.Sprintf("taken-by-%d-%s", len(owner), mode))
				before, err := write(object.DeepCopy())
				g.Expect(err).NotTo(HaveOccurred())

				for _, annotations := range []map[string]string{{kept: "other"}, object.GetAnnotations()} {
					object.SetAnnotations(annotations)
					_, err = connection.Objects.Create(ctx, k.resource, object)
					g.Expect(err).To(MatchError(ErrAlreadyExists))
					g.Expect(client.Get(ctx, object.GetName(), metav1.GetOptions{})).To(Equal(before))
				}
			})
		}
	})
}

func TestCreateInMissingNamespace(t *testing.T) {
	connection := connect(t, steady(t))
	forEachCreateMode(t, connection, func(t *testing.T, k kind, _ string) {
		if !k.namespaced {
			return
		}
		g := NewWithT(t)
		_, err := connection.Objects.Create(t.Context(), k.resource, k.object("missing", "lost"))
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
		var status apierrors.APIStatus
		g.Expect(errors.As(err, &status)).To(BeTrue())
		g.Expect(status.Status().Details.Kind).To(Equal("namespaces"))
		g.Expect(status.Status().Details.Name).To(Equal("missing"))
	})
}

// A controller may write to a new object before the hub has turned its own fields into fields of an apply.
func TestCreateByPostWithConcurrentWrites(t *testing.T) {
	g := NewWithT(t)
	target := steady(t)
	admin, namespace := administrator(t, target), newNamespace(t, target)
	object := kinds[0].object(namespace, "busy")
	interfered := false
	proxy := newProxy(t, target, func(request *http.Request) {
		if request.Method == http.MethodPatch && !request.URL.Query().Has("dryRun") && !interfered {
			interfered = true
			_, err := admin.Resource(configMaps).Namespace(namespace).Patch(t.Context(), "busy", types.MergePatchType,
				[]byte(`{"data":{"other":"value"}}`), metav1.PatchOptions{FieldManager: "other"})
			if err != nil {
				t.Error(err)
			}
		}
	})
	connection := connectTo(t, proxy)
	setCreateByApply(connection, false)

	created, err := connection.Objects.Create(t.Context(), configMaps, object)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(interfered).To(BeTrue())
	g.Expect(managersOf(created)).To(ConsistOf("Apply by "+fieldManager, "Update by other"))
	g.Expect(admin.Resource(configMaps).Namespace(namespace).Get(t.Context(), "busy", metav1.GetOptions{})).To(Equal(created))
}

func TestGet(t *testing.T) {
	g := NewWithT(t)
	connection := connect(t, steady(t))
	found, err := connection.Objects.Get(t.Context(), namespacesResource, types.NamespacedName{Name: "default"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.GetName()).To(Equal("default"))
	_, err = connection.Objects.Get(t.Context(), configMaps, types.NamespacedName{Namespace: "default", Name: "missing"})
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
}

func TestEnsureNamespace(t *testing.T) {
	g := NewWithT(t)
	target := steady(t)
	connection := connect(t, target)
	g.Expect(connection.Objects.EnsureNamespace(t.Context(), "ensured", nil, map[string]string{kept: "1"})).To(BeTrue(), "the hub created the namespace")
	first, err := framework.Get(t.Context(), target.Config, namespacesResource, "", "ensured")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(first.GetAnnotations()).To(Equal(map[string]string{kept: "1"}))

	g.Expect(connection.Objects.EnsureNamespace(t.Context(), "ensured", nil, map[string]string{kept: "2"})).To(BeFalse(), "the namespace existed")
	g.Expect(framework.Get(t.Context(), target.Config, namespacesResource, "", "ensured")).To(Equal(first))
	_, err = connection.Objects.EnsureNamespace(t.Context(), "No Name", nil, nil)
	g.Expect(err).To(HaveOccurred())
}

// managersOf returns the field managers of an object, with their operations.
func managersOf(object *unstructured.Unstructured) []string {
	var managers []string
	for _, entry := range object.GetManagedFields() {
		managers = append(managers, fmt.Sprintf("%s by %s", entry.Operation, entry.Manager))
	}
	return managers
}
