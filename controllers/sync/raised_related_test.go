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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// made is a Secret that somebody makes on the target.
func (h *hub) made(name, metadata, data string) {
	h.t.Helper()
	h.madeIn(h.namespace, name, metadata, data)
}

func (h *hub) madeIn(namespace, name, metadata, data string) {
	h.t.Helper()
	put(h.t, "{apiVersion: v1, kind: Secret, metadata: {name: "+name+", namespace: "+namespace+metadata+"}, data: {"+data+"}}")
}

// unmadeBelow deletes an object of the target.
func (h *hub) unmadeBelow(resource schema.GroupVersionResource, name string) {
	h.t.Helper()
	if err := administrator(h.t).Resource(resource).Namespace(h.namespace).Delete(h.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		h.t.Fatal(err)
	}
}

func (h *hub) unmade(name string) {
	h.t.Helper()
	h.unmadeBelow(secretsV1, name)
}

// ownedBy says in the metadata of an object that a ConfigMap of the target owns it.
func (h *hub) ownedBy(name string) string {
	h.t.Helper()
	owner := h.goesDown(configMapsV1, name)
	return fmt.Sprintf(", ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: %s, uid: %s}]", name, owner.GetUID())
}

// isGoneAbove waits until the mailbox has no such object any more.
func (h *hub) isGoneAbove(name string) {
	h.t.Helper()
	h.until(name+" is gone from the mailbox", func() bool { return h.get(secretsV1, h.namespace, name) == nil })
}

// staysAbove fails the test unless objects of the mailbox are what they were once the hub is quiet.
func (h *hub) staysAbove(before ...*unstructured.Unstructured) {
	h.t.Helper()
	h.quiet()
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
	h := keyedHub(t, returning, configMapsTravel)
	h.made("named", "", "a: eA==")
	h.made("nobodys", "", "a: eA==")
	h.box("first", "key: named")
	h.comesUp(secretsV1, "named", holds("a", "eA=="))
	h.made("owned", h.ownedBy("first"), "a: eA==")
	h.comesUp(secretsV1, "owned")
	h.made("labelled", ", labels: {box: first}", "a: eA==")
	h.comesUp(secretsV1, "labelled")
	h.made("named", "", "a: dw==")
	h.comesUp(secretsV1, "named", holds("a", "dw=="))
	// One that becomes related later, though nothing happens to it.
	h.made("later", "", "a: eA==")
	h.box("second", "key: later")
	h.comesUp(secretsV1, "later")
	h.quiet()
	if h.get(secretsV1, h.namespace, "nobodys") != nil {
		t.Error("what nobody names came up")
	}
	// It goes with the original, with the relation, and with the primary.
	h.unmade("owned")
	h.isGoneAbove("owned")
	h.made("labelled", ", labels: {box: none}", "a: eA==")
	h.isGoneAbove("labelled")
	h.drop(configMapsV1, h.namespace, "first")
	h.isGoneAbove("named")
	h.staysAbove(h.get(secretsV1, h.namespace, "later"))
	for name := range strings.FieldsSeq("named labelled later nobodys") {
		if found := h.below(secretsV1, name); found == nil || len(found.GetAnnotations()) > 0 {
			t.Errorf("the original %s was touched: %v", name, found)
		}
	}
}

// Many of them come up though most become related while the feed is still being filled.
func TestManyRelatedObjectsComeUp(t *testing.T) {
	h := keyedHub(t, returning, configMapsTravel)
	h.stop()
	const many = 60
	for i := range many {
		h.made(fmt.Sprint("s", i), fmt.Sprintf(", labels: {box: box-%d}", i), "a: eA==")
		h.box(fmt.Sprint("box-", i), fmt.Sprintf("key: k%d", i))
		h.made(fmt.Sprint("k", i), "", "a: eA==")
	}
	h.start()
	for i := range many {
		h.comesUp(secretsV1, fmt.Sprint("s", i))
		h.comesUp(secretsV1, fmt.Sprint("k", i))
	}
}

// A hub that begins anew finds all as it was, and writes nothing.
func TestRaisedRelativesAcrossAnIdleRestart(t *testing.T) {
	for name, late := range map[string]bool{"whenever primaries speak": false, "after primaries have spoken": true} {
		t.Run(name, func(t *testing.T) { expectIdleRestarts(t, late) })
	}
}

func expectIdleRestarts(t *testing.T, demandsLate bool) {
	t.Helper()
	h := keyedHub(t, returning, configMapsTravel)
	h.demandsLate = demandsLate
	h.made("named", "", "a: eA==")
	h.made("labelled", ", labels: {box: second}", "a: eA==")
	h.box("first", "key: named")
	h.box("second", "key: named")
	h.made("owned", h.ownedBy("first"), "a: eA==")
	before := []*unstructured.Unstructured{h.comesUp(secretsV1, "named"), h.comesUp(secretsV1, "labelled"), h.comesUp(secretsV1, "owned")}
	h.quiet()
	h.written()
	h.proven()
	for range 3 {
		h.restart()
		h.staysAbove(before...)
	}
	if written := h.written(); len(written) > 0 {
		t.Errorf("written to the mailbox was %q", written)
	}
	if proofs := h.proven(); proofs > 0 {
		t.Errorf("%d proofs were asked for, though nothing is missing", proofs)
	}
}

// While the copy of a primary is missing on the target it cannot be told what it wants there: what came up for it stays.
func TestRaisedRelativesOfAPrimaryThatIsMissing(t *testing.T) {
	h := keyedHub(t, returning, configMapsTravel)
	h.made("named", "", "a: eA==")
	h.box("first", "key: named")
	h.goesDown(configMapsV1, "first")
	before := h.comesUp(secretsV1, "named")
	h.stop()
	h.unmadeBelow(configMapsV1, "first")
	h.start()
	h.goesDown(configMapsV1, "first")
	h.staysAbove(before)
	// Also if it cannot be made again, because its name is taken.
	h.stop()
	h.unmadeBelow(configMapsV1, "first")
	put(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: first, namespace: "+h.namespace+"}}")
	h.start()
	h.fails(configMapsV1, "first", ReasonConflict)
	h.staysAbove(before)
	h.drop(configMapsV1, h.namespace, "first")
	h.isGoneAbove("named")
}

// What is not wanted any more when a hub begins goes; nobody need touch it.
func TestRaisedRelativesLetGoOfUnseen(t *testing.T) {
	h := keyedHub(t, returning, configMapsTravel)
	for name := range strings.FieldsSeq("gone unlabelled unnamed orphaned kept") {
		h.made(name, ", labels: {box: first}", "a: eA==")
	}
	h.box("first", "key: kept")
	h.box("second", "key: orphaned")
	for name := range strings.FieldsSeq("gone unlabelled unnamed orphaned kept") {
		h.comesUp(secretsV1, name)
	}
	h.quiet()
	kept := h.get(secretsV1, h.namespace, "kept")
	h.stop()
	h.unmade("gone")
	h.made("unlabelled", ", labels: {box: none}", "a: eA==")
	h.made("orphaned", ", labels: {box: none}", "a: eA==")
	h.made("unnamed", ", labels: {box: none}", "a: eA==")
	h.drop(configMapsV1, h.namespace, "second")
	h.start()
	for name := range strings.FieldsSeq("gone unlabelled unnamed orphaned") {
		h.isGoneAbove(name)
	}
	h.staysAbove(kept)
}

// Whatever is out of sight in the mailbox, nothing that came up is removed.
func TestRaisedRelativesOfPrimariesOutOfSight(t *testing.T) {
	h := keyedHub(t, returning, configMapsTravel)
	h.made("named", "", "a: eA==")
	h.box("first", "key: named")
	h.goesDown(configMapsV1, "first")
	before := h.comesUp(secretsV1, "named")
	h.hide(configMapsV1)
	h.staysAbove(before)
	h.restart()
	h.staysAbove(before)
	h.show(configMapsV1)
	h.staysAbove(before)
	h.hide(secretsV1)
	h.quiet()
	h.show(secretsV1)
	h.staysAbove(before)
}

// While what one primary wants cannot be told, nothing goes; once it can, what nobody wants does, though nothing happens to
// it then.
func TestRaisedRelativesWhileOnePrimaryCannotBeUnderstood(t *testing.T) {
	h := keyedHub(t, returning, configMapsTravel)
	h.made("one", "", "a: eA==")
	h.made("two", "", "a: eA==")
	h.box("first", "key: one")
	h.box("second", "key: two")
	h.comesUp(secretsV1, "one")
	two := h.comesUp(secretsV1, "two")
	h.box("second", "key: 'not/legal'")
	h.fails(configMapsV1, "second", ReasonRuleFailed)
	h.box("first", "")
	h.goesDown(configMapsV1, "first", holds("key", ""))
	one := h.get(secretsV1, h.namespace, "one")
	h.staysAbove(one, two)
	h.box("second", "key: two")
	h.isGoneAbove("one")
	h.staysAbove(two)
}

// A PublishedResource that is removed leaves what came up for it.
func TestRaisedRelativesOfWhatIsNotPublishedAnyMore(t *testing.T) {
	for name, restart := range map[string]bool{"the hub goes on": false, "the hub is started again": true} {
		t.Run(name, func(t *testing.T) {
			const upsynced = "upsync: [{apiGroup: '', resources: [secrets], namespaces: [NS], names: [own]}]"
			h := keyedHub(t, returning, configMapsTravel, upsynced)
			h.made("kin", ", labels: {box: first}", "a: eA==")
			h.made("own", "", "a: eA==")
			h.comesUp(secretsV1, "own")
			h.box("first", "key: own")
			h.comesUp(secretsV1, "kin")
			h.configure(configMapsTravel)
			own := h.comesUp(secretsV1, "own", cameBy("configmaps/named"))
			kin := h.get(secretsV1, h.namespace, "kin")
			h.resources = h.resources[1:]
			if restart {
				h.restart()
			} else {
				h.publish(h.resources...)
			}
			h.staysAbove(kin, own)
		})
	}
}

// Beyond the primary's own namespace, only those are reached that a config selects, and of those only the ones that the
// relation does; a hub that begins anew concludes nothing from labels that it does not know yet.
func TestRelatedObjectsOfOtherNamespaces(t *testing.T) {
	const spread = `
related:
- identifier: spread
  origin: Target
  resource: {version: v1, resource: secrets}
  object: {selector: {matchLabels: {box: "{{ .Primary.metadata.name }}"}}}
  namespace: {selector: {matchLabels: {team: a}}}
`
	h := newHub(t, []Resource{resourceNamed(t, configMapsV1, spread), resourceNamed(t, secretsV1, "")}, configMapsTravel)
	reached, unlabelled, unreached := h.namespace+"-in", h.namespace+"-un", h.namespace+"-out"
	for namespace, labels := range map[string]string{reached: "{team: a}", unlabelled: "{}", unreached: "{team: a}"} {
		put(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+namespace+", labels: "+labels+"}}")
		h.put(namespaces, "{apiVersion: v1, kind: Namespace, metadata: {name: "+namespace+"}}")
		h.madeIn(namespace, "x", ", labels: {box: first}", "a: eA==")
	}
	reach := "namespaceScope: {namespaces: [" + reached + ", " + unlabelled + "], resources: [{group: '', resource: pods}]}"
	h.box("first", "a: b")
	h.goesDown(configMapsV1, "first")
	h.quiet()
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
	h.quiet()
	if above(unreached)() {
		t.Error("from a namespace that no config selects something came up")
	}
	before := h.get(secretsV1, reached, "x")
	for range 3 {
		h.restart()
		h.quiet()
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
	const volumes = `
related:
- identifier: volume
  origin: Target
  resource: {version: v1, resource: persistentvolumes}
  object: {reference: {path: data.volume}}
`
	persistentVolumes := secretsV1.GroupVersion().WithResource("persistentvolumes")
	volume := resourceNamed(t, persistentVolumes, "")
	volume.Namespaced, volume.Companion, volume.PublishedResource = false, true, ""
	h := newHub(t, []Resource{resourceNamed(t, configMapsV1, volumes), volume}, configMapsTravel)
	name := unique("volume")
	put(t, "{apiVersion: v1, kind: PersistentVolume, metadata: {name: "+name+"}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /tmp}}}")
	t.Cleanup(func() {
		_ = administrator(t).Resource(persistentVolumes).Delete(t.Context(), name, metav1.DeleteOptions{})
	})
	h.box("first", "volume: "+name)
	above := func() *unstructured.Unstructured { return h.get(persistentVolumes, "", name) }
	h.until("the volume comes up", func() bool { return above() != nil })
	h.quiet()
	before := above()
	h.restart()
	h.quiet()
	if after := above(); after == nil || after.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("after a restart the volume was %v\nand is %v", before, after)
	}
	h.box("first", "")
	h.until("the volume goes from the mailbox", func() bool { return above() == nil })
	if found := belowIn(t, persistentVolumes, "", name); found == nil {
		t.Error("the original was deleted")
	}
}
