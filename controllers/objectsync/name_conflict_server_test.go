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

// configMap returns a source in the mailbox, in the namespace default.
func configMap(t *testing.T, name, content string) *unstructured.Unstructured {
	t.Helper()
	return fixtures.Object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+", namespace: default, uid: source}, "+content+"}")
}

// createForeign creates a target object that is not the hub's, without server-side apply like most clients.
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
	// In annotations, SELF stands for the name of the object.
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
			harness := newTargetHarness(t, connection, configMapsV1, "ConfigMap", plan.Resource{Adoption: test.policy})
			source := configMap(t, name, "data: {a: x}")
			before := harness.get(source)
			err := harness.applySource(source, ownership.PolicyDelete)
			after := harness.get(source)
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
				t.Errorf("the object was replaced: %v", after)
			}
			checkAdopted(t, harness, after, strings.Contains(test.there, "b:"))
		})
	}
}

// checkAdopted fails the test unless the object has the mailbox's {a: x} and is adopted, except for b, which another client has
// set. A field that is removed in the mailbox is deleted, although the other client has set it too.
func checkAdopted(t *testing.T, harness *targetHarness, object *unstructured.Unstructured, hasB bool) {
	t.Helper()
	observed, err := harness.view.observeObject(object)
	if err != nil || !observed.Mark.Adopted || !observed.HasOwnerLabel || len(kubeStellarMarks(object)) > 0 {
		t.Fatalf("%+v, %v of %v", observed, err, object)
	}
	holds := func(want map[string]string) {
		t.Helper()
		if hasB {
			want["b"] = "z"
		}
		if data, _, _ := unstructured.NestedStringMap(harness.get(object).Object, "data"); !maps.Equal(data, want) {
			t.Errorf("want %v, got %v", want, data)
		}
	}
	holds(map[string]string{"a": "x"})
	desired := harness.desired(configMap(t, object.GetName(), "data: {c: x}"), ownership.PolicyDelete).AsAdopted()
	if err := harness.apply(t.Context(), harness.observeTarget(object), desired, object.GetUID()); err != nil {
		t.Fatal(err)
	}
	holds(map[string]string{"c": "x"})
}

// An adopted object that is only to be created gets marks, and no other change.
func TestAdoptionOfCreateOnlyObjects(t *testing.T) {
	name := unique("left-alone")
	createForeign(t, name, "edge.kubestellar.io/downsynced: ConfigMap/default/"+name, "data: {a: theirs}")
	harness := newTargetHarness(t, connect(t), configMapsV1, "ConfigMap", plan.Resource{Adoption: synchubv1alpha1.AdoptionKubeStellar})
	source := configMap(t, name, "data: {a: ours}")
	if err := harness.applySource(source, ownership.PolicyCreateOnly); err != nil {
		t.Fatal(err)
	}
	after := harness.get(source)
	observed, err := harness.view.observeObject(after)
	data, _, _ := unstructured.NestedStringMap(after.Object, "data")
	if err != nil || !observed.Mark.Adopted || observed.Mark.Policy != ownership.PolicyCreateOnly || !observed.HasOwnerLabel || data["a"] != "theirs" || len(kubeStellarMarks(after)) > 0 {
		t.Errorf("%+v, %v of %v", observed, err, after)
	}
}

// loseLabel removes the label from an object, so that the hub's caches no longer contain it.
func loseLabel(t *testing.T, harness *targetHarness, object *unstructured.Unstructured) {
	t.Helper()
	if err := harness.objects.RemoveMetadata(t.Context(), configMapsV1, keyOf(object), object.GetUID(), []string{ownership.OwnerLabel}, nil); err != nil {
		t.Fatal(err)
	}
}

// The hub takes back its own objects if the label was removed.
func TestReclaim(t *testing.T) {
	harness, name := newTargetHarness(t, connect(t), configMapsV1, "ConfigMap", plan.Resource{}), unique("reclaimed")
	if err := harness.applySource(configMap(t, name, "data: {a: x}"), ownership.PolicyDelete); err != nil {
		t.Fatal(err)
	}
	first := harness.get(configMap(t, name, ""))
	loseLabel(t, harness, first)
	if err := harness.applySource(configMap(t, name, "data: {a: w}"), ownership.PolicyDelete); err != nil {
		t.Fatal(err)
	}
	observed, err := harness.view.observeObject(harness.get(first))
	if err != nil || !observed.HasOwnerLabel || observed.Mark.Adopted || observed.UID != first.GetUID() {
		t.Fatalf("%+v, %v", observed, err)
	}
	// An object that is only to be created gets its marks back, and no other change.
	loseLabel(t, harness, first)
	if err := harness.applySource(configMap(t, name, "data: {a: z}"), ownership.PolicyCreateOnly); err != nil {
		t.Fatal(err)
	}
	last := harness.get(first)
	data, _, _ := unstructured.NestedStringMap(last.Object, "data")
	remarked, err := harness.view.observeObject(last)
	if err != nil || !remarked.HasOwnerLabel || remarked.Mark.Policy != ownership.PolicyCreateOnly || remarked.Mark.Hash != observed.Mark.Hash || data["a"] != "w" {
		t.Errorf("%+v, %v of %v", remarked, err, data)
	}
}

// The hub does not take back an object whose mark does not verify, even if adoption is allowed.
func TestReclaimByOtherMarks(t *testing.T) {
	connection := connect(t)
	for name, test := range map[string]struct {
		adoption synchubv1alpha1.AdoptionPolicy
		mark     func(ownership.Mark) string
		source   string
		taken    bool
		message  string
	}{
		"forged": {synchubv1alpha1.AdoptionAlways, ownership.Mark.String, "data: {a: x}", false, "take the annotation " + ownership.MarkAnnotation + " off"},
		"another-key": {synchubv1alpha1.AdoptionAlways, func(mark ownership.Mark) string {
			return ownership.Owner{Sealer: ownership.NewSealer([]byte("x"))}.Seal(mark)
		}, "data: {a: x}", false, "before its hash key was replaced"},
	} {
		t.Run(name, func(t *testing.T) {
			harness, name := newTargetHarness(t, connection, configMapsV1, "ConfigMap", plan.Resource{Adoption: test.adoption}), unique(name)
			if err := harness.applySource(configMap(t, name, "data: {a: x}"), ownership.PolicyDelete); err != nil {
				t.Fatal(err)
			}
			first := harness.get(configMap(t, name, ""))
			observed, err := harness.view.observeObject(first)
			if err != nil {
				t.Fatal(err)
			}
			if err := harness.patchMetadata(t.Context(), harness.observeTarget(first), first.GetUID(), metadatapatch.Patch{SetAnnotations: map[string]string{ownership.MarkAnnotation: test.mark(observed.Mark)}}); err != nil {
				t.Fatal(err)
			}
			before := harness.get(first)
			err = harness.create(t.Context(), plan.Copy{API: harness.target.TargetAPI, Key: keyOf(first)}, harness.desired(configMap(t, name, test.source), ownership.PolicyDelete))
			after := harness.get(first)
			if test.taken {
				if _, unverified := harness.view.observeObject(after); err != nil || unverified != nil || after.GetUID() != first.GetUID() {
					t.Errorf("%v; %v of %v", err, unverified, after)
				}
				return
			}
			if ReasonFor(err) != plan.ReasonConflict || !strings.Contains(err.Error(), test.message) || !reflect.DeepEqual(after, before) {
				t.Errorf("%v; the object was %v\nand is %v", err, before, after)
			}
		})
	}
}

// An object that was released only because its deletion would delete other objects is taken back when its source is created
// again. Orphaned and adopted objects are not.
func TestReclaimsReleasedObjects(t *testing.T) {
	connection := connect(t)
	for name, test := range map[string]struct {
		policy  ownership.Policy
		adopted bool
		reclaim bool
	}{
		"made":     {ownership.PolicyDelete, false, true},
		"orphaned": {ownership.PolicyOrphan, false, false},
		"adopted":  {ownership.PolicyDelete, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			harness := newTargetHarness(t, connection, namespaces, "Namespace", plan.Resource{DeletesContents: true, Retain: true})
			source := fixtures.Object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+unique(name)+", uid: source}}")
			desired := harness.desired(source, test.policy)
			if test.adopted {
				desired = desired.AsAdopted()
			}
			if err := harness.create(t.Context(), plan.Copy{API: harness.target.TargetAPI, Key: keyOf(source)}, desired); err != nil {
				t.Fatal(err)
			}
			first := harness.observeTarget(harness.get(source))
			if err := harness.release(t.Context(), first); err != nil {
				t.Fatal(err)
			}
			released := harness.get(source)
			_, reason := harness.view.observeObject(released)
			if !errors.Is(reason, ownership.ErrUnmarked) || released.GetLabels()[ownership.OwnerLabel] == harness.owner.LabelValue() || isEnsured(testOwner, released, reason) != test.reclaim {
				t.Fatalf("%v of %v", reason, released)
			}
			source.SetUID("again")
			checkTakenBack(t, harness, source, first.Observed.UID, test.reclaim)
		})
	}
}

// checkTakenBack fails the test unless the hub takes back the object of the UID or, if back is false, reports a conflict.
func checkTakenBack(t *testing.T, harness *targetHarness, source *unstructured.Unstructured, uid types.UID, back bool) {
	t.Helper()
	err := harness.applySource(source, ownership.PolicyDelete)
	observed, reason := harness.view.observeObject(harness.get(source))
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

// A copy of another mailbox object is not taken over, whichever adoption policy applies.
func TestReclaimsNothingOfAnotherSource(t *testing.T) {
	harness := newTargetHarness(t, connect(t), configMapsV1, "ConfigMap", plan.Resource{Adoption: synchubv1alpha1.AdoptionAlways})
	source := configMap(t, unique("of-another"), "data: {a: x}")
	if err := harness.applySource(source, ownership.PolicyDelete); err != nil {
		t.Fatal(err)
	}
	desired := harness.desired(source, ownership.PolicyDelete)
	desired.Mark.Source.Name = "another"
	err := harness.create(t.Context(), plan.Copy{API: harness.target.TargetAPI, Key: keyOf(source)}, desired)
	var taken *nameTakenError
	if !errors.As(err, &taken) || taken.ref != harness.target.Ref(keyOf(source)) {
		t.Errorf("got %v", err)
	}
}

// A copy with a changed immutable field is deleted and created again, if the PublishedResource allows it and the target accepts
// the new object in a dry run.
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
			harness, name := newTargetHarness(t, connection, gauges, "Gauge", test.resource), unique(name)
			if err := harness.applySource(gauge(name, "class: a"), ownership.PolicyDelete); err != nil {
				t.Fatal(err)
			}
			first := harness.get(gauge(name, ""))
			desired := harness.desired(gauge(name, test.next), ownership.PolicyDelete)
			err := harness.apply(t.Context(), harness.observeTarget(first), desired, first.GetUID())
			if test.replaced {
				if err != nil {
					t.Fatal(err)
				}
				if _, err := connection.Objects.Get(t.Context(), gauges, keyOf(first)); !apierrors.IsNotFound(err) {
					t.Fatalf("the object still exists: %v", err)
				}
				if _, deleted := harness.view.writes.Current(harness.target.Ref(keyOf(first)), &cachedCopy{Unstructured: first}); !deleted {
					t.Error("the deletion is not recorded")
				}
				if err := harness.applySource(gauge(name, test.next), ownership.PolicyDelete); err != nil {
					t.Fatal(err)
				}
				return
			}
			if ReasonFor(err) != plan.ReasonImmutable || !strings.Contains(err.Error(), "spec.class") {
				t.Errorf("want a refusal, got %v", err)
			}
			if got := harness.get(first); got.GetUID() != first.GetUID() || got.GetResourceVersion() != first.GetResourceVersion() {
				t.Errorf("the object was changed: %v", got)
			}
		})
	}
}

// A missing namespace is created and marked as ensured. Existing namespaces of other clients are not taken over.
func TestEnsureNamespace(t *testing.T) {
	connection := connect(t)
	harness := newTargetHarness(t, connection, configMapsV1, "ConfigMap", plan.Resource{})
	source := configMap(t, "first", "data: {a: x}")
	ensured, other := unique("ensured"), unique("theirs")
	source.SetNamespace(ensured)
	if err := harness.applySource(source, ownership.PolicyDelete); err != nil {
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
	// An ensured namespace that is selected later is taken over, and is deleted with its source because the hub created it.
	if err := owner.applySource(fixtures.Object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+ensured+", uid: source}}"), ownership.PolicyDelete); err != nil {
		t.Fatal(err)
	}
	if observed, err := owner.view.observeObject(owner.get(namespace)); err != nil || observed.Retain || observed.Mark.Adopted {
		t.Errorf("%+v, %v", observed, err)
	}
	// An existing namespace is not taken over.
	put(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+other+"}}")
	found := fixtures.Object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+other+", uid: source}}")
	if err := owner.applySource(found, ownership.PolicyDelete); ReasonFor(err) != plan.ReasonConflict {
		t.Errorf("a namespace of another client: %v", err)
	}
	adopting := newTargetHarness(t, connection, namespaces, "Namespace", plan.Resource{DeletesContents: true, Adoption: synchubv1alpha1.AdoptionAlways})
	if err := adopting.applySource(found, ownership.PolicyDelete); err != nil {
		t.Fatal(err)
	}
	if observed, err := adopting.view.observeObject(adopting.get(found)); err != nil || !observed.Retain {
		t.Errorf("an adopted namespace would be deleted with its contents: %+v, %v", observed, err)
	}
}

// Writing or removing marks changes nothing else.
func TestRemarkAndRelease(t *testing.T) {
	harness := newTargetHarness(t, connect(t), configMapsV1, "ConfigMap", plan.Resource{})
	name := unique("released")
	source := configMap(t, name, "data: {a: x}")
	if err := harness.applySource(source, ownership.PolicyDelete); err != nil {
		t.Fatal(err)
	}
	here := harness.observeTarget(harness.get(source))
	desired := harness.desired(configMap(t, name, "data: {a: w}"), ownership.PolicyCreateOnly)
	if err := harness.updateMark(t.Context(), here, desired, here.Observed); err != nil {
		t.Fatal(err)
	}
	marked := harness.observeTarget(harness.get(source))
	data, _, _ := unstructured.NestedStringMap(marked.Object.Object, "data")
	want := desired.Mark
	want.Hash = here.Observed.Mark.Hash
	if marked.Observed == nil || marked.Observed.Mark != want || data["a"] != "x" || marked.Object.GetAnnotations()[ownership.OverwriteAnnotation] != "false" {
		t.Errorf("%+v of %v", marked.Observed, marked.Object)
	}
	if err := harness.release(t.Context(), marked); err != nil {
		t.Fatal(err)
	}
	released := harness.get(source)
	if _, err := harness.view.observeObject(released); !errors.Is(err, ownership.ErrUnmarked) || len(released.GetLabels()) > 0 {
		t.Errorf("%v of %v", err, released)
	}
	// An object that was replaced in the meantime is not changed.
	marked.Observed.UID = "00000000-0000-0000-0000-000000000000"
	if err := harness.patchMetadata(t.Context(), marked, marked.Observed.UID, metadatapatch.Patch{SetLabels: map[string]string{"a": "b"}}); err == nil {
		t.Error("another object was edited")
	}
	if labels := harness.get(source).GetLabels(); len(labels) > 0 {
		t.Errorf("the labels are %v", labels)
	}
}

// An object that is not the hub's is never replaced, whichever adoption and replacement the resource allows. A changed immutable
// field is reported, and neither the object nor its managedFields change.
func TestAdoptionReplacesNothing(t *testing.T) {
	for _, policy := range []synchubv1alpha1.AdoptionPolicy{synchubv1alpha1.AdoptionAlways, synchubv1alpha1.AdoptionIfIdentical} {
		name := unique("unchangeable")
		createForeign(t, name, "", "data: {a: w}, immutable: true")
		harness := newTargetHarness(t, connect(t), configMapsV1, "ConfigMap", plan.Resource{Adoption: policy, Replace: true})
		source := configMap(t, name, "data: {a: x}, immutable: true")
		before := harness.get(source)
		want := map[synchubv1alpha1.AdoptionPolicy]string{synchubv1alpha1.AdoptionAlways: plan.ReasonImmutable, synchubv1alpha1.AdoptionIfIdentical: plan.ReasonConflict}[policy]
		if err := harness.applySource(source, ownership.PolicyDelete); ReasonFor(err) != want {
			t.Errorf("%s: want the reason %s, got %v", policy, want, err)
		}
		if after := harness.get(source); !reflect.DeepEqual(after, before) {
			t.Errorf("%s: the object was %v\nand is %v", policy, before, after)
		}
		// The object becomes immutable just after the dry run.
		desired := harness.desired(source, ownership.PolicyDelete)
		if err := harness.applyInPlace(t.Context(), harness.observeTarget(source), desired, before.GetUID()); ReasonFor(err) != plan.ReasonImmutable {
			t.Errorf("%s: want the reason %s, got %v", policy, plan.ReasonImmutable, err)
		}
		if after := harness.get(source); after.GetUID() != before.GetUID() || after.GetDeletionTimestamp() != nil {
			t.Errorf("%s: %v was replaced by %v", policy, before, after)
		}
	}
}

// Somebody deletes a copy and creates another object of its name before the hub's cache shows that. The hub neither takes the object over
// as a copy from a backup, nor reports how it differs from the mailbox's, which would reveal its content.
func TestAReplacedCopyIsNotTheHubs(t *testing.T) {
	t.Parallel()
	harness := newTargetHarness(t, connect(t), configMapsV1, "ConfigMap", plan.Resource{})
	source := configMap(t, unique("replaced"), "data: {a: x}")
	if err := harness.applySource(source, ownership.PolicyDelete); err != nil {
		t.Fatal(err)
	}
	operation := plan.Operation{
		Copy: harness.observeTarget(harness.get(source)), Desired: harness.desired(source, ownership.PolicyDelete),
		Decision: plan.Decision{Action: plan.Apply, Cause: plan.Restored},
	}
	if err := administrator(t).Resource(configMapsV1).Namespace("default").Delete(t.Context(), source.GetName(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	createForeign(t, source.GetName(), "", "data: {a: theirs}")
	before := harness.get(source)
	if err := harness.adoptRestored(t.Context(), operation); !errors.Is(err, errOutdated) {
		t.Errorf("the adoption: %v", err)
	}
	if report, err := harness.compare(t.Context(), operation); !errors.Is(err, errOutdated) || report != nil {
		t.Errorf("the report: %v, %v", report, err)
	}
	if after := harness.get(source); !reflect.DeepEqual(after, before) {
		t.Errorf("the object was %v\nand is %v", before, after)
	}
}
