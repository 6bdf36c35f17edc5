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

// selectionHarness is a controller for Secrets that is asked about objects and brings none anywhere. Of the mailbox it sees its
// namespaces: one has the label team. A PublishedResource called boxes may speak of what travels with its objects.
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
	h.until("the namespaces are seen", func() bool {
		_, known := c.mailbox.NamespaceLabels("team")
		_, other := c.mailbox.NamespaceLabels("other")
		return known && other
	})
	return c
}

// putPrimary lets the primary first in the namespace of the test say that it wants a Secret by its name, or those in other namespaces by
// their label.
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

// secretIn is a Secret of the mailbox, which need not be there.
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
	// what is chosen is given as the reason, the policy, and whether the status returns and it is suspended.
	for name, test := range map[string]struct {
		spec   string
		change func(*plan.Resource)
		object func(*testHub) *unstructured.Unstructured
		want   string
	}{
		"a config selects it":            {"", nil, at("NS", "selected", ""), "itself Delete status"},
		"none does":                      {"", nil, at("NS", "other", ""), ""},
		"a suspended one does":           {"", nil, at("NS", "suspended", ""), "itself Orphan status suspended"},
		"it is named":                    {"", nil, at("NS", "named", ""), "boxes/key Delete status"},
		"it is named and selected":       {"", nil, at("NS", "selected", ", labels: {box: first}"), "itself Delete status"},
		"it is named where it is not":    {"", nil, at("team", "named", ""), "itself Delete status"},
		"it is labelled":                 {"", relatedOnly, at("team", "x", ", labels: {box: first}"), "boxes/labelled Orphan"},
		"it is labelled elsewhere":       {"", relatedOnly, at("other", "x", ", labels: {box: first}"), ""},
		"it is labelled where none sees": {"", relatedOnly, at("unseen", "x", ", labels: {box: first}"), ""},
		"a companion is not selected":    {"", relatedOnly, at("NS", "selected", ""), ""},
		"nor if all are":                 {"", func(r *plan.Resource) { r.RelatedOnly, r.SelectAll = true, true }, at("NS", "selected", ""), ""},
		"all":                            {"", all, at("unseen", "x", ""), "itself Delete status"},
		"all, and a config does":         {"", all, at("NS", "selected", ""), "itself Delete status"},
		"all, and a suspended one does":  {"", all, at("NS", "suspended", ""), "itself Orphan status"},
		"all but Kubernetes' own":        {"", all, at("kube-system", "x", ""), ""},
		"all but those of tokens": {"", all, func(h *testHub) *unstructured.Unstructured {
			object := secretIn(h.t, h.namespace, "x", "")
			object.Object["type"] = "kubernetes.io/service-account-token"
			return object
		}, ""},
		"the filter lets it pass":        {"filter: {cel: \"has(self.data.flag)\"}", nil, at("NS", "selected", ""), "itself Delete status"},
		"the filter does not":            {"filter: {cel: \"has(self.data.none)\"}", nil, at("NS", "selected", ""), ""},
		"the filter is not asked of kin": {"filter: {cel: \"has(self.data.none)\"}", nil, at("NS", "named", ""), "boxes/key Delete status"},
		"not by the filter, but as kin":  {"filter: {cel: \"self.metadata.name != 'named'\"}", all, at("NS", "named", ""), "boxes/key Delete status"},
		"the filter fails":               {"filter: {cel: \"self.data.none == 'x'\"}", nil, at("NS", "selected", ""), "itself Delete status doubt"},
		"the filter fails, it is kin":    {"filter: {cel: \"self.data.none == 'x'\"}", all, at("NS", "named", ""), "itself Delete status doubt"},
		"nobody asks the filter":         {"filter: {cel: \"self.data.none == 'x'\"}", nil, at("NS", "other", ""), ""},
		"its namespace has the label":    {"filter: {namespace: {matchLabels: {team: a}}}", nil, at("team", "x", ""), "itself Delete status"},
		"its namespace has another":      {"filter: {namespace: {matchLabels: {team: a}}}", nil, at("other", "x", ""), ""},
		"its namespace is not seen":      {"filter: {namespace: {matchLabels: {team: a}}}", all, at("unseen", "x", ""), "itself Delete status unseen"},
		"it came up":                     {"", all, func(h *testHub) *unstructured.Unstructured { return marked(h, came, "selected") }, ""},
		"it came up for another hub": {"", nil, func(h *testHub) *unstructured.Unstructured {
			other := came
			other.Hub = "another"
			return marked(h, other, "selected")
		}, "itself Delete status"},
		"it was ensured": {"", all, func(h *testHub) *unstructured.Unstructured {
			return secretIn(h.t, h.namespace, "selected", ", annotations: {"+ownership.EnsuredAnnotation+": "+h.owner.EnsuredValue(ownership.Self{Kind: "Secret", Namespace: h.namespace, Name: "selected"})+"}")
		}, ""},
		"it was ensured for another": {"", nil, at("NS", "selected", ", annotations: {"+ownership.EnsuredAnnotation+": x}"), "itself Delete status"},
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
				t.Errorf("it counts for %v", chosen.Configs)
			}
		})
	}
}

func all(resource *plan.Resource)         { resource.SelectAll = true }
func relatedOnly(resource *plan.Resource) { resource.RelatedOnly = true }

// at is a Secret in a namespace, NS that of the test.
func at(namespace, name, metadata string) func(*testHub) *unstructured.Unstructured {
	return func(h *testHub) *unstructured.Unstructured {
		return secretIn(h.t, h.withNamespace(namespace), name, metadata)
	}
}

// marked is a Secret of the mailbox with a mark that speaks of itself.
func marked(h *testHub, mark ownership.Mark, name string) *unstructured.Unstructured {
	object := secretIn(h.t, h.namespace, name, "")
	mark.SyncTarget, mark.Self = h.owner.SyncTarget, transform.SelfOf(object)
	object.SetAnnotations(map[string]string{ownership.MarkAnnotation: testOwner.Seal(mark)})
	return object
}

// describeSelection says why an object travels, and how.
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
		{"unseen", errors.Is(selected.Unresolved, observe.ErrNotReadable)}, {"doubt", selected.Unresolved != nil && !errors.Is(selected.Unresolved, observe.ErrNotReadable)},
	} {
		if trait.is {
			text += " " + trait.name
		}
	}
	return text
}

// The state of an object that is or is not chosen, terminates or is gone, while configs are suspended or what primaries want
// is not known.
func TestDownState(t *testing.T) {
	t.Parallel()
	const selected = "namespacedObjects: [{group: '', resource: secrets, objectsByNamespace: [{namespace: NS, names: [selected]}]}]"
	const suspended = "suspend: true\nnamespacedObjects: [{group: '', resource: secrets, objectsByNamespace: [{namespace: NS, names: [suspended]}]}]"
	const failing = "filter: {cel: \"self.metadata.name == 'broken' ? self.data.none == 'x' : true\"}"
	const unseen = "filter: {namespace: {matchLabels: {team: a}}}"
	for name, test := range map[string]struct {
		object string
		// begun says that a contributor speaks of Secrets and is not complete; lost that what is there came by a relation of
		// what is not published any more.
		spec        string
		change      func(*plan.Resource)
		begun, lost bool
		// present, terminating and gone are the states of the object as it is, being deleted, and not there; placed and
		// nothing tell whether something of it is on the target.
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
		"suspended, but all travel": {"suspended", "", all, false, false, map[string]plan.State{
			"present placed": plan.Selected, "terminating placed": plan.Terminating, "gone placed": plan.SourceNotFound,
		}},
		"not selected": {"other", "", nil, false, false, map[string]plan.State{
			"present placed": plan.Deselected, "present nothing": plan.Deselected, "terminating placed": plan.Terminating, "gone placed": plan.SourceNotFound,
		}},
		"not selected, but who knows": {"other", "", nil, true, false, map[string]plan.State{
			"present placed": plan.Unknown, "present nothing": plan.Deselected, "terminating placed": plan.Terminating, "gone placed": plan.SourceNotFound,
		}},
		"selected, and who knows": {"selected", "", nil, true, false, map[string]plan.State{"present placed": plan.Selected, "gone placed": plan.SourceNotFound}},
		"not selected, came by what is not published": {"other", "", nil, false, true, map[string]plan.State{
			"present placed": plan.Unknown, "present nothing": plan.Deselected, "terminating placed": plan.Terminating, "gone placed": plan.SourceNotFound,
		}},
		"the filter fails": {"broken", failing, all, false, false, map[string]plan.State{
			"present placed": "RuleFailed", "present nothing": "RuleFailed", "terminating placed": plan.Terminating, "gone placed": plan.SourceNotFound,
		}},
		"its namespace is not seen": {"hidden", unseen, all, false, false, map[string]plan.State{
			"present placed": plan.Unknown, "present nothing": plan.Unknown, "terminating placed": plan.Terminating, "gone placed": plan.SourceNotFound,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newSelectionHarness(t, test.spec, test.change, selected, suspended)
			if test.begun {
				c.Registry.BeginInitialSync("boxes", c.boxes)
			}
			mark := ownership.Mark{}
			if test.lost {
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

// An object that the hub placed stays on the target while its mailbox lacks the config for placements, which somebody else has deleted. Others
// cannot write a mark that has this effect.
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

// As long as other configs may select it, nothing is concluded from no config's selecting an object.
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

// An object beyond a limit is left as it is. Whoever selects it is told, also where all travel; but it goes when it is deleted.
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

// observeDownState returns the state of an object in a situation.
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
	var seen []plan.Copy
	if there == "placed" {
		// Related objects belong in the namespace that putPrimary names.
		key := types.NamespacedName{Namespace: "away", Name: object.GetName()}
		seen = []plan.Copy{{API: c.target.apis[0].TargetAPI, Key: key, Observed: &plan.TargetObject{Mark: mark}}}
	}
	observer := *c.observer.rules
	observer.Target = &targetWithCopies{observer.Target, seen}
	down := observer.Down(&plan.Snapshot{Key: keyOf(object), Matcher: c.matcher.Load(), InMailbox: source})
	return down.State, down.Err
}

// targetWithCopies is a target that has these copies of any object.
type targetWithCopies struct {
	observe.Target
	copies []plan.Copy
}

func (t *targetWithCopies) CopiesOf(types.NamespacedName) []plan.Copy { return t.copies }

// After the initial sync, an object that no primary claims is deselected; one that a primary claims is selected before that.
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
	expect("before anybody has spoken", plan.Unknown, plan.Unknown)
	c.putPrimary("one")
	expect("when one has spoken", plan.Selected, plan.Unknown)
	c.Registry.CompleteInitialSync("boxes")
	expect("when all have spoken", plan.Selected, plan.Deselected)
	c.Registry.MarkUnresolved("boxes", key, c.boxes[0])
	expect("when one cannot be understood", plan.Selected, plan.Unknown)
	c.Registry.RemovePrimary("boxes", key)
	expect("when it is gone", plan.Deselected, plan.Deselected)
	c.Registry.BeginInitialSync("boxes", c.boxes)
	expect("when all is to be said again", plan.Unknown, plan.Unknown)
	c.Registry.RemovePublishedResource("boxes")
	expect("when nobody is to speak any more", plan.Deselected, plan.Deselected)
	c.hub.lock.Lock()
	c.hub.published = c.hub.published[:1]
	c.hub.lock.Unlock()
	expect("when it is not published any more", plan.Unknown, plan.Unknown)
}
