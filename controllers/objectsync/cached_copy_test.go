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

package objectsync

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

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/health"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/provider/cachesize"
)

var (
	testOwner        = ownership.Owner{Hub: "hub", SyncTarget: "target", Sealer: ownership.NewSealer([]byte("key"))}
	testFieldManager = ownership.FieldManager(testOwner.Hub)
	someMark         = ownership.Mark{
		Version: ownership.MarkVersion, Hub: testOwner.Hub, SyncTarget: testOwner.SyncTarget, Mailbox: "mailbox",
		Source: ownership.Source{Group: "apps", Resource: "deployments", Namespace: "shop", Name: "till", UID: "source"},
		Self:   ownership.Self{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "till"},
		Policy: ownership.PolicyDelete, Hash: "1:x",
	}
)

// newObserver returns the view of a target.
func newObserver(resource plan.Resource) *targetView {
	resource.GroupVersionResource = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	return newTargetView(&Options{Resource: resource, Owner: testOwner, Mailbox: "mailbox"})
}

// fromTarget returns an object as the target's API server returns it, with many fields that the cache drops.
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
			entries[i].Manager = testFieldManager
		}
	}
	object.SetManagedFields(entries)
	withEntry(object.SetLabels, object.GetLabels(), ownership.OwnerLabel, testOwner.LabelValue())
	withEntry(object.SetAnnotations, object.GetAnnotations(), ownership.MarkAnnotation, testOwner.Seal(someMark))
	return object
}

func withEntry(set func(map[string]string), entries map[string]string, key, value string) {
	entries = maps.Clone(entries)
	entries[key] = value
	set(entries)
}

func TestCachedCopy(t *testing.T) {
	for name, statusReturn := range map[string]bool{"with the status": true, "without the status": false} {
		t.Run(name, func(t *testing.T) {
			controller := newObserver(plan.Resource{StatusReturn: statusReturn})
			object := fromTarget(t)
			before := object.DeepCopy()
			want := map[string]any{
				"apiVersion": "apps/v1", "kind": "Deployment",
				"metadata": map[string]any{
					"name": "till", "namespace": "shop", "uid": "u", "resourceVersion": "7", "generation": int64(3),
					"deletionTimestamp": "2026-02-03T04:05:06Z",
				},
			}
			if statusReturn {
				want["status"] = before.Object["status"]
			}
			got, err := controller.cachedCopyOf(object, verifiedMark{})
			if err != nil || !reflect.DeepEqual(got.Object, want) {
				t.Errorf("want %v\ngot  %v, %v", want, got.Object, err)
			}
			if !reflect.DeepEqual(object, before) {
				t.Errorf("the object itself was changed: %v", object)
			}
			if again, err := controller.transformForCache(nil)(got); err != nil || again != got {
				t.Errorf("first %v\nthen  %v, %v", got, again, err)
			}
			facts, err := controller.observeObject(object)
			if err != nil || !reflect.DeepEqual(facts, got.observed) || got.unverified {
				t.Errorf("the facts about the object are %+v (%v), those about its cached form %+v", facts, err, got.observed)
			}
			if size := cachesize.SizeOf(got) - cachesize.SizeOf(got.Unstructured); size != facts.Size()+int64(len(got.mark)) || size < int64(len(facts.AppliedFields)+len(got.mark)) {
				t.Errorf("the facts count for %d bytes", size)
			}
		})
	}
}

// The cached form of an object has no field that the object lacks.
func TestCachedCopyOfLittle(t *testing.T) {
	object := &unstructured.Unstructured{Object: decode(t, `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"a": "b"}, "annotations": {"a": "b"}}}`)}
	got, err := newObserver(plan.Resource{StatusReturn: true}).cachedCopyOf(object, verifiedMark{})
	want := decode(t, `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}`)
	if !reflect.DeepEqual(got.Object, want) || got.observed != nil || !errors.Is(err, ownership.ErrUnmarked) || cachesize.SizeOf(got) != cachesize.SizeOf(got.Unstructured) {
		t.Errorf("want %v, got %v, %+v, %v", want, got.Object, got.observed, err)
	}
}

func TestTransformForCache(t *testing.T) {
	controller := newObserver(plan.Resource{})
	tombstone := cache.DeletedFinalStateUnknown{Key: "a/b"}
	if got, err := controller.transformForCache(nil)(tombstone); err != nil || got != tombstone {
		t.Errorf("want the tombstone, got %v, %v", got, err)
	}
}

// The next version of an object takes over the verified mark, unless its own differs or it is another object.
func TestMarkIsVerifiedOnce(t *testing.T) {
	controller := newObserver(plan.Resource{})
	first := must(controller.cachedCopyOf(fromTarget(t), verifiedMark{}))(t)
	withoutKey := newObserver(plan.Resource{})
	withoutKey.owner.Sealer = nil
	for name, test := range map[string]struct {
		change func(*unstructured.Unstructured)
		want   error
	}{
		"the same mark": {func(o *unstructured.Unstructured) { o.SetLabels(nil) }, nil},
		"another mark":  {func(o *unstructured.Unstructured) { addMark(o, copyOf(someMark)) }, ownership.ErrCopied},
		"no mark":       {func(o *unstructured.Unstructured) { o.SetAnnotations(nil) }, ownership.ErrUnmarked},
		"a mark without seal": {func(o *unstructured.Unstructured) {
			o.SetAnnotations(map[string]string{ownership.MarkAnnotation: someMark.String()})
		}, ownership.ErrUnverified},
		"another object":            {func(o *unstructured.Unstructured) { o.SetName("copy") }, ownership.ErrCopied},
		"an object of another kind": {func(o *unstructured.Unstructured) { o.SetKind("ReplicaSet") }, ownership.ErrCopied},
	} {
		object := fromTarget(t)
		test.change(object)
		next, err := withoutKey.cachedCopyOf(object, first.verifiedMark())
		if !errors.Is(err, test.want) || (next.observed != nil) != (test.want == nil) || next.unverified != errors.Is(test.want, ownership.ErrUnverified) {
			t.Errorf("%s: want %v, got %+v, %v", name, test.want, next.observed, err)
		}
		if test.want == nil && (next.observed.Mark != first.observed.Mark || next.observed.HasOwnerLabel || next.mark != first.mark) {
			t.Errorf("%s: got %+v", name, next.observed)
		}
	}
}

// The response to a write has the mark that the hub has just sealed. Another mark in it is verified.
func TestMarkOfAWriteIsNotVerified(t *testing.T) {
	withoutKey := newObserver(plan.Resource{})
	withoutKey.owner.Sealer = nil
	response := fromTarget(t)
	mark, _ := plan.Annotation(response, ownership.MarkAnnotation)
	for name, test := range map[string]struct {
		written verifiedMark
		want    error
	}{
		"the mark that was written": {verifiedMark{someMark, mark}, nil},
		"another mark":              {verifiedMark{someMark, mark + " "}, ownership.ErrUnverified},
		"no sealed mark":            {verifiedMark{someMark, ""}, ownership.ErrUnverified},
		"a mark of another object":  {verifiedMark{copyOf(someMark), mark}, ownership.ErrUnverified},
	} {
		cached, err := withoutKey.cachedCopyOf(response, test.written)
		if !errors.Is(err, test.want) || (cached.observed != nil) != (test.want == nil) {
			t.Errorf("%s: want %v, got %+v, %v", name, test.want, cached.observed, err)
		}
	}
}

func TestObserveObject(t *testing.T) {
	const ours = `{"f:spec":{"f:replicas":{}}}`
	for name, test := range map[string]struct {
		resource plan.Resource
		change   func(*unstructured.Unstructured)
		want     plan.TargetObject
	}{
		"as it is":        {plan.Resource{}, func(*unstructured.Unstructured) {}, plan.TargetObject{HasOwnerLabel: true, Terminating: true, AppliedFields: []byte(ours)}},
		"retained":        {plan.Resource{Retain: true}, func(*unstructured.Unstructured) {}, plan.TargetObject{HasOwnerLabel: true, Terminating: true, AppliedFields: []byte(ours), Retain: true}},
		"a container":     {plan.Resource{DeletesContents: true}, func(*unstructured.Unstructured) {}, plan.TargetObject{HasOwnerLabel: true, Terminating: true, AppliedFields: []byte(ours)}},
		"not terminating": {plan.Resource{}, func(o *unstructured.Unstructured) { o.SetDeletionTimestamp(nil) }, plan.TargetObject{HasOwnerLabel: true, AppliedFields: []byte(ours)}},
		"without label":   {plan.Resource{}, func(o *unstructured.Unstructured) { o.SetLabels(nil) }, plan.TargetObject{Terminating: true, AppliedFields: []byte(ours)}},
		"with another's label": {
			plan.Resource{}, func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{ownership.OwnerLabel: "x"}) },
			plan.TargetObject{Terminating: true, AppliedFields: []byte(ours)},
		},
		"without our entry": {plan.Resource{}, func(o *unstructured.Unstructured) { o.SetManagedFields(o.GetManagedFields()[:3]) }, plan.TargetObject{HasOwnerLabel: true, Terminating: true, Restored: true}},
		"without any entry": {plan.Resource{}, func(o *unstructured.Unstructured) { o.SetManagedFields(nil) }, plan.TargetObject{HasOwnerLabel: true, Terminating: true, Restored: true}},
	} {
		t.Run(name, func(t *testing.T) {
			object := fromTarget(t)
			test.change(object)
			test.want.UID, test.want.Mark = "u", someMark
			test.want.Health.Status = health.InProgress // a Deployment without a status
			if test.want.Terminating {
				test.want.Health.Status = health.Terminating
			}
			got, err := newObserver(test.resource).observeObject(object)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(*got, test.want) {
				t.Errorf("want %+v\ngot  %+v", test.want, *got)
			}
		})
	}
}

// The mark records whether the hub created the object, and the mailbox of its source. Both decide whether the hub may delete the
// object.
func TestObserveObjectOfFormerMailbox(t *testing.T) {
	adopted, former := someMark, someMark
	adopted.Adopted, former.Mailbox = true, "another"
	for name, test := range map[string]struct {
		resource       plan.Resource
		mark           ownership.Mark
		former, retain bool
	}{
		"created by the hub":     {plan.Resource{}, someMark, false, false},
		"adopted":                {plan.Resource{}, adopted, false, false},
		"a created container":    {plan.Resource{DeletesContents: true}, someMark, false, false},
		"a container to be kept": {plan.Resource{DeletesContents: true, Retain: true}, someMark, false, true},
		"an adopted container":   {plan.Resource{DeletesContents: true}, adopted, false, true},
		"from a former mailbox":  {plan.Resource{}, former, true, false},
	} {
		object := fromTarget(t)
		addMark(object, test.mark)
		got, err := newObserver(test.resource).observeObject(object)
		if err != nil || got.FormerMailbox != test.former || got.Retain != test.retain || got.Mark != test.mark {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

func TestObserveObjectRefuses(t *testing.T) {
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
	foreign, upsynced := someMark, someMark
	foreign.Hub, upsynced.Direction = "another", ownership.DirectionUp
	for name, test := range map[string]struct {
		change  func(*unstructured.Unstructured)
		want    error
		ensured bool
	}{
		"only labelled":             {func(o *unstructured.Unstructured) { o.SetAnnotations(nil) }, ownership.ErrUnmarked, false},
		"marked by another hub":     {marked(testOwner.Seal(foreign)), ownership.ErrForeign, false},
		"a copy":                    {func(o *unstructured.Unstructured) { o.SetName("copy") }, ownership.ErrCopied, false},
		"of another kind":           {func(o *unstructured.Unstructured) { o.SetKind("ReplicaSet") }, ownership.ErrCopied, false},
		"marked in another version": {marked(`{"v": 3}`), ownership.ErrUnknownVersion, false},
		"an upsynced object's mark": {marked(testOwner.Seal(upsynced)), ownership.ErrCopied, false},
		"ensured by us":             {ensuredBy(testOwner.EnsuredValue(someMark.Self)), ownership.ErrUnmarked, true},
		"ensured by another":        {ensuredBy("x"), ownership.ErrUnmarked, false},
		"ensured by us, then another": {func(o *unstructured.Unstructured) {
			ensuredBy(testOwner.EnsuredValue(someMark.Self))(o)
			addMark(o, foreign)
		}, ownership.ErrForeign, false},
	} {
		t.Run(name, func(t *testing.T) {
			controller, object := newObserver(plan.Resource{}), fromTarget(t)
			test.change(object)
			observed, err := controller.observeObject(object)
			if observed != nil || !errors.Is(err, test.want) {
				t.Errorf("want %v, got %+v, %v", test.want, observed, err)
			}
			if got := isEnsured(testOwner, object, err); got != test.ensured {
				t.Errorf("ensured: want %v, got %v", test.ensured, got)
			}
		})
	}
}

// An object with a label, mark or annotation of any hub is not upsynced.
func TestIsNeverUpsynced(t *testing.T) {
	neighbour := testOwner
	neighbour.SyncTarget = "neighbour"
	theirs := someMark
	theirs.SyncTarget = neighbour.SyncTarget
	for name, test := range map[string]struct {
		labels, annotations map[string]string
		want                bool
	}{
		"without a mark":                    {nil, nil, false},
		"the hub's":                         {map[string]string{ownership.OwnerLabel: testOwner.LabelValue()}, map[string]string{ownership.MarkAnnotation: testOwner.Seal(someMark)}, true},
		"the hub's, without its label":      {nil, map[string]string{ownership.MarkAnnotation: testOwner.Seal(someMark)}, true},
		"derived, with the hub's label":     {map[string]string{ownership.OwnerLabel: testOwner.LabelValue()}, nil, false},
		"with a forged mark of the hub":     {nil, map[string]string{ownership.MarkAnnotation: someMark.String()}, true},
		"another hub's":                     {map[string]string{ownership.OwnerLabel: neighbour.LabelValue()}, map[string]string{ownership.MarkAnnotation: neighbour.Seal(theirs)}, true},
		"another hub's, without its label":  {nil, map[string]string{ownership.MarkAnnotation: neighbour.Seal(theirs)}, true},
		"another hub's, without its mark":   {map[string]string{ownership.OwnerLabel: neighbour.LabelValue()}, nil, true},
		"another hub's, with a copied mark": {map[string]string{ownership.OwnerLabel: neighbour.LabelValue()}, map[string]string{ownership.MarkAnnotation: testOwner.Seal(copyOf(someMark))}, true},
		"with a forged mark of another":     {nil, map[string]string{ownership.MarkAnnotation: theirs.String()}, true},
		"with an empty label":               {map[string]string{ownership.OwnerLabel: ""}, nil, true},
		"ensured by us":                     {nil, map[string]string{ownership.EnsuredAnnotation: testOwner.EnsuredValue(someMark.Self)}, false},
		"ensured by another":                {nil, map[string]string{ownership.EnsuredAnnotation: neighbour.EnsuredValue(someMark.Self)}, true},
		"with a wrong ensured value":        {nil, map[string]string{ownership.EnsuredAnnotation: testOwner.LabelValue()}, true},
	} {
		object := fromTarget(t)
		object.SetLabels(test.labels)
		object.SetAnnotations(test.annotations)
		if got := plan.IsNeverUpsynced(testOwner, object); got != test.want {
			t.Errorf("%s: want %t, got %t", name, test.want, got)
		}
	}
}

// copyOf returns the mark of another object, as a controller copies it to a child.
func copyOf(mark ownership.Mark) ownership.Mark {
	mark.Self.Name = "original"
	return mark
}

// The index lists objects under a value of their own if their mark names this hub but does not verify.
func TestIndexOfUnverifiedObjects(t *testing.T) {
	object := fromTarget(t)
	for mark, want := range map[string][]string{
		testOwner.Seal(someMark):         {"shop/till"},
		someMark.String():                {unverifiedIndexValue},
		testOwner.Seal(copyOf(someMark)): nil,
	} {
		object.SetAnnotations(map[string]string{ownership.MarkAnnotation: mark})
		controller := newObserver(plan.Resource{})
		cached, _ := controller.cachedCopyOf(object, verifiedMark{})
		if got, err := controller.indexBySource(cached); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: want %v, got %v, %v", mark, want, got, err)
		}
	}
}

func addMark(object *unstructured.Unstructured, mark ownership.Mark) {
	withEntry(object.SetAnnotations, object.GetAnnotations(), ownership.MarkAnnotation, testOwner.Seal(mark))
}

func TestSelector(t *testing.T) {
	selector, err := labels.Parse(Selector(testOwner))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		labels labels.Set
		want   bool
	}{
		"the hub's":                {labels.Set{ownership.OwnerLabel: testOwner.LabelValue(), "app": "x"}, true},
		"another SyncTarget's":     {labels.Set{ownership.OwnerLabel: ownership.Owner{Hub: testOwner.Hub, SyncTarget: "x"}.LabelValue()}, false},
		"another hub's":            {labels.Set{ownership.OwnerLabel: ownership.Owner{Hub: "x", SyncTarget: testOwner.SyncTarget}.LabelValue()}, false},
		"without a mark":           {labels.Set{"app": "x"}, false},
		"under an empty owner":     {labels.Set{ownership.OwnerLabel: ""}, false},
		"without any label":        {nil, false},
		"the value of another key": {labels.Set{"app": testOwner.LabelValue()}, false},
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
		controller := &Controller{Options: Options{Resource: plan.Resource{GroupVersionResource: resource, Kind: "K"}}}
		got := controller.Resource.SelectionObject(object)
		if got.SecretType != want || got.Resource != resource || got.Kind != "K" || got.Namespace != "a" || got.Name != "x" ||
			got.Labels["l"] != "1" || got.Annotations["n"] != "2" {
			t.Errorf("%v: got %+v", resource, got)
		}
	}
}
