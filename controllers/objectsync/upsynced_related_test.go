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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/plan"
)

// returning has relations that upsync Secrets to the ConfigMaps that name, own or label them.
const returning = `
related:
- identifier: named
  origin: Target
  resource: {version: v1, resource: secrets}
  object: {reference: {path: data.key}}
- identifier: owned
  origin: Target
  resource: {version: v1, resource: secrets}
  object: {owner: {}}
- identifier: labelled
  origin: Target
  resource: {version: v1, resource: secrets}
  object: {selector: {matchLabels: {box: "{{ .Primary.metadata.name }}"}}}
`

// createSecretOnTarget creates or updates a Secret on the target as another client.
func (n *targetNamespace) createSecretOnTarget(name, metadata, data string) {
	n.t.Helper()
	n.createSecretOnTargetIn(n.namespace, name, metadata, data)
}

func (n *targetNamespace) createSecretOnTargetIn(namespace, name, metadata, data string) {
	n.t.Helper()
	put(n.t, "{apiVersion: v1, kind: Secret, metadata: {name: "+name+", namespace: "+namespace+metadata+"}, data: {"+data+"}}")
}

// deleteOnTarget deletes an object of the target.
func (n *targetNamespace) deleteOnTarget(resource schema.GroupVersionResource, name string) {
	n.t.Helper()
	if err := administrator(n.t).Resource(resource).Namespace(n.namespace).Delete(n.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		n.t.Fatal(err)
	}
}

func (n *targetNamespace) deleteSecretOnTarget(name string) {
	n.t.Helper()
	n.deleteOnTarget(secretsV1, name)
}

// ownerMetadata returns metadata with an owner reference to a ConfigMap of the target.
func (n *targetNamespace) ownerMetadata(name string) string {
	n.t.Helper()
	owner := n.expectOnTarget(configMapsV1, name)
	return fmt.Sprintf(", ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: %s, uid: %s}]", name, owner.GetUID())
}

// expectGoneFromMailbox waits until the mailbox no longer has the Secret.
func (h *testHub) expectGoneFromMailbox(name string) {
	h.t.Helper()
	h.until(name+" is gone from the mailbox", func() bool { return h.get(secretsV1, h.namespace, name) == nil })
}

// expectUnchangedInMailbox fails the test unless mailbox objects are unchanged once the hub is idle.
func (h *testHub) expectUnchangedInMailbox(before ...*unstructured.Unstructured) {
	h.t.Helper()
	h.waitUntilIdle()
	for _, object := range before {
		after := h.get(secretsV1, h.namespace, object.GetName())
		switch {
		case after == nil || after.GetUID() != object.GetUID():
			h.t.Errorf("%s was deleted from the mailbox: %v", object.GetName(), after)
		case after.GetResourceVersion() != object.GetResourceVersion():
			h.t.Errorf("%s was written to\nfrom %v\nto   %v", object.GetName(), object, after)
		}
	}
}

func TestRelatedObjectsComeUp(t *testing.T) {
	t.Parallel()
	h := newKeyedHub(t, returning, configMapsTravel)
	h.createSecretOnTarget("named", "", "a: eA==")
	h.createSecretOnTarget("nobodys", "", "a: eA==")
	h.putConfigMap("first", "key: named")
	h.expectInMailbox(secretsV1, "named", holds("a", "eA=="))
	h.createSecretOnTarget("owned", h.ownerMetadata("first"), "a: eA==")
	h.expectInMailbox(secretsV1, "owned")
	h.createSecretOnTarget("labelled", ", labels: {box: first}", "a: eA==")
	h.expectInMailbox(secretsV1, "labelled")
	h.createSecretOnTarget("named", "", "a: dw==")
	h.expectInMailbox(secretsV1, "named", holds("a", "dw=="))
	// A Secret that becomes related later is upsynced without an event of its own.
	h.createSecretOnTarget("later", "", "a: eA==")
	h.putConfigMap("second", "key: later")
	h.expectInMailbox(secretsV1, "later")
	h.waitUntilIdle()
	if h.get(secretsV1, h.namespace, "nobodys") != nil {
		t.Error("an object without a claim was upsynced")
	}
	// The upsynced object is deleted with its source, its claim, or its primary.
	h.deleteSecretOnTarget("owned")
	h.expectGoneFromMailbox("owned")
	h.createSecretOnTarget("labelled", ", labels: {box: none}", "a: eA==")
	h.expectGoneFromMailbox("labelled")
	h.drop(configMapsV1, h.namespace, "first")
	h.expectGoneFromMailbox("named")
	h.expectUnchangedInMailbox(h.get(secretsV1, h.namespace, "later"))
	for name := range strings.FieldsSeq("named labelled later nobodys") {
		if found := h.onTarget(secretsV1, name); found == nil || len(found.GetAnnotations()) > 0 {
			t.Errorf("the source %s was changed: %v", name, found)
		}
	}
}

// All are upsynced although most become related while the cache is still being filled.
func TestManyRelatedObjectsComeUp(t *testing.T) {
	t.Parallel()
	h := newKeyedHub(t, returning, configMapsTravel)
	h.stop()
	const many = 60
	for i := range many {
		h.createSecretOnTarget(fmt.Sprint("s", i), fmt.Sprintf(", labels: {box: box-%d}", i), "a: eA==")
		h.putConfigMap(fmt.Sprint("box-", i), fmt.Sprintf("key: k%d", i))
		h.createSecretOnTarget(fmt.Sprint("k", i), "", "a: eA==")
	}
	h.start()
	for i := range many {
		h.expectInMailbox(secretsV1, fmt.Sprint("s", i))
		h.expectInMailbox(secretsV1, fmt.Sprint("k", i))
	}
}

// A restart without a change writes nothing.
func TestUpsyncedRelatedAcrossAnIdleRestart(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]bool{"before the primaries are processed": false, "after the primaries are processed": true} {
		t.Run(name, func(t *testing.T) { expectIdleRestarts(t, late) })
	}
}

func expectIdleRestarts(t *testing.T, requestsLate bool) {
	t.Helper()
	h := newKeyedHub(t, returning, configMapsTravel)
	h.requestsLate = requestsLate
	h.createSecretOnTarget("named", "", "a: eA==")
	h.createSecretOnTarget("labelled", ", labels: {box: second}", "a: eA==")
	h.putConfigMap("first", "key: named")
	h.putConfigMap("second", "key: named")
	h.createSecretOnTarget("owned", h.ownerMetadata("first"), "a: eA==")
	before := []*unstructured.Unstructured{h.expectInMailbox(secretsV1, "named"), h.expectInMailbox(secretsV1, "labelled"), h.expectInMailbox(secretsV1, "owned")}
	h.waitUntilIdle()
	h.written()
	h.bindingReads()
	for range 3 {
		h.restart()
		h.expectUnchangedInMailbox(before...)
	}
	if written := h.written(); len(written) > 0 {
		t.Errorf("the writes to the mailbox are %q", written)
	}
	if reads := h.bindingReads(); reads > 0 {
		t.Errorf("%d verifications were requested although nothing is missing", reads)
	}
}

// While the primary has no copy on the target, its claims there are unknown, so the upsynced objects stay.
func TestUpsyncedRelatedOfAPrimaryThatIsMissing(t *testing.T) {
	t.Parallel()
	h := newKeyedHub(t, returning, configMapsTravel)
	h.createSecretOnTarget("named", "", "a: eA==")
	h.putConfigMap("first", "key: named")
	h.expectOnTarget(configMapsV1, "first")
	before := h.expectInMailbox(secretsV1, "named")
	h.stop()
	h.deleteOnTarget(configMapsV1, "first")
	h.start()
	h.expectOnTarget(configMapsV1, "first")
	h.expectUnchangedInMailbox(before)
	// They also stay if the copy cannot be created because its name is taken.
	h.stop()
	h.deleteOnTarget(configMapsV1, "first")
	put(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: first, namespace: "+h.namespace+"}}")
	h.start()
	h.expectFailure(configMapsV1, "first", plan.ReasonConflict)
	h.expectUnchangedInMailbox(before)
	h.drop(configMapsV1, h.namespace, "first")
	h.expectGoneFromMailbox("named")
}

// Objects without a claim are deleted at a start, without an event of their own.
func TestUpsyncedRelatedReleasedWhileNotWatched(t *testing.T) {
	t.Parallel()
	h := newKeyedHub(t, returning, configMapsTravel)
	for name := range strings.FieldsSeq("gone unlabelled unnamed orphaned kept") {
		h.createSecretOnTarget(name, ", labels: {box: first}", "a: eA==")
	}
	h.putConfigMap("first", "key: kept")
	h.putConfigMap("second", "key: orphaned")
	for name := range strings.FieldsSeq("gone unlabelled unnamed orphaned kept") {
		h.expectInMailbox(secretsV1, name)
	}
	h.waitUntilIdle()
	kept := h.get(secretsV1, h.namespace, "kept")
	h.stop()
	h.deleteSecretOnTarget("gone")
	h.createSecretOnTarget("unlabelled", ", labels: {box: none}", "a: eA==")
	h.createSecretOnTarget("orphaned", ", labels: {box: none}", "a: eA==")
	h.createSecretOnTarget("unnamed", ", labels: {box: none}", "a: eA==")
	h.drop(configMapsV1, h.namespace, "second")
	h.start()
	for name := range strings.FieldsSeq("gone unlabelled unnamed orphaned") {
		h.expectGoneFromMailbox(name)
	}
	h.expectUnchangedInMailbox(kept)
}

// Upsynced objects stay when primaries or the objects themselves are missing from the mailbox's cache.
func TestUpsyncedRelatedOfPrimariesMissingFromTheCache(t *testing.T) {
	t.Parallel()
	h := newKeyedHub(t, returning, configMapsTravel)
	h.createSecretOnTarget("named", "", "a: eA==")
	h.putConfigMap("first", "key: named")
	h.expectOnTarget(configMapsV1, "first")
	before := h.expectInMailbox(secretsV1, "named")
	h.hide(configMapsV1)
	h.expectUnchangedInMailbox(before)
	h.restart()
	h.expectUnchangedInMailbox(before)
	h.show(configMapsV1)
	h.expectUnchangedInMailbox(before)
	h.hide(secretsV1)
	h.waitUntilIdle()
	h.show(secretsV1)
	h.expectUnchangedInMailbox(before)
}

// While the claims of one primary are unknown, no upsynced object is deleted. Afterwards unclaimed objects are deleted, without
// an event of their own.
func TestUpsyncedRelatedWhileOnePrimaryIsInvalid(t *testing.T) {
	t.Parallel()
	h := newKeyedHub(t, returning, configMapsTravel)
	h.createSecretOnTarget("one", "", "a: eA==")
	h.createSecretOnTarget("two", "", "a: eA==")
	h.putConfigMap("first", "key: one")
	h.putConfigMap("second", "key: two")
	h.expectInMailbox(secretsV1, "one")
	two := h.expectInMailbox(secretsV1, "two")
	h.putConfigMap("second", "key: 'not/legal'")
	h.expectFailure(configMapsV1, "second", plan.ReasonRuleFailed)
	h.putConfigMap("first", "")
	h.expectOnTarget(configMapsV1, "first", holds("key", ""))
	one := h.get(secretsV1, h.namespace, "one")
	h.expectUnchangedInMailbox(one, two)
	h.putConfigMap("second", "key: two")
	h.expectGoneFromMailbox("one")
	h.expectUnchangedInMailbox(two)
}

// upsyncOfOwn is the upsync of one Secret by a config.
const upsyncOfOwn = "upsync: [{apiGroup: '', resources: [secrets], namespaces: [NS], names: [own]}]"

// A controller that has just started may read an object from the cache as it was before its predecessor changed the mark: here as an
// object of a config that is gone.
func TestAnUpsyncedObjectIsNotRemovedAsItWasBefore(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]string{"deleted": "Delete", "released": "Orphan"} {
		t.Run(name, func(t *testing.T) {
			h := newKeyedHub(t, returning, configMapsTravel, "deletionPolicy: "+policy+"\n"+upsyncOfOwn)
			h.createSecretOnTarget("own", "", "a: eA==")
			h.expectInMailbox(secretsV1, "own")
			h.putConfigMap("first", "key: own")
			h.expectOnTarget(configMapsV1, "first")
			h.waitUntilIdle()
			h.locked(func() { h.staleNames["own"] = true })
			h.configure(configMapsTravel)
			own := h.expectInMailbox(secretsV1, "own", hasRelation("configmaps/named"))
			h.resources = h.resources[1:]
			h.publish(h.resources...)
			h.expectUnchangedInMailbox(own)
			h.showCurrent(secretsV1, "own")
			h.expectUnchangedInMailbox(own)
		})
	}
}

// Removing a PublishedResource deletes no upsynced object.
func TestUpsyncedRelatedOfUnpublishedResources(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"without a restart": false, "after a restart": true} {
		t.Run(name, func(t *testing.T) {
			h := newKeyedHub(t, returning, configMapsTravel, upsyncOfOwn)
			h.createSecretOnTarget("related", ", labels: {box: first}", "a: eA==")
			h.createSecretOnTarget("own", "", "a: eA==")
			h.expectInMailbox(secretsV1, "own")
			h.putConfigMap("first", "key: own")
			h.expectInMailbox(secretsV1, "related")
			h.configure(configMapsTravel)
			own := h.expectInMailbox(secretsV1, "own", hasRelation("configmaps/named"))
			secret := h.get(secretsV1, h.namespace, "related")
			h.resources = h.resources[1:]
			if restart {
				h.restart()
			} else {
				h.publish(h.resources...)
			}
			h.expectUnchangedInMailbox(secret, own)
		})
	}
}

// Outside the primary's namespace, a relation selects only in namespaces that a config selects, and of these only in namespaces
// that match the relation. After a restart, labels that are not cached yet cause no deletion.
func TestRelatedObjectsOfOtherNamespaces(t *testing.T) {
	t.Parallel()
	const spread = `
related:
- identifier: spread
  origin: Target
  resource: {version: v1, resource: secrets}
  object: {selector: {matchLabels: {box: "{{ .Primary.metadata.name }}"}}}
  namespace: {selector: {matchLabels: {team: a}}}
`
	h := newHub(t, []plan.Resource{resourceNamed(t, configMapsV1, spread), resourceNamed(t, secretsV1, "")}, configMapsTravel)
	reached, unlabelled, unreached := h.namespace+"-in", h.namespace+"-un", h.namespace+"-out"
	for namespace, labels := range map[string]string{reached: "{team: a}", unlabelled: "{}", unreached: "{team: a}"} {
		put(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+namespace+", labels: "+labels+"}}")
		h.put(namespaces, "{apiVersion: v1, kind: Namespace, metadata: {name: "+namespace+"}}")
		h.createSecretOnTargetIn(namespace, "x", ", labels: {box: first}", "a: eA==")
	}
	reach := "namespaceScope: {namespaces: [" + reached + ", " + unlabelled + "], resources: [{group: '', resource: pods}]}"
	h.putConfigMap("first", "a: b")
	h.expectOnTarget(configMapsV1, "first")
	h.waitUntilIdle()
	above := func(namespace string) func() bool {
		return func() bool { return h.get(secretsV1, namespace, "x") != nil }
	}
	for _, namespace := range []string{reached, unlabelled, unreached} {
		if above(namespace)() {
			t.Errorf("an object of %s, which no config selects, was upsynced", namespace)
		}
	}
	h.configure(configMapsTravel, reach)
	h.until("the object in the selected namespace is upsynced", above(reached))
	put(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+unlabelled+", labels: {team: a}}}")
	h.until("the object in the namespace with the new label is upsynced", above(unlabelled))
	h.waitUntilIdle()
	if above(unreached)() {
		t.Error("an object of a namespace that no config selects was upsynced")
	}
	before := h.get(secretsV1, reached, "x")
	for range 3 {
		h.restart()
		h.waitUntilIdle()
		if after := h.get(secretsV1, reached, "x"); after == nil || after.GetUID() != before.GetUID() || after.GetResourceVersion() != before.GetResourceVersion() {
			t.Fatalf("after a restart the object was %v\nand is %v", before, after)
		}
	}
	put(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+unlabelled+", labels: {team: b}}}")
	h.until("the object in the namespace without the label is deleted", func() bool { return !above(unlabelled)() })
	h.configure(configMapsTravel)
	h.until("the object in the deselected namespace is deleted", func() bool { return !above(reached)() })
}

// A cluster-scoped object is claimed by its name alone.
func TestRelatedObjectsInNoNamespace(t *testing.T) {
	t.Parallel()
	const volumes = `
related:
- identifier: volume
  origin: Target
  resource: {version: v1, resource: persistentvolumes}
  object: {reference: {path: data.volume}}
`
	persistentVolumes := secretsV1.GroupVersion().WithResource("persistentvolumes")
	volume := resourceNamed(t, persistentVolumes, "")
	volume.Namespaced, volume.RelatedOnly, volume.PublishedResource = false, true, ""
	h := newHub(t, []plan.Resource{resourceNamed(t, configMapsV1, volumes), volume}, configMapsTravel)
	name := unique("volume")
	put(t, "{apiVersion: v1, kind: PersistentVolume, metadata: {name: "+name+"}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /tmp}}}")
	t.Cleanup(func() {
		_ = administrator(t).Resource(persistentVolumes).Delete(t.Context(), name, metav1.DeleteOptions{})
	})
	h.putConfigMap("first", "volume: "+name)
	above := func() *unstructured.Unstructured { return h.get(persistentVolumes, "", name) }
	h.until("the volume is upsynced", func() bool { return above() != nil })
	h.waitUntilIdle()
	before := above()
	h.restart()
	h.waitUntilIdle()
	if after := above(); after == nil || after.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("after a restart the volume was %v\nand is %v", before, after)
	}
	h.putConfigMap("first", "")
	h.until("the volume is deleted from the mailbox", func() bool { return above() == nil })
	if found := onTargetIn(t, persistentVolumes, "", name); found == nil {
		t.Error("the source was deleted")
	}
}
