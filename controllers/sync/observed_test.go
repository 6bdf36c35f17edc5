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

package sync

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/synchub-dev/synchub/controllers/sync/decide"
	"github.com/synchub-dev/synchub/controllers/sync/ownership"
)

var (
	us         = ownership.Owner{Hub: "hub", SyncTarget: "target", Sealer: ownership.NewSealer([]byte("key"))}
	ourManager = ownership.FieldManager(us.Hub)
	someMark   = ownership.Mark{
		Version: ownership.MarkVersion, Hub: us.Hub, SyncTarget: us.SyncTarget, Mailbox: "mailbox",
		Source: ownership.Source{Group: "apps", Resource: "deployments", Namespace: "shop", Name: "till", UID: "source"},
		Self:   ownership.Self{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "till"},
		Policy: ownership.PolicyDelete, Hash: "1:x",
	}
)

// looker is a controller as far as it looks at the target's objects.
func looker(resource Resource) *Controller {
	resource.GroupVersionResource = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	return &Controller{Options: Options{Resource: resource, Owner: us, Mailbox: "mailbox"}, manager: ourManager}
}

// fromTarget is an object as a target shows it, with much that does not concern us.
func fromTarget(t *testing.T) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: decode(t, `{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": {
			"name": "till", "namespace": "shop", "uid": "u", "resourceVersion": "7", "generation": 3,
			"creationTimestamp": "2026-01-02T03:04:05Z", "deletionTimestamp": "2026-02-03T04:05:06Z", "deletionGracePeriodSeconds": 30,
			"selfLink": "/x", "generateName": "t", "finalizers": ["a/b"], "ownerReferences": [{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "a"}],
			"labels": {"app": "till"}, "annotations": {"note": "x"},
			"managedFields": [
				{"manager": "OURS", "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:wrong": {}}},
				{"manager": "OURS", "operation": "Apply", "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:wrong": {}}, "subresource": "status"},
				{"manager": "kubectl", "operation": "Apply", "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:wrong": {}}},
				{"manager": "OURS", "operation": "Apply", "apiVersion": "apps/v1", "time": "2026-01-02T03:04:05Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}}}}
			]
		},
		"spec": {"replicas": 2}, "data": {"a": "b"},
		"status": {"replicas": 1, "conditions": [{"type": "Available", "status": "True"}]}
	}`)}
	entries := object.GetManagedFields()
	for i := range entries {
		if entries[i].Manager == "OURS" {
			entries[i].Manager = ourManager
		}
	}
	object.SetManagedFields(entries)
	withEntry(object.SetLabels, object.GetLabels(), ownership.OwnerLabel, us.LabelValue())
	withEntry(object.SetAnnotations, object.GetAnnotations(), ownership.MarkAnnotation, us.Seal(someMark))
	return object
}

func withEntry(set func(map[string]string), entries map[string]string, key, value string) {
	entries = maps.Clone(entries)
	entries[key] = value
	set(entries)
}

func TestStripped(t *testing.T) {
	for name, statusReturn := range map[string]bool{"with the status": true, "without the status": false} {
		t.Run(name, func(t *testing.T) {
			controller := looker(Resource{StatusReturn: statusReturn})
			object := fromTarget(t)
			before := object.DeepCopy()
			want := map[string]any{
				"apiVersion": "apps/v1", "kind": "Deployment",
				"metadata": map[string]any{
					"name": "till", "namespace": "shop", "uid": "u", "resourceVersion": "7", "generation": int64(3),
					"deletionTimestamp": "2026-02-03T04:05:06Z",
					"labels":            map[string]any{ownership.OwnerLabel: us.LabelValue()},
					"annotations":       map[string]any{ownership.MarkAnnotation: us.Seal(someMark)},
					"managedFields": []any{map[string]any{
						"manager": ourManager, "operation": "Apply", "fieldsV1": `{"f:spec":{"f:replicas":{}}}`,
					}},
				},
			}
			if statusReturn {
				want["status"] = before.Object["status"]
			}
			got := controller.stripped(object)
			if !reflect.DeepEqual(got.Object, want) {
				t.Errorf("want %v\ngot  %v", want, got.Object)
			}
			if !reflect.DeepEqual(object, before) {
				t.Errorf("the object itself was changed: %v", object)
			}
			if again := controller.stripped(got); !reflect.DeepEqual(again, got) {
				t.Errorf("first %v\nthen  %v", got, again)
			}
			seen, err := controller.verify(object)
			kept, keptErr := controller.verify(got)
			if err != nil || keptErr != nil || !reflect.DeepEqual(seen, kept) {
				t.Errorf("of the object is decided by %+v (%v), of what is kept by %+v (%v)", seen, err, kept, keptErr)
			}
		})
	}
}

// An object that lacks everything lacks it afterwards too: nothing is made up.
func TestStrippedOfLittle(t *testing.T) {
	object := &unstructured.Unstructured{Object: decode(t, `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"a": "b"}, "annotations": {"a": "b"}}}`)}
	got := looker(Resource{StatusReturn: true}).stripped(object)
	want := decode(t, `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}`)
	if !reflect.DeepEqual(got.Object, want) {
		t.Errorf("want %v, got %v", want, got.Object)
	}
}

func TestStripTakesWhatComes(t *testing.T) {
	controller := looker(Resource{})
	tombstone := cache.DeletedFinalStateUnknown{Key: "a/b"}
	if got, err := controller.strip(tombstone); err != nil || got != tombstone {
		t.Errorf("want the tombstone, got %v, %v", got, err)
	}
	got, err := controller.strip(fromTarget(t))
	if object, ok := got.(*unstructured.Unstructured); err != nil || !ok || object.Object["spec"] != nil || object.GetName() != "till" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestVerify(t *testing.T) {
	const ours = `{"f:spec":{"f:replicas":{}}}`
	for name, test := range map[string]struct {
		resource Resource
		change   func(*unstructured.Unstructured)
		want     decide.Observed
	}{
		"as it is":      {Resource{}, func(*unstructured.Unstructured) {}, decide.Observed{Labelled: true, Terminating: true, Fields: []byte(ours)}},
		"retained":      {Resource{Retain: true}, func(*unstructured.Unstructured) {}, decide.Observed{Labelled: true, Terminating: true, Fields: []byte(ours), Retain: true}},
		"a container":   {Resource{Container: true}, func(*unstructured.Unstructured) {}, decide.Observed{Labelled: true, Terminating: true, Fields: []byte(ours)}},
		"there to stay": {Resource{}, func(o *unstructured.Unstructured) { o.SetDeletionTimestamp(nil) }, decide.Observed{Labelled: true, Fields: []byte(ours)}},
		"without label": {Resource{}, func(o *unstructured.Unstructured) { o.SetLabels(nil) }, decide.Observed{Terminating: true, Fields: []byte(ours)}},
		"with another's label": {
			Resource{}, func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{ownership.OwnerLabel: "x"}) },
			decide.Observed{Terminating: true, Fields: []byte(ours)},
		},
		"without our entry": {Resource{}, func(o *unstructured.Unstructured) { o.SetManagedFields(o.GetManagedFields()[:3]) }, decide.Observed{Labelled: true, Terminating: true}},
		"without any entry": {Resource{}, func(o *unstructured.Unstructured) { o.SetManagedFields(nil) }, decide.Observed{Labelled: true, Terminating: true}},
	} {
		t.Run(name, func(t *testing.T) {
			object := fromTarget(t)
			test.change(object)
			test.want.UID, test.want.Mark = "u", someMark
			got, err := looker(test.resource).verify(object)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(*got, test.want) {
				t.Errorf("want %+v\ngot  %+v", test.want, *got)
			}
		})
	}
}

// What the mark says of the object's past decides what may become of it.
func TestVerifyThePast(t *testing.T) {
	adopted, former := someMark, someMark
	adopted.Adopted, former.Mailbox = true, "another"
	for name, test := range map[string]struct {
		resource       Resource
		mark           ownership.Mark
		former, retain bool
	}{
		"made by the hub":             {Resource{}, someMark, false, false},
		"adopted":                     {Resource{}, adopted, false, false},
		"a container that was made":   {Resource{Container: true}, someMark, false, false},
		"a container to be kept":      {Resource{Container: true, Retain: true}, someMark, false, true},
		"a container that was there":  {Resource{Container: true}, adopted, false, true},
		"from a mailbox that is lost": {Resource{}, former, true, false},
	} {
		object := fromTarget(t)
		addMark(object, test.mark)
		got, err := looker(test.resource).verify(object)
		if err != nil || got.Former != test.former || got.Retain != test.retain || got.Mark != test.mark {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

func TestWhatIsNotOurs(t *testing.T) {
	marked := func(mark string) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) {
			o.SetAnnotations(map[string]string{ownership.MarkAnnotation: mark})
		}
	}
	ensuredBy := func(value string) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) {
			o.SetAnnotations(map[string]string{ownership.EnsuredAnnotation: value})
		}
	}
	foreign, raised := someMark, someMark
	foreign.Hub, raised.Direction = "another", ownership.DirectionUp
	for name, test := range map[string]struct {
		change  func(*unstructured.Unstructured)
		want    error
		ensured bool
	}{
		"only labelled":               {func(o *unstructured.Unstructured) { o.SetAnnotations(nil) }, ownership.ErrUnmarked, false},
		"marked by another hub":       {marked(us.Seal(foreign)), ownership.ErrForeign, false},
		"a copy":                      {func(o *unstructured.Unstructured) { o.SetName("copy") }, ownership.ErrCopied, false},
		"of another kind":             {func(o *unstructured.Unstructured) { o.SetKind("ReplicaSet") }, ownership.ErrCopied, false},
		"marked in another version":   {marked(`{"v": 3}`), ownership.ErrUnknownVersion, false},
		"taken from the mailbox":      {marked(us.Seal(raised)), ownership.ErrCopied, false},
		"ensured by us":               {ensuredBy(us.EnsuredValue(someMark.Self)), ownership.ErrUnmarked, true},
		"ensured by another":          {ensuredBy("x"), ownership.ErrUnmarked, false},
		"ensured by us, then another": {func(o *unstructured.Unstructured) { ensuredBy(us.EnsuredValue(someMark.Self))(o); addMark(o, foreign) }, ownership.ErrForeign, false},
	} {
		t.Run(name, func(t *testing.T) {
			controller, object := looker(Resource{}), fromTarget(t)
			test.change(object)
			observed, err := controller.verify(object)
			if observed != nil || !errors.Is(err, test.want) {
				t.Errorf("want %v, got %+v, %v", test.want, observed, err)
			}
			if got := controller.isEnsured(object, err); got != test.ensured {
				t.Errorf("ensured: want %v, got %v", test.ensured, got)
			}
		})
	}
}

// What bears anything by which somebody says that a hub brought it there stays on the target, for whomever that was.
func TestStaysBelow(t *testing.T) {
	neighbour := us
	neighbour.SyncTarget = "neighbour"
	theirs := someMark
	theirs.SyncTarget = neighbour.SyncTarget
	for name, test := range map[string]struct {
		labels, annotations map[string]string
		want                bool
	}{
		"nobody's":                           {nil, nil, false},
		"ours":                               {map[string]string{ownership.OwnerLabel: us.LabelValue()}, map[string]string{ownership.MarkAnnotation: us.Seal(someMark)}, true},
		"ours without its label":             {nil, map[string]string{ownership.MarkAnnotation: us.Seal(someMark)}, true},
		"made of ours, with its label":       {map[string]string{ownership.OwnerLabel: us.LabelValue()}, nil, false},
		"forged to be ours":                  {nil, map[string]string{ownership.MarkAnnotation: someMark.String()}, true},
		"another's":                          {map[string]string{ownership.OwnerLabel: neighbour.LabelValue()}, map[string]string{ownership.MarkAnnotation: neighbour.Seal(theirs)}, true},
		"another's without its label":        {nil, map[string]string{ownership.MarkAnnotation: neighbour.Seal(theirs)}, true},
		"another's without its mark":         {map[string]string{ownership.OwnerLabel: neighbour.LabelValue()}, nil, true},
		"another's, with a mark as if ours":  {map[string]string{ownership.OwnerLabel: neighbour.LabelValue()}, map[string]string{ownership.MarkAnnotation: us.Seal(copyOf(someMark))}, true},
		"forged to be another's":             {nil, map[string]string{ownership.MarkAnnotation: theirs.String()}, true},
		"with an empty label":                {map[string]string{ownership.OwnerLabel: ""}, nil, true},
		"ensured by us":                      {nil, map[string]string{ownership.EnsuredAnnotation: us.EnsuredValue(someMark.Self)}, false},
		"ensured by another":                 {nil, map[string]string{ownership.EnsuredAnnotation: neighbour.EnsuredValue(someMark.Self)}, true},
		"said to be ensured by us":           {nil, map[string]string{ownership.EnsuredAnnotation: us.LabelValue()}, true},
		"with a mark of a version before us": {nil, map[string]string{ownership.MarkAnnotation: asUnsealed(someMark)}, true},
	} {
		object := fromTarget(t)
		object.SetLabels(test.labels)
		object.SetAnnotations(test.annotations)
		if got := StaysBelow(us, object); got != test.want {
			t.Errorf("%s: want %t, got %t", name, test.want, got)
		}
	}
}

// copyOf is the mark of another object, as a controller copies it.
func copyOf(mark ownership.Mark) ownership.Mark {
	mark.Self.Name = "original"
	return mark
}

// What somebody else marked in our name is known by the index, and came from nothing.
func TestIndexOfWhatDoesNotVerify(t *testing.T) {
	object := fromTarget(t)
	for mark, want := range map[string][]string{
		us.Seal(someMark):         {"shop/till"},
		someMark.String():         {unverified},
		us.Seal(copyOf(someMark)): nil,
	} {
		object.SetAnnotations(map[string]string{ownership.MarkAnnotation: mark})
		if got, err := looker(Resource{}).indexBySource(object); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: want %v, got %v, %v", mark, want, got, err)
		}
	}
}

func addMark(object *unstructured.Unstructured, mark ownership.Mark) {
	withEntry(object.SetAnnotations, object.GetAnnotations(), ownership.MarkAnnotation, us.Seal(mark))
}

func TestSelector(t *testing.T) {
	selector, err := labels.Parse(Selector(us))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		labels labels.Set
		want   bool
	}{
		"ours":                     {labels.Set{ownership.OwnerLabel: us.LabelValue(), "app": "x"}, true},
		"another SyncTarget's":     {labels.Set{ownership.OwnerLabel: ownership.Owner{Hub: us.Hub, SyncTarget: "x"}.LabelValue()}, false},
		"another hub's":            {labels.Set{ownership.OwnerLabel: ownership.Owner{Hub: "x", SyncTarget: us.SyncTarget}.LabelValue()}, false},
		"nobody's":                 {labels.Set{"app": "x"}, false},
		"under an empty owner":     {labels.Set{ownership.OwnerLabel: ""}, false},
		"without any label":        {nil, false},
		"the value of another key": {labels.Set{"app": us.LabelValue()}, false},
	} {
		if got := selector.Matches(test.labels); got != test.want {
			t.Errorf("%s: want %v, got %v", name, test.want, got)
		}
	}
}

func TestDescribeSecrets(t *testing.T) {
	object := &unstructured.Unstructured{Object: decode(t, `{"metadata": {"name": "x", "namespace": "a", "labels": {"l": "1"}, "annotations": {"n": "2"}}, "type": "Opaque"}`)}
	for resource, want := range map[schema.GroupVersionResource]string{
		{Version: "v1", Resource: "secrets"}:                       "Opaque",
		{Version: "v1", Resource: "configmaps"}:                    "",
		{Group: "example.com", Version: "v1", Resource: "secrets"}: "",
	} {
		controller := &Controller{Options: Options{Resource: Resource{GroupVersionResource: resource, Kind: "K"}}}
		got := controller.describe(object)
		if got.SecretType != want || got.Resource != resource || got.Kind != "K" || got.Namespace != "a" || got.Name != "x" ||
			got.Labels["l"] != "1" || got.Annotations["n"] != "2" {
			t.Errorf("%v: got %+v", resource, got)
		}
	}
}
