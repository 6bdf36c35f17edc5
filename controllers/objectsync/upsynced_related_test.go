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

// returning lets Secrets of the target come up to the ConfigMaps there that name, own or label them.
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

// createSecretOnTarget is a Secret that somebody makes on the target.
func (h *testHub) createSecretOnTarget(name, metadata, data string) {
	h.t.Helper()
	h.createSecretOnTargetIn(h.namespace, name, metadata, data)
}

func (h *testHub) createSecretOnTargetIn(namespace, name, metadata, data string) {
	h.t.Helper()
	put(h.t, "{apiVersion: v1, kind: Secret, metadata: {name: "+name+", namespace: "+namespace+metadata+"}, data: {"+data+"}}")
}

// deleteOnTarget deletes an object of the target.
func (h *testHub) deleteOnTarget(resource schema.GroupVersionResource, name string) {
	h.t.Helper()
	if err := administrator(h.t).Resource(resource).Namespace(h.namespace).Delete(h.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		h.t.Fatal(err)
	}
}

func (h *testHub) deleteSecretOnTarget(name string) {
	h.t.Helper()
	h.deleteOnTarget(secretsV1, name)
}

// ownerMetadata says in the metadata of an object that a ConfigMap of the target owns it.
func (h *testHub) ownerMetadata(name string) string {
	h.t.Helper()
	owner := h.expectOnTarget(configMapsV1, name)
	return fmt.Sprintf(", ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: %s, uid: %s}]", name, owner.GetUID())
}

// expectGoneFromMailbox waits until the mailbox has no such object any more.
func (h *testHub) expectGoneFromMailbox(name string) {
	h.t.Helper()
	h.until(name+" is gone from the mailbox", func() bool { return h.get(secretsV1, h.namespace, name) == nil })
}

// expectUnchangedInMailbox fails the test unless objects of the mailbox are what they were once the hub is quiet.
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
	// One that becomes related later, though nothing happens to it.
	h.createSecretOnTarget("later", "", "a: eA==")
	h.putConfigMap("second", "key: later")
	h.expectInMailbox(secretsV1, "later")
	h.waitUntilIdle()
	if h.get(secretsV1, h.namespace, "nobodys") != nil {
		t.Error("what nobody names came up")
	}
	// It goes with the original, with the relation, and with the primary.
	h.deleteSecretOnTarget("owned")
	h.expectGoneFromMailbox("owned")
	h.createSecretOnTarget("labelled", ", labels: {box: none}", "a: eA==")
	h.expectGoneFromMailbox("labelled")
	h.drop(configMapsV1, h.namespace, "first")
	h.expectGoneFromMailbox("named")
	h.expectUnchangedInMailbox(h.get(secretsV1, h.namespace, "later"))
	for name := range strings.FieldsSeq("named labelled later nobodys") {
		if found := h.onTarget(secretsV1, name); found == nil || len(found.GetAnnotations()) > 0 {
			t.Errorf("the original %s was touched: %v", name, found)
		}
	}
}

// Many of them come up though most become related while the feed is still being filled.
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

// A hub that begins anew finds all as it was, and writes nothing.
func TestUpsyncedRelatedAcrossAnIdleRestart(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]bool{"whenever primaries speak": false, "after primaries have spoken": true} {
		t.Run(name, func(t *testing.T) { expectIdleRestarts(t, late) })
	}
}

func expectIdleRestarts(t *testing.T, demandsLate bool) {
	t.Helper()
	h := newKeyedHub(t, returning, configMapsTravel)
	h.requestsLate = demandsLate
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
		t.Errorf("written to the mailbox was %q", written)
	}
	if reads := h.bindingReads(); reads > 0 {
		t.Errorf("%d proofs were asked for, though nothing is missing", reads)
	}
}

// While the copy of a primary is missing on the target it cannot be told what it wants there: what came up for it stays.
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
	// Also if it cannot be made again, because its name is taken.
	h.stop()
	h.deleteOnTarget(configMapsV1, "first")
	put(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: first, namespace: "+h.namespace+"}}")
	h.start()
	h.expectFailure(configMapsV1, "first", plan.ReasonConflict)
	h.expectUnchangedInMailbox(before)
	h.drop(configMapsV1, h.namespace, "first")
	h.expectGoneFromMailbox("named")
}

// What is not wanted any more when a hub begins goes; nobody need touch it.
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

// Whatever is out of sight in the mailbox, nothing that came up is removed.
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

// While what one primary wants cannot be told, nothing goes; once it can, what nobody wants does, though nothing happens to
// it then.
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

// A PublishedResource that is removed leaves what came up for it.
func TestUpsyncedRelatedOfUnpublishedResources(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"the hub goes on": false, "the hub is started again": true} {
		t.Run(name, func(t *testing.T) {
			const upsynced = "upsync: [{apiGroup: '', resources: [secrets], namespaces: [NS], names: [own]}]"
			h := newKeyedHub(t, returning, configMapsTravel, upsynced)
			h.createSecretOnTarget("kin", ", labels: {box: first}", "a: eA==")
			h.createSecretOnTarget("own", "", "a: eA==")
			h.expectInMailbox(secretsV1, "own")
			h.putConfigMap("first", "key: own")
			h.expectInMailbox(secretsV1, "kin")
			h.configure(configMapsTravel)
			own := h.expectInMailbox(secretsV1, "own", hasRelation("configmaps/named"))
			secret := h.get(secretsV1, h.namespace, "kin")
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

// Beyond the primary's own namespace, only those are reached that a config selects, and of those only the ones that the
// relation does; a hub that begins anew concludes nothing from labels that it does not know yet.
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
			t.Errorf("from %s, which no config selects, something came up", namespace)
		}
	}
	h.configure(configMapsTravel, reach)
	h.until("what is in a selected namespace comes up", above(reached))
	put(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+unlabelled+", labels: {team: a}}}")
	h.until("what is in a namespace comes up that has got the label", above(unlabelled))
	h.waitUntilIdle()
	if above(unreached)() {
		t.Error("from a namespace that no config selects something came up")
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
	h.until("what is in a namespace goes that has lost the label", func() bool { return !above(unlabelled)() })
	h.configure(configMapsTravel)
	h.until("what is in a namespace goes that is not selected any more", func() bool { return !above(reached)() })
}

// What is in no namespace is found by its name alone.
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
	h.until("the volume comes up", func() bool { return above() != nil })
	h.waitUntilIdle()
	before := above()
	h.restart()
	h.waitUntilIdle()
	if after := above(); after == nil || after.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("after a restart the volume was %v\nand is %v", before, after)
	}
	h.putConfigMap("first", "")
	h.until("the volume goes from the mailbox", func() bool { return above() == nil })
	if found := onTargetIn(t, persistentVolumes, "", name); found == nil {
		t.Error("the original was deleted")
	}
}
