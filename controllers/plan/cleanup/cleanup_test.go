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

package cleanup_test

import (
	"math/rand/v2"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/plan/cleanup"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/test/tier"
)

var (
	owner = ownership.Owner{Hub: "hub", SyncTarget: "florin", Sealer: ownership.NewSealer([]byte("key"))}
	other = ownership.Owner{Hub: "hub", SyncTarget: "guilder", Sealer: ownership.NewSealer([]byte("key"))}

	configMaps = schema.GroupResource{Resource: "configmaps"}
)

// placed returns an object as the hub creates it; change may be nil.
func placed(resource schema.GroupResource, kind, namespace, name string, change func(*ownership.Mark)) cleanup.Object {
	mark := ownership.Mark{
		Version: ownership.MarkVersion, Hub: owner.Hub, SyncTarget: owner.SyncTarget, Mailbox: "mailbox",
		Source: ownership.Source{Group: resource.Group, Resource: resource.Resource, Namespace: namespace, Name: name, UID: "source"},
		Self:   ownership.Self{Group: resource.Group, Kind: kind, Namespace: namespace, Name: name},
		Policy: ownership.PolicyDelete,
	}
	if change != nil {
		change(&mark)
	}
	return cleanup.Object{Resource: resource, Kind: kind, PartialObjectMetadata: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: "self",
		Labels:      map[string]string{ownership.OwnerLabel: owner.LabelValue()},
		Annotations: map[string]string{ownership.MarkAnnotation: owner.Seal(mark)},
	}}}
}

func configMap(change func(*ownership.Mark)) cleanup.Object {
	return placed(configMaps, "ConfigMap", "shop", "settings", change)
}

func namespace(change func(*ownership.Mark)) cleanup.Object {
	return placed(cleanup.Namespaces, "Namespace", "", "shop", change)
}

func crdObject(change func(*ownership.Mark)) cleanup.Object {
	return placed(cleanup.CRDs, "CustomResourceDefinition", "", "widgets.example.com", change)
}

func with(object cleanup.Object, change func(*metav1.PartialObjectMetadata)) cleanup.Object {
	change(object.PartialObjectMetadata)
	return object
}

func terminating(object cleanup.Object) cleanup.Object {
	return with(object, func(m *metav1.PartialObjectMetadata) { m.DeletionTimestamp = new(metav1.Now()) })
}

func unmarked(object cleanup.Object) cleanup.Object {
	return with(object, func(m *metav1.PartialObjectMetadata) { m.Labels, m.Annotations = nil, nil })
}

func ensured(object cleanup.Object, by ownership.Owner) cleanup.Object {
	return with(unmarked(object), func(m *metav1.PartialObjectMetadata) {
		m.Annotations = map[string]string{ownership.EnsuredAnnotation: by.EnsuredValue(selfOf(object))}
	})
}

func selfOf(object cleanup.Object) ownership.Self {
	return ownership.Self{Group: object.Resource.Group, Kind: object.Kind, Namespace: object.Namespace, Name: object.Name}
}

func TestPlan(t *testing.T) {
	orphaned := func(m *ownership.Mark) { m.Policy = ownership.PolicyOrphan }
	adopted := func(m *ownership.Mark) { m.Adopted = true }
	// want holds the decisions in the modes Delete, Orphan and Drain.
	type want struct{ delete, orphan, drain cleanup.Decision }
	let := func(deleting, orphaning string) want {
		return want{
			cleanup.Decision{Action: cleanup.ActionRelease, Reason: deleting},
			cleanup.Decision{Action: cleanup.ActionRelease, Reason: orphaning},
			cleanup.Decision{Action: cleanup.ActionKeep, Reason: deleting},
		}
	}
	removed := want{
		cleanup.Decision{Action: cleanup.ActionDelete},
		cleanup.Decision{Action: cleanup.ActionRelease, Reason: cleanup.ReasonOrphaned},
		cleanup.Decision{Action: cleanup.ActionDelete},
	}
	awaited := removed
	awaited.delete.Action, awaited.drain.Action = cleanup.ActionWait, cleanup.ActionWait
	all := func(decision cleanup.Decision) want { return want{decision, decision, decision} }
	ignored := all(cleanup.Decision{Action: cleanup.ActionIgnore})

	for name, test := range map[string]struct {
		object  cleanup.Object
		cascade bool
		want    want
	}{
		"an object":                            {object: configMap(nil), want: removed},
		"one of a former mailbox":              {object: configMap(func(m *ownership.Mark) { m.Mailbox = "former" }), want: removed},
		"one that was adopted":                 {object: configMap(adopted), want: removed},
		"one that is being deleted":            {object: terminating(configMap(nil)), want: awaited},
		"one to be orphaned":                   {object: configMap(orphaned), want: let(cleanup.ReasonOrphaned, cleanup.ReasonOrphaned)},
		"one to be orphaned, going":            {object: terminating(configMap(orphaned)), want: let(cleanup.ReasonOrphaned, cleanup.ReasonOrphaned)},
		"an unknown policy":                    {object: configMap(func(m *ownership.Mark) { m.Policy = "Eat" }), want: let(cleanup.ReasonOrphaned, cleanup.ReasonOrphaned)},
		"one created once":                     {object: configMap(func(m *ownership.Mark) { m.Policy = ownership.PolicyCreateOnly }), want: let(cleanup.ReasonCreatedOnce, cleanup.ReasonOrphaned)},
		"a namespace":                          {object: namespace(nil), want: let(cleanup.ReasonNotCascading, cleanup.ReasonOrphaned)},
		"a namespace, cascading":               {object: namespace(nil), cascade: true, want: removed},
		"a namespace that was adopted":         {object: namespace(adopted), cascade: true, want: let(cleanup.ReasonAdopted, cleanup.ReasonOrphaned)},
		"a namespace, cascading, to orphan":    {object: namespace(orphaned), cascade: true, want: let(cleanup.ReasonOrphaned, cleanup.ReasonOrphaned)},
		"a namespace made for its contents":    {object: ensured(namespace(nil), owner), cascade: true, want: let(cleanup.ReasonEnsured, cleanup.ReasonEnsured)},
		"a namespace that another hub ensured": {object: ensured(namespace(nil), other), cascade: true, want: ignored},
		"no namespace, but ensured":            {object: ensured(configMap(nil), owner), want: ignored},
		"a definition from the mailbox":        {object: crdObject(nil), want: let(cleanup.ReasonNotCascading, cleanup.ReasonOrphaned)},
		"a definition, cascading":              {object: crdObject(nil), cascade: true, want: removed},
		"a definition that was installed": {cascade: true, want: let(cleanup.ReasonInstalled, cleanup.ReasonInstalled),
			object: with(crdObject(orphaned), func(m *metav1.PartialObjectMetadata) {
				m.Labels = map[string]string{ownership.InstalledByLabel: owner.LabelValue()}
			})},
		"installed, but no definition": {want: ignored, object: with(configMap(nil), func(m *metav1.PartialObjectMetadata) {
			m.Labels = map[string]string{ownership.InstalledByLabel: owner.LabelValue()}
		})},
		"a mark of a later hub": {object: configMap(func(m *ownership.Mark) { m.Version = ownership.MarkVersion + 1 }),
			want: all(cleanup.Decision{Action: cleanup.ActionKeep, Reason: cleanup.ReasonUnknownMark})},
		"a mark of another SyncTarget": {object: configMap(func(m *ownership.Mark) { m.SyncTarget = other.SyncTarget }), want: ignored},
		"a mark of another hub":        {object: configMap(func(m *ownership.Mark) { m.Hub = "other" }), want: ignored},
		"a copied mark":                {object: configMap(func(m *ownership.Mark) { m.Self.Name = "other" }), want: ignored},
		"a mark of another kind":       {object: configMap(func(m *ownership.Mark) { m.Self.Kind = "Secret" }), want: ignored},
		"a mark of an upsync":          {object: configMap(func(m *ownership.Mark) { m.Direction = ownership.DirectionUp }), want: ignored},
		"a mark that cannot be read": {want: ignored, object: with(configMap(nil), func(m *metav1.PartialObjectMetadata) {
			m.Annotations[ownership.MarkAnnotation] = "{"
		})},
		"the label alone": {object: with(configMap(nil), func(m *metav1.PartialObjectMetadata) { m.Annotations = nil }), want: ignored},
		"the mark alone":  {object: with(configMap(nil), func(m *metav1.PartialObjectMetadata) { m.Labels = nil }), want: ignored},
		"another's label": {want: ignored, object: with(configMap(nil), func(m *metav1.PartialObjectMetadata) {
			m.Labels[ownership.OwnerLabel] = other.LabelValue()
		})},
		"nothing of the hub": {object: unmarked(configMap(nil)), want: ignored},
	} {
		t.Run(name, func(t *testing.T) {
			cascades := func(schema.GroupResource) bool { return test.cascade }
			for mode, want := range map[cleanup.Mode]cleanup.Decision{
				cleanup.ModeDelete: test.want.delete, cleanup.ModeOrphan: test.want.orphan, cleanup.ModeDrain: test.want.drain,
			} {
				if got := cleanup.Plan(mode, owner, test.object, cascades); got != want {
					t.Errorf("%s: want %v, got %v", mode, want, got)
				}
			}
		})
	}
}

// Plan calls the cascade function with the mailbox resource of the object's source.
func TestPlanAsksForTheSource(t *testing.T) {
	converted := namespace(func(m *ownership.Mark) { m.Source.Group, m.Source.Resource = "example.com", "rooms" })
	cascades := func(resource schema.GroupResource) bool {
		return resource == schema.GroupResource{Group: "example.com", Resource: "rooms"}
	}
	if got := cleanup.Plan(cleanup.ModeDelete, owner, converted, cascades); got.Action != cleanup.ActionDelete {
		t.Errorf("got %v", got)
	}
	if got := cleanup.Plan(cleanup.ModeDelete, owner, namespace(nil), cascades); got.Action != cleanup.ActionRelease {
		t.Errorf("got %v", got)
	}
}

// On random targets, a drain deletes only objects with the owner's label and a verified mark. It releases only such objects, and
// namespaces that the hub ensured. ModeDrain releases nothing.
func TestPlanTouchesOnlyOurs(t *testing.T) { //nolint:gocyclo // a list of invariants
	tier.Thorough(t)
	random := rand.New(rand.NewPCG(7, 8)) //nolint:gosec // repeatable objects
	pick := func(values ...string) string { return values[random.IntN(len(values))] }
	makers := []func(func(*ownership.Mark)) cleanup.Object{configMap, namespace, crdObject}
	acted := map[cleanup.Action]int{}
	for range 50_000 {
		object := makers[random.IntN(len(makers))](func(m *ownership.Mark) {
			m.Hub = owner.Hub
			if random.IntN(4) == 0 {
				m.SyncTarget = other.SyncTarget
			}
			if random.IntN(4) == 0 {
				m.Self.Name = "other"
			}
			m.Policy = ownership.Policy(pick("Delete", "Orphan", "CreateOnly", "", "Eat"))
			m.Adopted, m.Version = random.IntN(2) == 0, ownership.MarkVersion-1+(1+random.IntN(5))/2
			m.Direction = ownership.Direction(pick("", "", "", "up"))
		})
		mark := pick(object.Annotations[ownership.MarkAnnotation], object.Annotations[ownership.MarkAnnotation], "", "{}")
		object.Annotations = map[string]string{ownership.MarkAnnotation: mark, ownership.EnsuredAnnotation: pick("", owner.LabelValue(), other.EnsuredValue(selfOf(object)), owner.EnsuredValue(selfOf(object)))}
		if mark == "" {
			delete(object.Annotations, ownership.MarkAnnotation)
		}
		object.Labels = map[string]string{
			ownership.OwnerLabel:       pick("", other.LabelValue(), owner.LabelValue(), owner.LabelValue()),
			ownership.InstalledByLabel: pick("", "", other.LabelValue(), owner.LabelValue()),
		}
		if random.IntN(4) == 0 {
			object = terminating(object)
		}
		mode := cleanup.Mode(pick("Delete", "Orphan", "Drain"))
		cascade := random.IntN(2) == 0
		got := cleanup.Plan(mode, owner, object, func(schema.GroupResource) bool { return cascade })
		acted[got.Action]++

		self := selfOf(object)
		verified, err := owner.Verify(object.Annotations, self)
		labelled := object.Labels[ownership.OwnerLabel] == owner.LabelValue() ||
			object.Resource == cleanup.CRDs && object.Labels[ownership.InstalledByLabel] == owner.LabelValue()
		ours := err == nil && labelled
		isEnsured := object.Resource != configMaps && mark == "" && object.Annotations[ownership.EnsuredAnnotation] == owner.EnsuredValue(selfOf(object))
		switch got.Action {
		case cleanup.ActionDelete, cleanup.ActionWait:
			if !ours || mode == cleanup.ModeOrphan || verified.Policy != ownership.PolicyDelete || got.Reason != "" {
				t.Fatalf("%s: %v of %+v", mode, got, object.ObjectMeta)
			}
			if object.Resource != configMaps && (verified.Adopted || !cascade) {
				t.Fatalf("%s: %v of the container %+v", mode, got, object.ObjectMeta)
			}
		case cleanup.ActionRelease:
			if !ours && !isEnsured || mode == cleanup.ModeDrain || got.Reason == "" {
				t.Fatalf("%s: %v of %+v", mode, got, object.ObjectMeta)
			}
		case cleanup.ActionKeep:
			if got.Reason == "" {
				t.Fatalf("%s: %v of %+v", mode, got, object.ObjectMeta)
			}
		case cleanup.ActionIgnore:
			if ours || isEnsured {
				t.Fatalf("%s: %v of %+v", mode, got, object.ObjectMeta)
			}
		}
	}
	if len(acted) != 5 {
		t.Errorf("not every action was tried: %v", acted)
	}
}
