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
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/targets/metadatapatch"
	"github.com/synchub-dev/synchub/test/fixtures"
)

var configMapsV1 = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// configMap is a source in the mailbox, in the namespace default.
func configMap(t *testing.T, name, content string) *unstructured.Unstructured {
	t.Helper()
	return fixtures.Object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+", namespace: default, uid: source}, "+content+"}")
}

// createForeign makes an object of the target that is not the hub's, as most clients do: not by applying it.
func createForeign(t *testing.T, name, annotations, content string) {
	t.Helper()
	object := fixtures.Object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+", annotations: {"+annotations+"}}, "+content+"}")
	if _, err := administrator(t).Resource(configMapsV1).Namespace("default").Create(t.Context(), object, metav1.CreateOptions{FieldManager: "theirs"}); err != nil {
		t.Fatal(err)
	}
}

func TestAdoption(t *testing.T) {
	connection := connect(t)
	foreign := someMark
	foreign.Hub = "another"
	foreign.Self = ownership.Self{Kind: "ConfigMap", Namespace: "default", Name: "SELF"}
	const kubeStellars = "edge.kubestellar.io/downsynced: ConfigMap/default/"
	// In annotations SELF stands for the name of the object.
	for name, test := range map[string]struct {
		policy             synchubv1alpha1.AdoptionPolicy
		annotations, there string
		adopted            bool
	}{
		"never":              {synchubv1alpha1.AdoptionNever, "", "data: {a: x}", false},
		"by-default":         {"", "", "data: {a: x}", false},
		"always":             {synchubv1alpha1.AdoptionAlways, "", "data: {a: w, b: z}", true},
		"identical":          {synchubv1alpha1.AdoptionIfIdentical, "", "data: {a: x}", true},
		"identical-and-more": {synchubv1alpha1.AdoptionIfIdentical, "note: x", "data: {a: x, b: z}", true},
		"not-identical":      {synchubv1alpha1.AdoptionIfIdentical, "", "data: {a: w}", false},
		"kubestellars":       {synchubv1alpha1.AdoptionKubeStellar, kubeStellars + "SELF", "data: {a: w, b: z}", true},
		"kubestellars-copy":  {synchubv1alpha1.AdoptionKubeStellar, kubeStellars + "original", "data: {a: x}", false},
		"nobodys":            {synchubv1alpha1.AdoptionKubeStellar, "", "data: {a: x}", false},
		"foreign":            {synchubv1alpha1.AdoptionAlways, "synchub.dev/mark: '" + foreign.String() + "'", "data: {a: x}", false},
		"unreadable":         {synchubv1alpha1.AdoptionAlways, "synchub.dev/mark: '{}'", "data: {a: x}", false},
	} {
		t.Run(name, func(t *testing.T) {
			name := unique(name)
			createForeign(t, name, strings.ReplaceAll(test.annotations, "SELF", name), test.there)
			hand := newTargetHarness(t, connection, configMapsV1, "ConfigMap", plan.Resource{Adoption: test.policy})
			source := configMap(t, name, "data: {a: x}")
			before := hand.get(source)
			err := hand.applySource(source, ownership.PolicyDelete)
			after := hand.get(source)
			if !test.adopted {
				if ReasonFor(err) != plan.ReasonConflict || !reflect.DeepEqual(after, before) {
					t.Errorf("%v; the object was %v\nand is %v", err, before, after)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if after.GetUID() != before.GetUID() {
				t.Errorf("it was replaced: %v", after)
			}
			checkAdopted(t, hand, after, strings.Contains(test.there, "b:"))
		})
	}
}

// checkAdopted fails the test unless the object, in which the mailbox wants {a: x}, is ours but for b, which stays as somebody
// else has set it; what is taken away in the mailbox goes, though he has set it, too.
func checkAdopted(t *testing.T, hand *targetHarness, object *unstructured.Unstructured, hasB bool) {
	t.Helper()
	observed, err := hand.view.observeObject(object)
	if err != nil || !observed.Mark.Adopted || !observed.HasOwnerLabel || len(kubeStellarMarks(object)) > 0 {
		t.Fatalf("%+v, %v of %v", observed, err, object)
	}
	holds := func(want map[string]string) {
		t.Helper()
		if hasB {
			want["b"] = "z"
		}
		if data, _, _ := unstructured.NestedStringMap(hand.get(object).Object, "data"); !maps.Equal(data, want) {
			t.Errorf("want %v, got %v", want, data)
		}
	}
	holds(map[string]string{"a": "x"})
	desired := hand.desired(configMap(t, object.GetName(), "data: {c: x}"), ownership.PolicyDelete).AsAdopted()
	if err := hand.apply(t.Context(), hand.observeTarget(object), desired, object.GetUID()); err != nil {
		t.Fatal(err)
	}
	holds(map[string]string{"c": "x"})
}

// An object that is only to be created is marked when it is adopted, and otherwise left as it is.
func TestAdoptionOfWhatIsLeftAlone(t *testing.T) {
	name := unique("left-alone")
	createForeign(t, name, "edge.kubestellar.io/downsynced: ConfigMap/default/"+name, "data: {a: theirs}")
	hand := newTargetHarness(t, connect(t), configMapsV1, "ConfigMap", plan.Resource{Adoption: synchubv1alpha1.AdoptionKubeStellar})
	source := configMap(t, name, "data: {a: ours}")
	if err := hand.applySource(source, ownership.PolicyCreateOnly); err != nil {
		t.Fatal(err)
	}
	after := hand.get(source)
	observed, err := hand.view.observeObject(after)
	data, _, _ := unstructured.NestedStringMap(after.Object, "data")
	if err != nil || !observed.Mark.Adopted || observed.Mark.Policy != ownership.PolicyCreateOnly || !observed.HasOwnerLabel || data["a"] != "theirs" || len(kubeStellarMarks(after)) > 0 {
		t.Errorf("%+v, %v of %v", observed, err, after)
	}
}

// loseLabel takes the label off an object, so that no cache of the hub shows it any more.
func loseLabel(t *testing.T, hand *targetHarness, object *unstructured.Unstructured) {
	t.Helper()
	if err := hand.objects.RemoveMetadata(t.Context(), configMapsV1, keyOf(object), object.GetUID(), []string{ownership.OwnerLabel}, nil); err != nil {
		t.Fatal(err)
	}
}

// Our own objects are taken back though the label was taken off.
func TestReclaim(t *testing.T) {
	hand, name := newTargetHarness(t, connect(t), configMapsV1, "ConfigMap", plan.Resource{}), unique("reclaimed")
	if err := hand.applySource(configMap(t, name, "data: {a: x}"), ownership.PolicyDelete); err != nil {
		t.Fatal(err)
	}
	first := hand.get(configMap(t, name, ""))
	loseLabel(t, hand, first)
	if err := hand.applySource(configMap(t, name, "data: {a: w}"), ownership.PolicyDelete); err != nil {
		t.Fatal(err)
	}
	observed, err := hand.view.observeObject(hand.get(first))
	if err != nil || !observed.HasOwnerLabel || observed.Mark.Adopted || observed.UID != first.GetUID() {
		t.Fatalf("%+v, %v", observed, err)
	}
	// One that is to be left alone gets its marks back, and nothing else.
	loseLabel(t, hand, first)
	if err := hand.applySource(configMap(t, name, "data: {a: z}"), ownership.PolicyCreateOnly); err != nil {
		t.Fatal(err)
	}
	last := hand.get(first)
	data, _, _ := unstructured.NestedStringMap(last.Object, "data")
	remarked, err := hand.view.observeObject(last)
	if err != nil || !remarked.HasOwnerLabel || remarked.Mark.Policy != ownership.PolicyCreateOnly || remarked.Mark.Hash != observed.Mark.Hash || data["a"] != "w" {
		t.Errorf("%+v, %v of %v", remarked, err, data)
	}
}

// A mark from before there were seals counts only on an object that is what the hub wrote. One that somebody else wrote never does.
func TestReclaimByOtherMarks(t *testing.T) {
	connection := connect(t)
	for name, test := range map[string]struct {
		adoption synchubv1alpha1.AdoptionPolicy
		mark     func(ownership.Mark) string
		source   string
		taken    bool
		says     string
	}{
		"forged": {synchubv1alpha1.AdoptionAlways, ownership.Mark.String, "data: {a: x}", false, "take the annotation " + ownership.MarkAnnotation + " off"},
		"another-key": {synchubv1alpha1.AdoptionAlways, func(mark ownership.Mark) string {
			return ownership.Owner{Sealer: ownership.NewSealer([]byte("x"))}.Seal(mark)
		}, "data: {a: x}", false, "before its hash key was replaced"},
	} {
		t.Run(name, func(t *testing.T) {
			hand, name := newTargetHarness(t, connection, configMapsV1, "ConfigMap", plan.Resource{Adoption: test.adoption}), unique(name)
			if err := hand.applySource(configMap(t, name, "data: {a: x}"), ownership.PolicyDelete); err != nil {
				t.Fatal(err)
			}
			first := hand.get(configMap(t, name, ""))
			observed, err := hand.view.observeObject(first)
			if err != nil {
				t.Fatal(err)
			}
			if err := hand.patchMetadata(t.Context(), hand.observeTarget(first), first.GetUID(), metadatapatch.Patch{SetAnnotations: map[string]string{ownership.MarkAnnotation: test.mark(observed.Mark)}}); err != nil {
				t.Fatal(err)
			}
			before := hand.get(first)
			err = hand.create(t.Context(), plan.Copy{API: hand.target.TargetAPI, Key: keyOf(first)}, hand.desired(configMap(t, name, test.source), ownership.PolicyDelete))
			after := hand.get(first)
			if test.taken {
				if _, unverified := hand.view.observeObject(after); err != nil || unverified != nil || after.GetUID() != first.GetUID() {
					t.Errorf("%v; %v of %v", err, unverified, after)
				}
				return
			}
			if ReasonFor(err) != plan.ReasonConflict || !strings.Contains(err.Error(), test.says) || !reflect.DeepEqual(after, before) {
				t.Errorf("%v; the object was %v\nand is %v", err, before, after)
			}
		})
	}
}

// What stays only because others would go with it is taken back when its source is made again. What was to stay anyway, or was
// somebody else's before, is not.
func TestReclaimsReleasedObjects(t *testing.T) {
	connection := connect(t)
	for name, test := range map[string]struct {
		policy  ownership.Policy
		adopted bool
		back    bool
	}{
		"made":     {ownership.PolicyDelete, false, true},
		"orphaned": {ownership.PolicyOrphan, false, false},
		"adopted":  {ownership.PolicyDelete, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			hand := newTargetHarness(t, connection, namespaces, "Namespace", plan.Resource{DeletesContents: true, Retain: true})
			source := fixtures.Object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+unique(name)+", uid: source}}")
			desired := hand.desired(source, test.policy)
			if test.adopted {
				desired = desired.AsAdopted()
			}
			if err := hand.create(t.Context(), plan.Copy{API: hand.target.TargetAPI, Key: keyOf(source)}, desired); err != nil {
				t.Fatal(err)
			}
			first := hand.observeTarget(hand.get(source))
			if err := hand.release(t.Context(), first); err != nil {
				t.Fatal(err)
			}
			released := hand.get(source)
			_, reason := hand.view.observeObject(released)
			if !errors.Is(reason, ownership.ErrUnmarked) || released.GetLabels()[ownership.OwnerLabel] == hand.owner.LabelValue() || isEnsured(testOwner, released, reason) != test.back {
				t.Fatalf("%v of %v", reason, released)
			}
			source.SetUID("again")
			checkTakenBack(t, hand, source, first.Observed.UID, test.back)
		})
	}
}

// checkTakenBack fails the test unless the object that has the UID becomes ours again, or else is left alone and reported.
func checkTakenBack(t *testing.T, hand *targetHarness, source *unstructured.Unstructured, uid types.UID, back bool) {
	t.Helper()
	err := hand.applySource(source, ownership.PolicyDelete)
	observed, reason := hand.view.observeObject(hand.get(source))
	if back {
		if err != nil || reason != nil || observed.UID != uid || observed.Mark.Adopted || !observed.HasOwnerLabel {
			t.Errorf("%v, %v, %+v", err, reason, observed)
		}
		return
	}
	if ReasonFor(err) != plan.ReasonConflict || !strings.Contains(err.Error(), "spec.adoption") || reason == nil {
		t.Errorf("%v, %+v", err, observed)
	}
}

// What came from another object of the mailbox is not taken, whatever may be adopted.
func TestReclaimsNothingOfAnotherSource(t *testing.T) {
	hand := newTargetHarness(t, connect(t), configMapsV1, "ConfigMap", plan.Resource{Adoption: synchubv1alpha1.AdoptionAlways})
	source := configMap(t, unique("of-another"), "data: {a: x}")
	if err := hand.applySource(source, ownership.PolicyDelete); err != nil {
		t.Fatal(err)
	}
	desired := hand.desired(source, ownership.PolicyDelete)
	desired.Mark.Source.Name = "another"
	err := hand.create(t.Context(), plan.Copy{API: hand.target.TargetAPI, Key: keyOf(source)}, desired)
	var taken *nameTakenError
	if !errors.As(err, &taken) || taken.ref != hand.target.Ref(keyOf(source)) {
		t.Errorf("got %v", err)
	}
}

// What cannot be changed is deleted, to be made anew, if that is allowed and the target has found the new one valid.
func TestReplace(t *testing.T) {
	t.Parallel()
	withRules(t)
	connection := connect(t)
	gauges := schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "gauges"}
	gauge := func(name, spec string) *unstructured.Unstructured {
		return fixtures.Object(t, "{apiVersion: example.org/v1, kind: Gauge, metadata: {name: "+name+", namespace: default, uid: source}, spec: {"+spec+"}}")
	}
	for name, test := range map[string]struct {
		resource plan.Resource
		next     string
		replaced bool
	}{
		"replaced":          {plan.Resource{Replace: true}, "class: b", true},
		"not-to-be":         {plan.Resource{}, "class: b", false},
		"not-valid":         {plan.Resource{Replace: true}, "class: b, limit: 10", false},
		"not-a-container":   {plan.Resource{Replace: true, DeletesContents: true}, "class: b", false},
		"retained-and-more": {plan.Resource{Replace: true, DeletesContents: true, Retain: true}, "class: b", false},
	} {
		t.Run(name, func(t *testing.T) {
			hand, name := newTargetHarness(t, connection, gauges, "Gauge", test.resource), unique(name)
			if err := hand.applySource(gauge(name, "class: a"), ownership.PolicyDelete); err != nil {
				t.Fatal(err)
			}
			first := hand.get(gauge(name, ""))
			desired := hand.desired(gauge(name, test.next), ownership.PolicyDelete)
			err := hand.apply(t.Context(), hand.observeTarget(first), desired, first.GetUID())
			if test.replaced {
				if err != nil {
					t.Fatal(err)
				}
				if _, err := connection.Objects.Get(t.Context(), gauges, keyOf(first)); !apierrors.IsNotFound(err) {
					t.Fatalf("it is still there: %v", err)
				}
				if _, deleted := hand.view.writes.Current(hand.target.Ref(keyOf(first)), &cachedCopy{Unstructured: first}); !deleted {
					t.Error("that it was deleted is not remembered")
				}
				if err := hand.applySource(gauge(name, test.next), ownership.PolicyDelete); err != nil {
					t.Fatal(err)
				}
				return
			}
			if ReasonFor(err) != plan.ReasonImmutable || !strings.Contains(err.Error(), "spec.class") {
				t.Errorf("want it refused, got %v", err)
			}
			if got := hand.get(first); got.GetUID() != first.GetUID() || got.GetResourceVersion() != first.GetResourceVersion() {
				t.Errorf("it was touched: %v", got)
			}
		})
	}
}

// A missing namespace is made for its contents, and says so; the rest of the names is left to whoever has them.
func TestEnsureNamespace(t *testing.T) {
	connection := connect(t)
	hand := newTargetHarness(t, connection, configMapsV1, "ConfigMap", plan.Resource{})
	source := configMap(t, "first", "data: {a: x}")
	ensured, other := unique("ensured"), unique("theirs")
	source.SetNamespace(ensured)
	if err := hand.applySource(source, ownership.PolicyDelete); err != nil {
		t.Fatal(err)
	}
	namespace, err := connection.Objects.Get(requestclass.With(t.Context(), requestclass.Extra), namespaces, keyOf(fixtures.Object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+ensured+"}}")))
	if err != nil {
		t.Fatal(err)
	}
	owner := newTargetHarness(t, connection, namespaces, "Namespace", plan.Resource{DeletesContents: true})
	_, reason := owner.view.observeObject(namespace)
	if !isEnsured(testOwner, namespace, reason) {
		t.Fatalf("%v of %v", reason, namespace)
	}
	// One that is selected later becomes ours, and goes with its source since the hub has made it.
	if err := owner.applySource(fixtures.Object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+ensured+", uid: source}}"), ownership.PolicyDelete); err != nil {
		t.Fatal(err)
	}
	if observed, err := owner.view.observeObject(owner.get(namespace)); err != nil || observed.Retain || observed.Mark.Adopted {
		t.Errorf("%+v, %v", observed, err)
	}
	// One that was there before is not.
	put(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+other+"}}")
	found := fixtures.Object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+other+", uid: source}}")
	if err := owner.applySource(found, ownership.PolicyDelete); ReasonFor(err) != plan.ReasonConflict {
		t.Errorf("a namespace of somebody else: %v", err)
	}
	adopting := newTargetHarness(t, connection, namespaces, "Namespace", plan.Resource{DeletesContents: true, Adoption: synchubv1alpha1.AdoptionAlways})
	if err := adopting.applySource(found, ownership.PolicyDelete); err != nil {
		t.Fatal(err)
	}
	if observed, err := adopting.view.observeObject(adopting.get(found)); err != nil || !observed.Retain {
		t.Errorf("an adopted namespace would be removed with its contents: %+v, %v", observed, err)
	}
}

// Marks that are written or taken off leave the rest as it is.
func TestRemarkAndRelease(t *testing.T) {
	hand := newTargetHarness(t, connect(t), configMapsV1, "ConfigMap", plan.Resource{})
	name := unique("released")
	source := configMap(t, name, "data: {a: x}")
	if err := hand.applySource(source, ownership.PolicyDelete); err != nil {
		t.Fatal(err)
	}
	here := hand.observeTarget(hand.get(source))
	desired := hand.desired(configMap(t, name, "data: {a: w}"), ownership.PolicyCreateOnly)
	if err := hand.updateMark(t.Context(), here, desired, here.Observed); err != nil {
		t.Fatal(err)
	}
	marked := hand.observeTarget(hand.get(source))
	data, _, _ := unstructured.NestedStringMap(marked.Object.Object, "data")
	want := desired.Mark
	want.Hash = here.Observed.Mark.Hash
	if marked.Observed == nil || marked.Observed.Mark != want || data["a"] != "x" || marked.Object.GetAnnotations()[ownership.OverwriteAnnotation] != "false" {
		t.Errorf("%+v of %v", marked.Observed, marked.Object)
	}
	if err := hand.release(t.Context(), marked); err != nil {
		t.Fatal(err)
	}
	released := hand.get(source)
	if _, err := hand.view.observeObject(released); !errors.Is(err, ownership.ErrUnmarked) || len(released.GetLabels()) > 0 {
		t.Errorf("%v of %v", err, released)
	}
	// An object that was replaced meanwhile is not touched.
	marked.Observed.UID = "00000000-0000-0000-0000-000000000000"
	if err := hand.patchMetadata(t.Context(), marked, marked.Observed.UID, metadatapatch.Patch{SetLabels: map[string]string{"a": "b"}}); err == nil {
		t.Error("another object was edited")
	}
	if labels := hand.get(source).GetLabels(); len(labels) > 0 {
		t.Errorf("the labels are %v", labels)
	}
}

// What is not ours is never replaced, whatever may be adopted and replaced: a field that cannot be changed is reported, and
// nothing of the object is touched, its owners neither.
func TestAdoptionReplacesNothing(t *testing.T) {
	for _, policy := range []synchubv1alpha1.AdoptionPolicy{synchubv1alpha1.AdoptionAlways, synchubv1alpha1.AdoptionIfIdentical} {
		name := unique("unchangeable")
		createForeign(t, name, "", "data: {a: w}, immutable: true")
		hand := newTargetHarness(t, connect(t), configMapsV1, "ConfigMap", plan.Resource{Adoption: policy, Replace: true})
		source := configMap(t, name, "data: {a: x}, immutable: true")
		before := hand.get(source)
		want := map[synchubv1alpha1.AdoptionPolicy]string{synchubv1alpha1.AdoptionAlways: plan.ReasonImmutable, synchubv1alpha1.AdoptionIfIdentical: plan.ReasonConflict}[policy]
		if err := hand.applySource(source, ownership.PolicyDelete); ReasonFor(err) != want {
			t.Errorf("%s: want the reason %s, got %v", policy, want, err)
		}
		if after := hand.get(source); !reflect.DeepEqual(after, before) {
			t.Errorf("%s: the object was %v\nand is %v", policy, before, after)
		}
		// Somebody makes the object unchangeable just after the dry run.
		desired := hand.desired(source, ownership.PolicyDelete)
		if err := hand.applyInPlace(t.Context(), hand.observeTarget(source), desired, before.GetUID()); ReasonFor(err) != plan.ReasonImmutable {
			t.Errorf("%s: want the reason %s, got %v", policy, plan.ReasonImmutable, err)
		}
		if after := hand.get(source); after.GetUID() != before.GetUID() || after.GetDeletionTimestamp() != nil {
			t.Errorf("%s: %v was replaced by %v", policy, before, after)
		}
	}
}
