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
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/objectsync/observe"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/test/fixtures"
)

// selectionHarness is a controller for Secrets that selects objects and syncs none. Its mailbox has two namespaces, one with the
// label team: a. The primaries of the PublishedResource boxes may claim objects.
type selectionHarness struct {
	*Controller
	hub   *testHub
	boxes []*related.Relation
}

const boxesRelate = `
related:
- identifier: key
  origin: Mailbox
  resource: {version: v1, resource: secrets}
  object: {reference: {path: data.key}}
- identifier: labelled
  origin: Mailbox
  resource: {version: v1, resource: secrets}
  object: {selector: {matchLabels: {box: "{{ .Primary.metadata.name }}"}}}
  namespace: {selector: {matchLabels: {team: a}}}
  deletionPolicy: Orphan
  statusReturn: false
`

func newSelectionHarness(t *testing.T, spec string, change func(*plan.Resource), configs ...string) *selectionHarness {
	t.Helper()
	resource := resourceNamed(t, secretsV1, spec)
	if change != nil {
		change(&resource)
	}
	h := newHub(t, []plan.Resource{resource}, configs...)
	h.put(namespaces, "{apiVersion: v1, kind: Namespace, metadata: {name: team, labels: {team: a}}}")
	h.put(namespaces, "{apiVersion: v1, kind: Namespace, metadata: {name: other, labels: {team: b}}}")
	c := &selectionHarness{Controller: h.controllers[secretsV1], hub: h, boxes: rulesOf(t, boxesRelate).Related}
	h.until("the namespaces are cached", func() bool {
		_, known := c.mailbox.NamespaceLabels("team")
		_, other := c.mailbox.NamespaceLabels("other")
		return known && other
	})
	return c
}

// putPrimary publishes the claims of the primary first in the namespace of the test: on a Secret by its name, and on Secrets in
// other namespaces by their label.
func (c *selectionHarness) putPrimary(key string) {
	c.hub.t.Helper()
	primary := fixtures.Object(c.hub.t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: first, namespace: "+c.hub.namespace+"}, data: {key: "+key+"}}")
	for _, relation := range c.boxes {
		wanted, err := relation.Resolve(primary, related.Environment{})
		if err != nil {
			c.hub.t.Fatal(err)
		}
		wanted.PrimaryInfo = related.PrimaryInfo{DestinationNamespace: "away", Configs: []string{"SyncerConfig/of-first"}}
		c.Registry.SetClaim("boxes", keyOf(primary), relation, wanted)
	}
}

// secretIn returns a Secret of the mailbox, which the mailbox need not have.
func secretIn(t testing.TB, namespace, name, metadata string) *unstructured.Unstructured {
	t.Helper()
	return fixtures.Object(t, "{apiVersion: v1, kind: Secret, metadata: {name: "+name+", namespace: "+namespace+", uid: u"+metadata+"}, type: Opaque, data: {flag: eA==}}")
}

func TestSelectDown(t *testing.T) {
	t.Parallel()
	const selected = "namespacedObjects: [{group: '', resource: secrets, objectsByNamespace: [{namespace: NS, names: [selected]}, {namespace: team, names: ['*']}, {namespace: other, names: ['*']}]}]"
	const suspended = "suspend: true\ndeletionPolicy: Orphan\nnamespacedObjects: [{group: '', resource: secrets, objectsByNamespace: [{namespace: NS, names: [suspended]}]}]"
	came := ownership.Mark{Version: ownership.MarkVersion, Hub: testOwner.Hub, Mailbox: theMailbox, Direction: ownership.DirectionUp, Policy: ownership.PolicyDelete, Hash: "x",
		Source: ownership.Source{Resource: "secrets", Namespace: "x", Name: "selected", UID: "u"}}
	// want is described by describeSelection.
	for name, test := range map[string]struct {
		spec   string
		change func(*plan.Resource)
		object func(*testHub) *unstructured.Unstructured
		want   string
	}{
		"selected by a config":           {"", nil, at("NS", "selected", ""), "itself Delete status"},
		"not selected":                   {"", nil, at("NS", "other", ""), ""},
		"selected by a suspended config": {"", nil, at("NS", "suspended", ""), "itself Orphan status suspended"},
		"claimed by name":                {"", nil, at("NS", "named", ""), "boxes/key Delete status"},
		"claimed and selected":           {"", nil, at("NS", "selected", ", labels: {box: first}"), "itself Delete status"},
		"claimed in another namespace":   {"", nil, at("team", "named", ""), "itself Delete status"},
		"claimed by label":               {"", relatedOnly, at("team", "x", ", labels: {box: first}"), "boxes/labelled Orphan"},
		"labelled in another namespace":  {"", relatedOnly, at("other", "x", ", labels: {box: first}"), ""},
		"labelled in an unknown one":     {"", relatedOnly, at("unseen", "x", ", labels: {box: first}"), ""},
		"related only, not claimed":      {"", relatedOnly, at("NS", "selected", ""), ""},
		"related only, all selected":     {"", func(r *plan.Resource) { r.RelatedOnly, r.SelectAll = true, true }, at("NS", "selected", ""), ""},
		"all":                            {"", all, at("unseen", "x", ""), "itself Delete status"},
		"all, and a config":              {"", all, at("NS", "selected", ""), "itself Delete status"},
		"all, and a suspended config":    {"", all, at("NS", "suspended", ""), "itself Orphan status"},
		"all except system namespaces":   {"", all, at("kube-system", "x", ""), ""},
		"all except tokens": {"", all, func(h *testHub) *unstructured.Unstructured {
			object := secretIn(h.t, h.namespace, "x", "")
			object.Object["type"] = "kubernetes.io/service-account-token"
			return object
		}, ""},
		"it passes the filter":          {"filter: {cel: \"has(self.data.flag)\"}", nil, at("NS", "selected", ""), "itself Delete status"},
		"it does not pass the filter":   {"filter: {cel: \"has(self.data.none)\"}", nil, at("NS", "selected", ""), ""},
		"claimed, no filter applies":    {"filter: {cel: \"has(self.data.none)\"}", nil, at("NS", "named", ""), "boxes/key Delete status"},
		"filtered, but claimed":         {"filter: {cel: \"self.metadata.name != 'named'\"}", all, at("NS", "named", ""), "boxes/key Delete status"},
		"the filter fails":              {"filter: {cel: \"self.data.none == 'x'\"}", nil, at("NS", "selected", ""), "itself Delete status unresolved"},
		"the filter fails, claimed":     {"filter: {cel: \"self.data.none == 'x'\"}", all, at("NS", "named", ""), "itself Delete status unresolved"},
		"not selected, failing filter":  {"filter: {cel: \"self.data.none == 'x'\"}", nil, at("NS", "other", ""), ""},
		"its namespace has the label":   {"filter: {namespace: {matchLabels: {team: a}}}", nil, at("team", "x", ""), "itself Delete status"},
		"its namespace has another one": {"filter: {namespace: {matchLabels: {team: a}}}", nil, at("other", "x", ""), ""},
		"its namespace is not cached":   {"filter: {namespace: {matchLabels: {team: a}}}", all, at("unseen", "x", ""), "itself Delete status unreadable"},
		"upsynced by the hub":           {"", all, func(h *testHub) *unstructured.Unstructured { return marked(h, came, "selected") }, ""},
		"upsynced by another hub": {"", nil, func(h *testHub) *unstructured.Unstructured {
			other := came
			other.Hub = "another"
			return marked(h, other, "selected")
		}, "itself Delete status"},
		"ensured by the hub": {"", all, func(h *testHub) *unstructured.Unstructured {
			return secretIn(h.t, h.namespace, "selected", ", annotations: {"+ownership.EnsuredAnnotation+": "+h.owner.EnsuredValue(ownership.Self{Kind: "Secret", Namespace: h.namespace, Name: "selected"})+"}")
		}, ""},
		"ensured by another hub": {"", nil, at("NS", "selected", ", annotations: {"+ownership.EnsuredAnnotation+": x}"), "itself Delete status"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newSelectionHarness(t, test.spec, test.change, selected, suspended)
			c.Registry.BeginInitialSync("boxes", c.boxes)
			c.putPrimary("named")
			object := test.object(c.hub)
			before := object.DeepCopy()
			chosen, ok := c.observer.rules.SelectDown(c.matcher.Load(), object)
			if got := describeSelection(chosen, ok); got != test.want {
				t.Errorf("want %q, got %q", test.want, got)
			}
			if fmt.Sprint(object) != fmt.Sprint(before) {
				t.Errorf("the object was changed: %v", object)
			}
			if ok && chosen.Related != nil && !slices.Equal(chosen.Configs, []string{"SyncerConfig/of-first"}) {
				t.Errorf("the configs are %v", chosen.Configs)
			}
		})
	}
}

func all(resource *plan.Resource)         { resource.SelectAll = true }
func relatedOnly(resource *plan.Resource) { resource.RelatedOnly = true }

// at returns a Secret in a namespace; NS is the namespace of the test.
func at(namespace, name, metadata string) func(*testHub) *unstructured.Unstructured {
	return func(h *testHub) *unstructured.Unstructured {
		return secretIn(h.t, h.withNamespace(namespace), name, metadata)
	}
}

// marked returns a Secret of the mailbox with a mark that names the Secret itself.
func marked(h *testHub, mark ownership.Mark, name string) *unstructured.Unstructured {
	object := secretIn(h.t, h.namespace, name, "")
	mark.SyncTarget, mark.Self = h.owner.SyncTarget, transform.SelfOf(object)
	object.SetAnnotations(map[string]string{ownership.MarkAnnotation: testOwner.Seal(mark)})
	return object
}

// describeSelection returns as text why an object is selected, and how.
func describeSelection(selected plan.ObjectSelection, ok bool) string {
	if !ok {
		return ""
	}
	text := "itself"
	if selected.Related != nil {
		text = selected.Related.PublishedResource + "/" + selected.Related.Relation.Identifier
	}
	text += " " + string(selected.Policy)
	for _, trait := range []struct {
		name string
		is   bool
	}{
		{"status", selected.StatusReturn}, {"suspended", selected.Suspended},
		{"unreadable", errors.Is(selected.Unresolved, observe.ErrNotReadable)}, {"unresolved", selected.Unresolved != nil && !errors.Is(selected.Unresolved, observe.ErrNotReadable)},
	} {
		if trait.is {
			text += " " + trait.name
		}
	}
	return text
}

// TestDownState tests the state of objects that are selected or not, terminating or absent, while configs are suspended or the
// claims of primaries are unknown.
func TestDownState(t *testing.T) {
	t.Parallel()
	const selected = "namespacedObjects: [{group: '', resource: secrets, objectsByNamespace: [{namespace: NS, names: [selected]}]}]"
	const suspended = "suspend: true\nnamespacedObjects: [{group: '', resource: secrets, objectsByNamespace: [{namespace: NS, names: [suspended]}]}]"
	const failing = "filter: {cel: \"self.metadata.name == 'broken' ? self.data.none == 'x' : true\"}"
	const unseen = "filter: {namespace: {matchLabels: {team: a}}}"
	for name, test := range map[string]struct {
		object string
		// begun is true during the initial sync of a PublishedResource that may claim Secrets. unpublished is true if the copy's
		// mark names a relation of a PublishedResource that is no longer published.
		spec               string
		change             func(*plan.Resource)
		begun, unpublished bool
		// The keys are the source, which is present, terminating or gone, and the target: placed with a copy, nothing without.
		want map[string]plan.State
	}{
		"selected": {"selected", "", nil, false, false, map[string]plan.State{
			"present placed": plan.Selected, "present nothing": plan.Selected, "terminating placed": plan.Terminating, "terminating nothing": plan.Terminating,
			"gone placed": plan.SourceNotFound, "gone nothing": plan.SourceNotFound,
		}},
		"suspended": {"suspended", "", nil, false, false, map[string]plan.State{
			"present placed": plan.Suspended, "present nothing": plan.Suspended, "terminating placed": plan.Suspended, "terminating nothing": plan.Suspended,
			"gone placed": plan.Suspended, "gone nothing": plan.Suspended,
		}},
		"suspended, but all are selected": {"suspended", "", all, false, false, map[string]plan.State{
			"present placed": plan.Selected, "terminating placed": plan.Terminating, "gone placed": plan.SourceNotFound,
		}},
		"not selected": {"other", "", nil, false, false, map[string]plan.State{
			"present placed": plan.Deselected, "present nothing": plan.Deselected, "terminating placed": plan.Terminating, "gone placed": plan.SourceNotFound,
		}},
		"not selected, during the initial sync": {"other", "", nil, true, false, map[string]plan.State{
			"present placed": plan.Unknown, "present nothing": plan.Deselected, "terminating placed": plan.Terminating, "gone placed": plan.SourceNotFound,
		}},
		"selected, during the initial sync": {"selected", "", nil, true, false, map[string]plan.State{"present placed": plan.Selected, "gone placed": plan.SourceNotFound}},
		"not selected, related to an unpublished resource": {"other", "", nil, false, true, map[string]plan.State{
			"present placed": plan.Unknown, "present nothing": plan.Deselected, "terminating placed": plan.Terminating, "gone placed": plan.SourceNotFound,
		}},
		"the filter fails": {"broken", failing, all, false, false, map[string]plan.State{
			"present placed": "RuleFailed", "present nothing": "RuleFailed", "terminating placed": plan.Terminating, "gone placed": plan.SourceNotFound,
		}},
		"its namespace is not cached": {"hidden", unseen, all, false, false, map[string]plan.State{
			"present placed": plan.Unknown, "present nothing": plan.Unknown, "terminating placed": plan.Terminating, "gone placed": plan.SourceNotFound,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newSelectionHarness(t, test.spec, test.change, selected, suspended)
			if test.begun {
				c.Registry.BeginInitialSync("boxes", c.boxes)
			}
			mark := ownership.Mark{}
			if test.unpublished {
				mark.Relation = "unpublished/x"
			}
			for situation, want := range test.want {
				namespace := c.hub.namespace
				if test.object == "hidden" {
					namespace = "unseen"
				}
				got, err := c.observeDownState(situation, secretIn(t, namespace, test.object, ""), mark)
				if err != nil {
					got = plan.State(ReasonFor(err))
				}
				if got != want {
					t.Errorf("%s: want %s, got %s", situation, want, got)
				}
			}
		})
	}
}

// An object that the hub placed stays on the target while the mailbox lacks the config for placements because another client
// deleted it. Other clients cannot write a mark with this effect.
func TestDownStateOfAPlacedObject(t *testing.T) {
	c := newSelectionHarness(t, "", nil)
	placed := c.Owner.ForPlacements()
	forger := placed
	forger.Sealer = ownership.NewSealer([]byte("another"))
	for owner, want := range map[ownership.Owner]plan.State{placed: plan.Unknown, forger: plan.Deselected} {
		object := secretIn(t, c.hub.namespace, "till", "")
		mark := ownership.Mark{
			Version: ownership.MarkVersion, Hub: owner.Hub, SyncTarget: owner.SyncTarget, Mailbox: "workload", Direction: ownership.DirectionUp,
			Self: transform.SelfOf(object),
		}
		object.SetAnnotations(map[string]string{ownership.MarkAnnotation: owner.Seal(mark)})
		for situation, want := range map[string]plan.State{"present placed": want, "present nothing": plan.Deselected, "terminating placed": plan.Terminating, "gone placed": plan.SourceNotFound} {
			if got, err := c.observeDownState(situation, object.DeepCopy(), ownership.Mark{}); got != want || err != nil {
				t.Errorf("%s, sealed by the hub %v: want %s, got %s, %v", situation, owner == placed, want, got, err)
			}
		}
	}
}

// As long as a missing config may select an object, the object is not deselected.
func TestDownStateByAPartialMatcher(t *testing.T) {
	const selected = "namespacedObjects: [{group: '', resource: secrets, objectsByNamespace: [{namespace: NS, names: [selected]}]}]"
	const labelled = "namespaceScope: {namespaces: [labelled], resources: [{group: '', resource: secrets, labelSelector: {matchLabels: {a: b}}}]}"
	c := newSelectionHarness(t, "", nil, selected, labelled)
	c.matcher.Store(c.matcher.Load().AsPartial())
	for _, test := range []struct {
		namespace, object, situation string
		want                         plan.State
	}{
		{c.hub.namespace, "selected", "present placed", plan.Selected},
		{c.hub.namespace, "selected", "gone placed", plan.SourceNotFound},
		{c.hub.namespace, "other", "present placed", plan.Suspended},
		{c.hub.namespace, "other", "terminating placed", plan.Suspended},
		{c.hub.namespace, "other", "gone placed", plan.Suspended},
		{"labelled", "other", "present placed", plan.Unknown},
		{"labelled", "other", "gone placed", plan.SourceNotFound},
	} {
		if got, err := c.observeDownState(test.situation, secretIn(t, test.namespace, test.object, ""), ownership.Mark{}); got != test.want || err != nil {
			t.Errorf("%s, %s: want %s, got %s, %v", test.object, test.situation, test.want, got, err)
		}
	}
}

// An object beyond a limit does not change. If a config selects it, or all objects are selected, it fails. Its deletion still
// counts.
func TestDownStateBeyondLimits(t *testing.T) {
	t.Parallel()
	const selected = "namespacedObjects: [{group: '', resource: secrets, objectsByNamespace: [{namespace: NS, names: [selected]}]}]"
	for _, extent := range []string{"Identity", "IdentityByResource"} {
		for _, test := range []struct {
			change            func(*plan.Resource)
			object, situation string
			want              plan.State
		}{
			{nil, "selected", "present placed", plan.ReasonMailboxLimitExceeded},
			{nil, "selected", "present nothing", plan.ReasonMailboxLimitExceeded},
			{nil, "other", "present placed", plan.Unknown},
			{all, "other", "present placed", plan.ReasonMailboxLimitExceeded},
			{all, "other", "terminating placed", plan.Terminating},
			{all, "other", "gone placed", plan.SourceNotFound},
		} {
			c := newSelectionHarness(t, "", test.change, selected)
			object := secretIn(t, c.hub.namespace, test.object, "")
			object.Object["synchub.dev/projection"] = extent
			got, err := c.observeDownState(test.situation, object, ownership.Mark{})
			if err != nil {
				got = plan.State(ReasonFor(err))
			}
			if got != test.want {
				t.Errorf("%s, %s, %s: want %s, got %s", extent, test.object, test.situation, test.want, got)
			}
		}
	}
}

// observeDownState returns the state of an object in a situation, which is a key of want in TestDownState.
func (c *selectionHarness) observeDownState(situation string, object *unstructured.Unstructured, mark ownership.Mark) (plan.State, error) {
	var source *unstructured.Unstructured
	var state, there string
	if _, err := fmt.Sscan(situation, &state, &there); err != nil {
		return "", err
	}
	switch state {
	case "terminating":
		object.SetDeletionTimestamp(new(metav1.Unix(1_700_000_000, 0)))
		fallthrough
	case "present":
		source = object
	}
	var copies []plan.Copy
	if there == "placed" {
		// Related objects belong in the namespace that putPrimary names.
		key := types.NamespacedName{Namespace: "away", Name: object.GetName()}
		copies = []plan.Copy{{API: c.target.apis[0].TargetAPI, Key: key, Observed: &plan.TargetObject{Mark: mark}}}
	}
	observer := *c.observer.rules
	observer.Target = &targetWithCopies{observer.Target, copies}
	down := observer.Down(&plan.Snapshot{Key: keyOf(object), Matcher: c.matcher.Load(), InMailbox: source})
	return down.State, down.Err
}

// targetWithCopies is a target with these copies of each object.
type targetWithCopies struct {
	observe.Target
	copies []plan.Copy
}

func (t *targetWithCopies) CopiesOf(types.NamespacedName) []plan.Copy { return t.copies }

// After the initial sync, an object without a claim is deselected. An object with a claim is selected before that.
func TestDownStateDuringInitialSync(t *testing.T) {
	c := newSelectionHarness(t, "", relatedOnly)
	key := types.NamespacedName{Namespace: c.hub.namespace, Name: "first"}
	causeOf := func(name string) plan.State {
		t.Helper()
		cause, err := c.observeDownState("present placed", secretIn(t, c.hub.namespace, name, ""), ownership.Mark{Relation: "boxes/key"})
		if err != nil {
			t.Fatal(err)
		}
		return cause
	}
	expect := func(when string, one, two plan.State) {
		t.Helper()
		if got := [2]plan.State{causeOf("one"), causeOf("two")}; got != [2]plan.State{one, two} {
			t.Errorf("%s: got %v", when, got)
		}
	}
	c.hub.lock.Lock()
	c.hub.published = append(slices.Clone(c.hub.published), plan.Resource{PublishedResource: "boxes"})
	c.hub.lock.Unlock()
	c.Registry.BeginInitialSync("boxes", c.boxes)
	expect("before the first claim", plan.Unknown, plan.Unknown)
	c.putPrimary("one")
	expect("after a claim on one", plan.Selected, plan.Unknown)
	c.Registry.CompleteInitialSync("boxes")
	expect("after the initial sync", plan.Selected, plan.Deselected)
	c.Registry.MarkUnresolved("boxes", key, c.boxes[0])
	expect("with an unresolved claim", plan.Selected, plan.Unknown)
	c.Registry.RemovePrimary("boxes", key)
	expect("without the primary", plan.Deselected, plan.Deselected)
	c.Registry.BeginInitialSync("boxes", c.boxes)
	expect("in the next initial sync", plan.Unknown, plan.Unknown)
	c.Registry.RemovePublishedResource("boxes")
	expect("without the PublishedResource", plan.Deselected, plan.Deselected)
	c.hub.lock.Lock()
	c.hub.published = c.hub.published[:1]
	c.hub.lock.Unlock()
	expect("after the unpublishing", plan.Unknown, plan.Unknown)
}
