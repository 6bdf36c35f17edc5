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

package writes

import (
	"errors"
	"reflect"
	gosync "sync"
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	testclock "k8s.io/utils/clock/testing"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

var (
	configMaps   = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	till         = types.NamespacedName{Namespace: "shop", Name: "till"}
	errConflict  = apierrors.NewConflict(configMaps.GroupResource(), till.Name, errors.New("changed"))
	errExists    = apierrors.NewAlreadyExists(configMaps.GroupResource(), till.Name)
	errGone      = apierrors.NewNotFound(configMaps.GroupResource(), till.Name)
	errNotServed = apierrors.NewGenericServerResponse(404, "delete", configMaps.GroupResource(), till.Name, "404 page not found", 0, true)
)

// oneWorkspace has one workspace, or none without a client.
type oneWorkspace struct{ client dynamic.Interface }

func (o oneWorkspace) Client(logicalcluster.Name) (dynamic.Interface, bool) {
	return o.client, o.client != nil
}

// respond returns the API server's response to a request; handled is false for an ordinary response.
type respond func(action clienttesting.Action) (handled bool, object runtime.Object, err error)

// refuse refuses the requests of a verb for ConfigMaps.
func refuse(verb string, err error) respond {
	return func(action clienttesting.Action) (bool, runtime.Object, error) {
		return action.GetVerb() == verb && action.GetResource() == configMaps, nil, err
	}
}

func configMap(uid, resourceVersion string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	object.SetNamespace(till.Namespace)
	object.SetName(till.Name)
	object.SetUID(types.UID(uid))
	object.SetResourceVersion(resourceVersion)
	return object
}

// newTestWriter returns a writer for a workspace with some objects.
func newTestWriter(respond respond, objects ...runtime.Object) (*WorkspaceWriter[string], *dynamicfake.FakeDynamicClient) {
	client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), objects...)
	if respond != nil {
		client.PrependReactor("*", "*", clienttesting.ReactionFunc(respond))
	}
	expected := NewExpectations[string, *unstructured.Unstructured](&gosync.Mutex{}, testclock.NewFakeClock(time.Unix(1000, 0)))
	return &WorkspaceWriter[string]{
		Workspaces: oneWorkspace{client}, FieldManager: "hub", Expectations: &expected,
		Locate: func(string) Object { return Object{Workspace: "mailbox", Resource: configMaps, Name: till} },
	}, client
}

func owner() ownership.Owner {
	return ownership.Owner{Hub: "hub", SyncTarget: "target", Sealer: ownership.NewSealer([]byte("key"))}
}

// wantExpected asserts the UID of the object that counts while the cache is empty.
func wantExpected(t *testing.T, writer *WorkspaceWriter[string], uid types.UID) {
	t.Helper()
	object, _ := writer.Expectations.Current("till", nil)
	switch {
	case object == nil && uid != "":
		t.Errorf("want an expectation for %s, got none", uid)
	case object != nil && object.GetUID() != uid:
		t.Errorf("want %q to be expected, got %s", uid, object.GetUID())
	}
}

func TestCreateMakesTheNamespace(t *testing.T) {
	hasNamespace := false
	writer, client := newTestWriter(func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetVerb() == "create" && action.GetResource() == namespaces {
			hasNamespace = true
		}
		return !hasNamespace, nil, apierrors.NewNotFound(namespaces.GroupResource(), till.Namespace)
	})
	if _, err := writer.Create(t.Context(), "till", configMap("new", "1"), owner()); err != nil {
		t.Fatal(err)
	}
	namespace, err := client.Resource(namespaces).Get(t.Context(), till.Namespace, metav1.GetOptions{})
	if err != nil || !owner().HasEnsured(namespace.GetAnnotations()[ownership.EnsuredAnnotation], NamespaceSelf(till.Namespace)) {
		t.Errorf("the namespace is %v, %v", namespace, err)
	}
	wantExpected(t, writer, "new")
}

func TestCreateOfAnExistingObject(t *testing.T) {
	writer, _ := newTestWriter(nil, configMap("old", "1"))
	object, err := writer.Create(t.Context(), "till", configMap("", ""), owner())
	if !errors.Is(err, ErrExists) || object.GetUID() != "old" {
		t.Errorf("got %v, %v", object, err)
	}
	wantExpected(t, writer, "old")

	writer, _ = newTestWriter(func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetVerb() == "create" {
			return true, nil, errExists
		}
		return true, nil, errGone
	})
	if _, err := writer.Create(t.Context(), "till", configMap("", ""), owner()); err == nil || errors.Is(err, ErrExists) {
		t.Errorf("an object that cannot be read: %v", err)
	}
	wantExpected(t, writer, "")
}

// The quota of a namespace refuses a create with a conflict, too.
func TestErrorsOfWrites(t *testing.T) {
	create := func(w *WorkspaceWriter[string]) error {
		_, err := w.Create(t.Context(), "till", configMap("", ""), owner())
		return err
	}
	update := func(w *WorkspaceWriter[string]) error {
		_, err := w.Update(t.Context(), "till", configMap("old", "1"), configMap("", ""))
		return err
	}
	put := func(w *WorkspaceWriter[string]) error {
		_, err := w.Put(t.Context(), "till", configMap("", ""))
		return err
	}
	putAgain := func(w *WorkspaceWriter[string]) error {
		_, err := w.Put(t.Context(), "till", configMap("old", "1"))
		return err
	}
	patch := func(w *WorkspaceWriter[string]) error { return w.PatchStatus(t.Context(), "till", Patch{}, true) }
	remove := func(w *WorkspaceWriter[string]) error {
		return w.Delete(t.Context(), "till", configMap("old", "1"), nil)
	}
	release := func(w *WorkspaceWriter[string]) error {
		return w.Release(t.Context(), "till", configMap("old", "1"), "", false)
	}
	finalizers := func(w *WorkspaceWriter[string]) error {
		return w.SetFinalizers(t.Context(), "till", configMap("old", "1"), nil)
	}
	for name, test := range map[string]struct {
		write   func(*WorkspaceWriter[string]) error
		verb    string
		refusal error
		want    error
	}{
		"a create beyond a quota":        {create, "create", errConflict, errConflict},
		"an update of a newer object":    {update, "update", errConflict, ErrOutdated},
		"an update of a deleted object":  {update, "update", errGone, errGone},
		"a put of an existing object":    {put, "create", errExists, ErrOutdated},
		"a put of a newer object":        {putAgain, "update", errConflict, ErrOutdated},
		"a patch with a conflict":        {patch, "patch", errConflict, errConflict},
		"a patch of a deleted object":    {patch, "patch", errGone, errGone},
		"a delete of another object":     {remove, "delete", errConflict, ErrOutdated},
		"a delete of a deleted object":   {remove, "delete", errGone, nil},
		"a delete without the API":       {remove, "delete", errNotServed, errNotServed},
		"a release of a deleted object":  {release, "patch", errGone, errGone},
		"a release of a newer object":    {release, "patch", errConflict, ErrOutdated},
		"finalizers of a newer object":   {finalizers, "patch", errConflict, ErrOutdated},
		"finalizers of a deleted object": {finalizers, "patch", errGone, errGone},
	} {
		t.Run(name, func(t *testing.T) {
			writer, _ := newTestWriter(refuse(test.verb, test.refusal), configMap("old", "1"))
			if err := test.write(writer); !errors.Is(err, test.want) {
				t.Errorf("want %v, got %v", test.want, err)
			}
			wantExpected(t, writer, "")
			writer.Workspaces = oneWorkspace{}
			if err := test.write(writer); !errors.Is(err, ErrUnreachable) {
				t.Errorf("without a client: %v", err)
			}
		})
	}
}

func TestDeletionIsExpected(t *testing.T) {
	terminating := configMap("old", "1")
	terminating.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1000, 0)})
	finalized := func(clienttesting.Action) (bool, runtime.Object, error) { return true, terminating.DeepCopy(), nil }
	for name, test := range map[string]struct {
		respond respond
		write   func(*WorkspaceWriter[string]) error
	}{
		"deleted": {nil, func(w *WorkspaceWriter[string]) error {
			return w.Delete(t.Context(), "till", configMap("old", "1"), nil)
		}},
		"without its last finalizer": {finalized, func(w *WorkspaceWriter[string]) error {
			return w.SetFinalizers(t.Context(), "till", terminating, nil)
		}},
	} {
		writer, _ := newTestWriter(test.respond, configMap("old", "1"))
		if err := test.write(writer); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, deleted := writer.Expectations.Current("till", configMap("old", "1")); !deleted {
			t.Errorf("%s: no deletion is expected", name)
		}
	}
	writer, _ := newTestWriter(refuse("patch", errGone))
	if err := writer.SetFinalizers(t.Context(), "till", terminating, nil); err != nil {
		t.Errorf("a terminating object that was deleted: %v", err)
	}
}

func TestDeletionOfOneVersion(t *testing.T) {
	var sent *metav1.Preconditions
	writer, _ := newTestWriter(func(action clienttesting.Action) (bool, runtime.Object, error) {
		sent = action.(clienttesting.DeleteActionImpl).DeleteOptions.Preconditions
		return true, nil, nil
	})
	want := &metav1.Preconditions{UID: new(types.UID("old")), ResourceVersion: new("7")}
	if err := writer.Delete(t.Context(), "till", configMap("old", "7"), nil); err != nil || !reflect.DeepEqual(sent, want) {
		t.Errorf("want %v, got %v, %v", want, sent, err)
	}
}

func TestRelease(t *testing.T) {
	for name, test := range map[string]struct {
		ensured    string
		keepsLabel bool
		want       string
	}{
		"completely":              {"", false, `{"metadata":{"annotations":{"synchub.dev/mark":null},"labels":{"synchub.dev/owner":null},"resourceVersion":"1","uid":"old"}}`},
		"keeps the label":         {"ours", true, `{"metadata":{"annotations":{"synchub.dev/ensured-by":"ours","synchub.dev/mark":null},"resourceVersion":"1","uid":"old"}}`},
		"can be taken over again": {"ours", false, `{"metadata":{"annotations":{"synchub.dev/ensured-by":"ours","synchub.dev/mark":null},"labels":{"synchub.dev/owner":null},"resourceVersion":"1","uid":"old"}}`},
	} {
		writer, client := newTestWriter(nil, configMap("old", "1"))
		if err := writer.Release(t.Context(), "till", configMap("old", "1"), test.ensured, test.keepsLabel); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if patch, ok := client.Actions()[0].(clienttesting.PatchAction); !ok || string(patch.GetPatch()) != test.want {
			t.Errorf("%s: want %s, got %s", name, test.want, patch.GetPatch())
		}
	}
}

// Without expectations no write is stored.
func TestWriterWithoutExpectations(t *testing.T) {
	writer, _ := newTestWriter(nil)
	writer.Expectations = nil
	if _, err := writer.Put(t.Context(), "till", configMap("", "")); err != nil {
		t.Error(err)
	}
	if _, err := writer.Create(t.Context(), "till", configMap("", ""), owner()); !errors.Is(err, ErrExists) {
		t.Error(err)
	}
	if err := writer.Delete(t.Context(), "till", configMap("old", "1"), nil); err != nil {
		t.Error(err)
	}
}
