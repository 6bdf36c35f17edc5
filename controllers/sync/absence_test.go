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
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/sync/ownership"
)

// What is not seen is not gone: whatever makes primaries leave the mailbox's watch, what travels with them stays, whether or
// not they are on the target themselves, and though the hub is started again meanwhile.
func TestRelatedObjectsOfPrimariesOutOfSight(t *testing.T) {
	for name, restart := range map[string]bool{"the hub goes on": false, "the hub is started again": true} {
		t.Run(name, func(t *testing.T) {
			h := keyedHub(t, keyed, configMapsTravel)
			taken := unique("taken")
			put(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+taken+", namespace: "+h.namespace+"}}")
			h.secret("one", "a: eA==")
			h.secret("two", "a: eA==")
			h.box("placed", "key: one")
			h.box(taken, "key: two")
			before := []*unstructured.Unstructured{h.goesDown(secretsV1, "one"), h.goesDown(secretsV1, "two")}
			placed := h.goesDown(configMapsV1, "placed")
			if restart {
				h.stop()
			}
			h.hide(configMapsV1)
			if restart {
				h.start()
			}
			h.stays(secretsV1, before...)
			h.stays(configMapsV1, placed)
			h.show(configMapsV1)
			h.stays(secretsV1, before...)
			h.stays(configMapsV1, placed)
			// Once all are in sight, one that really goes takes along what it named.
			h.drop(configMapsV1, h.namespace, taken)
			h.leaves(secretsV1, "two")
			h.stays(secretsV1, before[0])
		})
	}
}

// Nor is anything concluded from the originals, or from the whole mailbox, being out of sight.
func TestRelatedObjectsOutOfSight(t *testing.T) {
	h := keyedHub(t, keyed, configMapsTravel)
	h.secret("one", "a: eA==")
	h.box("placed", "key: one")
	one, placed := h.goesDown(secretsV1, "one"), h.goesDown(configMapsV1, "placed")
	h.hide(secretsV1)
	h.stays(secretsV1, one)
	h.hide(configMapsV1)
	h.restart()
	h.stays(secretsV1, one)
	h.show(secretsV1)
	h.show(configMapsV1)
	h.stays(secretsV1, one)
	h.stays(configMapsV1, placed)
	if written := h.written(); len(written) > 0 {
		t.Errorf("written to the mailbox was %q", written)
	}
}

// A hub that begins anew with nothing changed writes nothing, whichever of several primaries is looked at first.
func TestRelatedObjectsAcrossAnIdleRestart(t *testing.T) {
	h := keyedHub(t, keyed, configMapsTravel)
	var before []*unstructured.Unstructured
	for name := range strings.FieldsSeq("a b c d e f") {
		h.secret(name, "a: eA==")
		h.box("one-of-"+name, "key: "+name)
		h.box("two-of-"+name, "key: "+name+", more: a")
		before = append(before, h.goesDown(secretsV1, name))
	}
	h.quiet()
	h.proven()
	for range 3 {
		h.restart()
		h.stays(secretsV1, before...)
	}
	if written := h.written(); len(written) > 0 {
		t.Errorf("written to the mailbox was %q", written)
	}
	if proofs := h.proven(); proofs > 0 {
		t.Errorf("%d proofs were asked for, though nothing is missing", proofs)
	}
}

// What was let go of while there was no hub goes when there is one again.
func TestRelatedObjectsLetGoOfUnseen(t *testing.T) {
	h := keyedHub(t, keyed, configMapsTravel)
	h.secret("one", "a: eA==")
	h.secret("two", "a: eA==")
	h.secret("three", "a: eA==")
	h.box("first", "key: one, more: two")
	h.box("second", "key: three")
	h.goesDown(secretsV1, "one")
	two := h.goesDown(secretsV1, "two")
	h.goesDown(secretsV1, "three")
	h.stop()
	h.box("first", "more: two")
	h.drop(configMapsV1, h.namespace, "second")
	h.start()
	h.leaves(configMapsV1, "second")
	h.leaves(secretsV1, "one")
	h.leaves(secretsV1, "three")
	h.stays(secretsV1, two)
}

// A PublishedResource that is removed, or cannot be understood any more, stops its work and removes nothing, whichever way
// an object came first; what it is published for again goes as usual.
func TestRelatedObjectsOfWhatIsNotPublishedAnyMore(t *testing.T) {
	for name, restart := range map[string]bool{"the hub goes on": false, "the hub is started again": true} {
		t.Run(name, func(t *testing.T) {
			const oneSecret = "namespacedObjects: [{group: '', resource: secrets, objectsByNamespace: [{namespace: NS, names: [own]}]}]"
			h := keyedHub(t, keyed, configMapsTravel, oneSecret)
			h.secret("kin", "a: eA==")
			h.secret("own", "a: eA==")
			h.box("first", "key: kin, more: own")
			kin := h.goesDown(secretsV1, "kin")
			h.goesDown(secretsV1, "own")
			// From now on it travels because it is related.
			h.configure(configMapsTravel)
			own := h.goesDown(secretsV1, "own", cameBy("configmaps/more"))
			first := h.goesDown(configMapsV1, "first")
			all := h.resources
			h.resources = all[1:]
			if restart {
				h.restart()
			} else {
				h.publish(h.resources...)
			}
			h.stays(secretsV1, kin, own)
			h.stays(configMapsV1, first)
			// Nor is it removed because somebody changes the original.
			h.secret("kin", "a: dw==")
			h.stays(secretsV1, kin, own)
			// Published again, all is as it was, and what is not wanted any more goes.
			h.box("first", "more: own")
			h.resources = all
			h.publish(all...)
			h.leaves(secretsV1, "kin")
			h.stays(secretsV1, own)
		})
	}
}

// cameBy tells whether the mark of an object names a relation.
func cameBy(relation string) func(*unstructured.Unstructured) bool {
	return func(object *unstructured.Unstructured) bool {
		mark, err := ownership.ParseMark(object.GetAnnotations()[ownership.MarkAnnotation])
		return err == nil && mark.Relation == relation
	}
}

// Where two PublishedResources want an object it goes with the last, whichever it came by, and stays if that one is removed.
func TestRelatedObjectsOfTwoPublishedResources(t *testing.T) {
	serviceAccounts := schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	const pulling = "related: [{identifier: pull, origin: Mailbox, resource: {version: v1, resource: secrets}, object: {reference: {path: 'imagePullSecrets[*].name'}}}]"
	const travel = "namespaceScope: {namespaces: [NS], resources: [{group: '', resource: configmaps}, {group: '', resource: serviceaccounts}]}"
	robot := func(h *hub, name, secrets string) {
		h.put(serviceAccounts, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: "+name+", namespace: "+h.namespace+"}, imagePullSecrets: ["+secrets+"]}")
	}
	start := func(t *testing.T) *hub {
		h := newHub(t, []Resource{resourceNamed(t, configMapsV1, keyed), resourceNamed(t, serviceAccounts, pulling), resourceNamed(t, secretsV1, "")}, travel)
		h.secret("both", "a: eA==")
		h.box("first", "key: both")
		h.goesDown(secretsV1, "both", cameBy("configmaps/key"))
		robot(h, "robot", "{name: both}")
		h.goesDown(serviceAccounts, "robot")
		h.quiet()
		return h
	}
	t.Run("nothing changes", func(t *testing.T) {
		h := start(t)
		h.secret("other", "a: eA==")
		robot(h, "robot", "{name: both}, {name: other}")
		before := []*unstructured.Unstructured{h.goesDown(secretsV1, "both"), h.goesDown(secretsV1, "other")}
		h.quiet()
		h.proven()
		for range 3 {
			h.restart()
			h.stays(secretsV1, before...)
		}
		if proofs := h.proven(); proofs > 0 {
			t.Errorf("%d proofs were asked for, though nothing is missing", proofs)
		}
	})
	t.Run("it goes with the last", func(t *testing.T) {
		h := start(t)
		h.box("first", "")
		h.goesDown(secretsV1, "both", cameBy("serviceaccounts/pull"))
		h.restart()
		h.stays(secretsV1, h.below(secretsV1, "both"))
		robot(h, "robot", "")
		h.leaves(secretsV1, "both")
	})
	t.Run("the last is removed", func(t *testing.T) {
		h := start(t)
		h.box("first", "")
		both := h.goesDown(secretsV1, "both", cameBy("serviceaccounts/pull"))
		h.resources = []Resource{h.resources[0], h.resources[2]}
		h.publish(h.resources...)
		h.stays(secretsV1, both)
		h.restart()
		h.stays(secretsV1, both)
	})
	t.Run("the first is removed", func(t *testing.T) {
		h := start(t)
		h.resources = h.resources[1:]
		h.publish(h.resources...)
		h.goesDown(secretsV1, "both", cameBy("serviceaccounts/pull"))
		robot(h, "robot", "")
		h.leaves(secretsV1, "both")
	})
}

// What a primary wants cannot always be told. Then what it wanted before holds on, and nothing that nobody wants is removed,
// since it might be meant; the others go on.
func TestRelatedObjectsOfAPrimaryThatCannotBeUnderstood(t *testing.T) {
	const filtered = "filter: {cel: \"self.data.flag == 'yes'\"}" + keyed
	h := keyedHub(t, filtered, configMapsTravel)
	h.secret("one", "a: eA==")
	h.secret("two", "a: eA==")
	h.secret("three", "a: eA==")
	h.box("first", "flag: 'yes', key: one")
	h.box("second", "flag: 'yes', key: two")
	h.box("third", "flag: 'yes', key: three")
	one, two := h.goesDown(secretsV1, "one"), h.goesDown(secretsV1, "two")
	h.goesDown(secretsV1, "three")
	first := h.goesDown(configMapsV1, "first")
	// The filter fails for the first, and the second names what cannot be a name.
	h.box("first", "key: one")
	h.box("second", "flag: 'yes', key: 'not/legal'")
	h.fails(configMapsV1, "first", ReasonRuleFailed)
	h.fails(configMapsV1, "second", ReasonRuleFailed)
	h.box("third", "flag: 'yes'")
	h.goesDown(configMapsV1, "third", holds("key", ""))
	three := h.below(secretsV1, "three")
	h.stays(secretsV1, one, two, three)
	h.stays(configMapsV1, first)
	h.restart()
	h.fails(configMapsV1, "first", ReasonRuleFailed)
	h.stays(secretsV1, one, two, three)
	h.stays(configMapsV1, first)
	// Meanwhile others travel.
	h.secret("four", "a: eA==")
	h.box("fourth", "flag: 'yes', key: four")
	h.goesDown(secretsV1, "four")
	// As soon as all are understood, what nobody wants goes.
	h.box("first", "flag: 'yes', key: one")
	h.box("second", "flag: 'yes'")
	h.leaves(secretsV1, "two")
	h.leaves(secretsV1, "three")
	h.stays(secretsV1, one)
}

// fails waits until an object of the mailbox fails for a reason.
func (h *hub) fails(resource schema.GroupVersionResource, name, reason string) {
	h.t.Helper()
	key := shop(name)
	key.Namespace = h.namespace
	h.until("the object fails for the reason "+reason, func() bool {
		return h.controllers[resource].failures.snapshot()[key].Reason == reason
	})
}

// A suspended config freezes what it selects, and what travels with that.
func TestRelatedObjectsOfSuspendedPrimaries(t *testing.T) {
	h := keyedHub(t, keyed, configMapsTravel)
	h.secret("changed", "a: eA==")
	h.secret("deleted", "a: eA==")
	h.secret("released", "a: eA==")
	h.box("first", "key: changed, more: deleted")
	h.box("second", "key: released")
	before := []*unstructured.Unstructured{h.goesDown(secretsV1, "changed"), h.goesDown(secretsV1, "deleted"), h.goesDown(secretsV1, "released")}
	h.configure("suspend: true\n" + configMapsTravel)
	h.quiet()
	h.secret("changed", "a: dw==")
	h.drop(secretsV1, h.namespace, "deleted")
	h.drop(configMapsV1, h.namespace, "second")
	h.stays(secretsV1, before...)
	h.restart()
	h.stays(secretsV1, before...)
	h.configure(configMapsTravel)
	h.goesDown(secretsV1, "changed", holds("a", "dw=="))
	h.leaves(secretsV1, "deleted")
	h.leaves(secretsV1, "released")
}

// Writes that the target refuses hold up nothing of what travels along.
func TestRelatedObjectsOfARefusedPrimary(t *testing.T) {
	h := keyedHub(t, keyed, configMapsTravel)
	h.secret("one", "a: eA==")
	h.put(configMapsV1, "{apiVersion: v1, kind: ConfigMap, metadata: {name: broken, namespace: "+h.namespace+"}, data: {key: one, wrong: {a: b}}}")
	h.goesDown(secretsV1, "one")
	h.fails(configMapsV1, "broken", ReasonInvalid)
	h.drop(configMapsV1, h.namespace, "broken")
	h.leaves(secretsV1, "one")
}

// What is not selected wants nothing, and costs nothing however often it changes.
func TestUnselectedPrimariesCostNothing(t *testing.T) {
	h := keyedHub(t, keyed, "namespacedObjects: [{group: '', resource: configmaps, objectsByNamespace: [{namespace: NS, names: [first]}]}]")
	h.secret("one", "a: eA==")
	h.box("first", "key: one")
	h.goesDown(secretsV1, "one")
	h.quiet()
	h.proven()
	for i := range 5 {
		h.box("unselected", fmt.Sprintf("key: one, a: x%d", i))
		h.quiet()
	}
	h.drop(configMapsV1, h.namespace, "unselected")
	h.quiet()
	if proofs := h.proven(); proofs > 0 {
		t.Errorf("%d proofs were asked for", proofs)
	}
}
