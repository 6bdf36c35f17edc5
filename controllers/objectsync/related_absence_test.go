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
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

// Primaries that are missing from the cache still exist. Their related objects stay for every cause that hides the primaries,
// with or without a copy of the primary on the target, and also after a restart of the hub.
func TestRelatedObjectsOfPrimariesMissingFromTheCache(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"without a restart": false, "after a restart": true} {
		t.Run(name, func(t *testing.T) {
			h := newKeyedHub(t, keyed, configMapsTravel)
			taken := unique("taken")
			put(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+taken+", namespace: "+h.namespace+"}}")
			h.putSecret("one", "a: eA==")
			h.putSecret("two", "a: eA==")
			h.putConfigMap("placed", "key: one")
			h.putConfigMap(taken, "key: two")
			before := []*unstructured.Unstructured{h.expectOnTarget(secretsV1, "one"), h.expectOnTarget(secretsV1, "two")}
			placed := h.expectOnTarget(configMapsV1, "placed")
			if restart {
				h.stop()
			}
			h.hide(configMapsV1)
			if restart {
				h.start()
			}
			h.expectUnchangedOnTarget(secretsV1, before...)
			h.expectUnchangedOnTarget(configMapsV1, placed)
			h.show(configMapsV1)
			h.expectUnchangedOnTarget(secretsV1, before...)
			h.expectUnchangedOnTarget(configMapsV1, placed)
			// When all primaries are visible again, the deletion of a primary deletes the copy of its related object.
			h.drop(configMapsV1, h.namespace, taken)
			h.expectGoneFromTarget(secretsV1, "two")
			h.expectUnchangedOnTarget(secretsV1, before[0])
		})
	}
}

// Missing related objects, or a missing mailbox, are no reason to delete copies either.
func TestRelatedObjectsMissingFromTheCache(t *testing.T) {
	t.Parallel()
	h := newKeyedHub(t, keyed, configMapsTravel)
	h.putSecret("one", "a: eA==")
	h.putConfigMap("placed", "key: one")
	one, placed := h.expectOnTarget(secretsV1, "one"), h.expectOnTarget(configMapsV1, "placed")
	h.hide(secretsV1)
	h.expectUnchangedOnTarget(secretsV1, one)
	h.hide(configMapsV1)
	h.restart()
	h.expectUnchangedOnTarget(secretsV1, one)
	h.show(secretsV1)
	h.show(configMapsV1)
	h.expectUnchangedOnTarget(secretsV1, one)
	h.expectUnchangedOnTarget(configMapsV1, placed)
	if written := h.written(); len(written) > 0 {
		t.Errorf("the writes to the mailbox are %q", written)
	}
}

// A restart without a change writes nothing, in whichever order primaries are processed.
func TestRelatedObjectsAcrossAnIdleRestart(t *testing.T) {
	t.Parallel()
	h := newKeyedHub(t, keyed, configMapsTravel)
	var before []*unstructured.Unstructured
	for name := range strings.FieldsSeq("a b c d e f") {
		h.putSecret(name, "a: eA==")
		h.putConfigMap("one-of-"+name, "key: "+name)
		h.putConfigMap("two-of-"+name, "key: "+name+", more: a")
		before = append(before, h.expectOnTarget(secretsV1, name))
	}
	h.waitUntilIdle()
	h.bindingReads()
	for range 3 {
		h.restart()
		h.expectUnchangedOnTarget(secretsV1, before...)
	}
	if written := h.written(); len(written) > 0 {
		t.Errorf("the writes to the mailbox are %q", written)
	}
	if reads := h.bindingReads(); reads > 0 {
		t.Errorf("%d verifications were requested although nothing is missing", reads)
	}
}

// A copy whose claim ended while no hub ran is deleted by the next hub.
func TestRelatedObjectsReleasedWhileNotWatched(t *testing.T) {
	t.Parallel()
	h := newKeyedHub(t, keyed, configMapsTravel)
	h.putSecret("one", "a: eA==")
	h.putSecret("two", "a: eA==")
	h.putSecret("three", "a: eA==")
	h.putConfigMap("first", "key: one, more: two")
	h.putConfigMap("second", "key: three")
	h.expectOnTarget(secretsV1, "one")
	two := h.expectOnTarget(secretsV1, "two")
	h.expectOnTarget(secretsV1, "three")
	h.stop()
	h.putConfigMap("first", "more: two")
	h.drop(configMapsV1, h.namespace, "second")
	h.start()
	h.expectGoneFromTarget(configMapsV1, "second")
	h.expectGoneFromTarget(secretsV1, "one")
	h.expectGoneFromTarget(secretsV1, "three")
	h.expectUnchangedOnTarget(secretsV1, two)
}

// A PublishedResource that is removed or has become invalid ends its syncing and deletes nothing, neither selected nor related
// objects. If it is published again, syncing continues.
func TestRelatedObjectsOfUnpublishedResources(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"without a restart": false, "after a restart": true} {
		t.Run(name, func(t *testing.T) {
			const oneSecret = "namespacedObjects: [{group: '', resource: secrets, objectsByNamespace: [{namespace: NS, names: [own]}]}]"
			h := newKeyedHub(t, keyed, configMapsTravel, oneSecret)
			h.putSecret("related", "a: eA==")
			h.putSecret("own", "a: eA==")
			h.putConfigMap("first", "key: related, more: own")
			secret := h.expectOnTarget(secretsV1, "related")
			h.expectOnTarget(secretsV1, "own")
			// Now the object is synced only because it is related.
			h.configure(configMapsTravel)
			own := h.expectOnTarget(secretsV1, "own", hasRelation("configmaps/more"))
			first := h.expectOnTarget(configMapsV1, "first")
			all := h.resources
			h.resources = all[1:]
			if restart {
				h.restart()
			} else {
				h.publish(h.resources...)
			}
			h.expectUnchangedOnTarget(secretsV1, secret, own)
			h.expectUnchangedOnTarget(configMapsV1, first)
			// A change of the source does not delete the copy either.
			h.putSecret("related", "a: dw==")
			h.expectUnchangedOnTarget(secretsV1, secret, own)
			// When the resource is published again, objects without a claim are deleted.
			h.putConfigMap("first", "more: own")
			h.resources = all
			h.publish(all...)
			h.expectGoneFromTarget(secretsV1, "related")
			h.expectUnchangedOnTarget(secretsV1, own)
		})
	}
}

// hasRelation reports whether the mark of an object names a relation.
func hasRelation(relation string) func(*unstructured.Unstructured) bool {
	return func(object *unstructured.Unstructured) bool {
		mark, err := ownership.ParseMark(object.GetAnnotations()[ownership.MarkAnnotation])
		return err == nil && mark.Relation == relation
	}
}

// An object that primaries of two PublishedResources claim is deleted with the last claim, and stays if the PublishedResource of
// the last claim is removed.
func TestRelatedObjectsOfTwoPublishedResources(t *testing.T) {
	t.Parallel()
	serviceAccounts := schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	const pulling = "related: [{identifier: pull, origin: Mailbox, resource: {version: v1, resource: secrets}, object: {reference: {path: 'imagePullSecrets[*].name'}}}]"
	const travel = "namespaceScope: {namespaces: [NS], resources: [{group: '', resource: configmaps}, {group: '', resource: serviceaccounts}]}"
	robot := func(h *testHub, name, secrets string) {
		h.put(serviceAccounts, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: "+name+", namespace: "+h.namespace+"}, imagePullSecrets: ["+secrets+"]}")
	}
	start := func(t *testing.T) *testHub {
		h := newHub(t, []plan.Resource{resourceNamed(t, configMapsV1, keyed), resourceNamed(t, serviceAccounts, pulling), resourceNamed(t, secretsV1, "")}, travel)
		h.putSecret("both", "a: eA==")
		h.putConfigMap("first", "key: both")
		h.expectOnTarget(secretsV1, "both", hasRelation("configmaps/key"))
		robot(h, "robot", "{name: both}")
		h.expectOnTarget(serviceAccounts, "robot")
		h.waitUntilIdle()
		return h
	}
	t.Run("nothing changes", func(t *testing.T) {
		h := start(t)
		h.putSecret("other", "a: eA==")
		robot(h, "robot", "{name: both}, {name: other}")
		before := []*unstructured.Unstructured{h.expectOnTarget(secretsV1, "both"), h.expectOnTarget(secretsV1, "other")}
		h.waitUntilIdle()
		h.bindingReads()
		for range 3 {
			h.restart()
			h.expectUnchangedOnTarget(secretsV1, before...)
		}
		if reads := h.bindingReads(); reads > 0 {
			t.Errorf("%d verifications were requested although nothing is missing", reads)
		}
	})
	t.Run("the last claim ends", func(t *testing.T) {
		h := start(t)
		h.putConfigMap("first", "")
		h.expectOnTarget(secretsV1, "both", hasRelation("serviceaccounts/pull"))
		h.restart()
		h.expectUnchangedOnTarget(secretsV1, h.onTarget(secretsV1, "both"))
		robot(h, "robot", "")
		h.expectGoneFromTarget(secretsV1, "both")
	})
	t.Run("the last PublishedResource is removed", func(t *testing.T) {
		h := start(t)
		h.putConfigMap("first", "")
		both := h.expectOnTarget(secretsV1, "both", hasRelation("serviceaccounts/pull"))
		h.resources = []plan.Resource{h.resources[0], h.resources[2]}
		h.publish(h.resources...)
		h.expectUnchangedOnTarget(secretsV1, both)
		h.restart()
		h.expectUnchangedOnTarget(secretsV1, both)
	})
	t.Run("the first PublishedResource is removed", func(t *testing.T) {
		h := start(t)
		h.resources = h.resources[1:]
		h.publish(h.resources...)
		h.expectOnTarget(secretsV1, "both", hasRelation("serviceaccounts/pull"))
		robot(h, "robot", "")
		h.expectGoneFromTarget(secretsV1, "both")
	})
}

// If the claims of a primary cannot be resolved, its former claims stay valid, and no unclaimed object is deleted, since the
// primary may claim it. Other objects are still synced.
func TestRelatedObjectsOfAnInvalidPrimary(t *testing.T) {
	t.Parallel()
	const filtered = "filter: {cel: \"self.data.flag == 'yes'\"}" + keyed
	h := newKeyedHub(t, filtered, configMapsTravel)
	h.putSecret("one", "a: eA==")
	h.putSecret("two", "a: eA==")
	h.putSecret("three", "a: eA==")
	h.putConfigMap("first", "flag: 'yes', key: one")
	h.putConfigMap("second", "flag: 'yes', key: two")
	h.putConfigMap("third", "flag: 'yes', key: three")
	one, two := h.expectOnTarget(secretsV1, "one"), h.expectOnTarget(secretsV1, "two")
	h.expectOnTarget(secretsV1, "three")
	first := h.expectOnTarget(configMapsV1, "first")
	// The filter fails for the first primary, and the second contains an invalid name.
	h.putConfigMap("first", "key: one")
	h.putConfigMap("second", "flag: 'yes', key: 'not/legal'")
	h.expectFailure(configMapsV1, "first", plan.ReasonRuleFailed)
	h.expectFailure(configMapsV1, "second", plan.ReasonRuleFailed)
	h.putConfigMap("third", "flag: 'yes'")
	h.expectOnTarget(configMapsV1, "third", holds("key", ""))
	three := h.onTarget(secretsV1, "three")
	h.expectUnchangedOnTarget(secretsV1, one, two, three)
	h.expectUnchangedOnTarget(configMapsV1, first)
	h.restart()
	h.expectFailure(configMapsV1, "first", plan.ReasonRuleFailed)
	h.expectUnchangedOnTarget(secretsV1, one, two, three)
	h.expectUnchangedOnTarget(configMapsV1, first)
	// Other objects are still synced.
	h.putSecret("four", "a: eA==")
	h.putConfigMap("fourth", "flag: 'yes', key: four")
	h.expectOnTarget(secretsV1, "four")
	// Once all claims can be resolved, unclaimed objects are deleted.
	h.putConfigMap("first", "flag: 'yes', key: one")
	h.putConfigMap("second", "flag: 'yes'")
	h.expectGoneFromTarget(secretsV1, "two")
	h.expectGoneFromTarget(secretsV1, "three")
	h.expectUnchangedOnTarget(secretsV1, one)
}

// expectFailure waits until an object of the mailbox fails for a reason.
func (h *testHub) expectFailure(resource schema.GroupVersionResource, name, reason string) {
	h.t.Helper()
	key := shop(name)
	key.Namespace = h.namespace
	h.until("the object fails for the reason "+reason, func() bool {
		return h.controllers[resource].Status.states.failures()[key].Reason == reason
	})
}

// A suspended config suspends the objects that it selects, and their related objects.
func TestRelatedObjectsOfSuspendedPrimaries(t *testing.T) {
	t.Parallel()
	h := newKeyedHub(t, keyed, configMapsTravel)
	h.putSecret("changed", "a: eA==")
	h.putSecret("deleted", "a: eA==")
	h.putSecret("released", "a: eA==")
	h.putConfigMap("first", "key: changed, more: deleted")
	h.putConfigMap("second", "key: released")
	before := []*unstructured.Unstructured{h.expectOnTarget(secretsV1, "changed"), h.expectOnTarget(secretsV1, "deleted"), h.expectOnTarget(secretsV1, "released")}
	h.configure("suspend: true\n" + configMapsTravel)
	h.waitUntilIdle()
	h.putSecret("changed", "a: dw==")
	h.drop(secretsV1, h.namespace, "deleted")
	h.drop(configMapsV1, h.namespace, "second")
	h.expectUnchangedOnTarget(secretsV1, before...)
	h.restart()
	h.expectUnchangedOnTarget(secretsV1, before...)
	h.configure(configMapsTravel)
	h.expectOnTarget(secretsV1, "changed", holds("a", "dw=="))
	h.expectGoneFromTarget(secretsV1, "deleted")
	h.expectGoneFromTarget(secretsV1, "released")
}

// A primary that the target refuses does not delay its related objects.
func TestRelatedObjectsOfARefusedPrimary(t *testing.T) {
	h := newKeyedHub(t, keyed, configMapsTravel)
	h.putSecret("one", "a: eA==")
	h.put(configMapsV1, "{apiVersion: v1, kind: ConfigMap, metadata: {name: broken, namespace: "+h.namespace+"}, data: {key: one, wrong: {a: b}}}")
	h.expectOnTarget(secretsV1, "one")
	h.expectFailure(configMapsV1, "broken", plan.ReasonInvalid)
	h.drop(configMapsV1, h.namespace, "broken")
	h.expectGoneFromTarget(secretsV1, "one")
}

// An object that is not selected claims nothing, and its changes cost nothing.
func TestUnselectedPrimariesNeedNoRequests(t *testing.T) {
	t.Parallel()
	h := newKeyedHub(t, keyed, "namespacedObjects: [{group: '', resource: configmaps, objectsByNamespace: [{namespace: NS, names: [first]}]}]")
	h.putSecret("one", "a: eA==")
	h.putConfigMap("first", "key: one")
	h.expectOnTarget(secretsV1, "one")
	h.waitUntilIdle()
	h.bindingReads()
	for i := range 5 {
		h.putConfigMap("unselected", fmt.Sprintf("key: one, a: x%d", i))
		h.waitUntilIdle()
	}
	h.drop(configMapsV1, h.namespace, "unselected")
	h.waitUntilIdle()
	if reads := h.bindingReads(); reads > 0 {
		t.Errorf("%d verifications were requested", reads)
	}
}
