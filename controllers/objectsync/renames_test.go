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
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/synchub-dev/synchub/controllers/plan"
)

// renamingConfig is a config that upsyncs the ConfigMaps one and two under other names.
func renamingConfig(one, two string) string {
	conversion := func(above, below string) string {
		return "{upstream: {version: v1, kind: ConfigMap, name: " + above + "}, downstream: {version: v1, kind: ConfigMap, name: " + below + "}}"
	}
	return "upsync: [{apiGroup: '', resources: [configmaps], namespaces: [NS], names: [one, two]}]\n" +
		"conversions: [" + conversion(one, "one") + ", " + conversion(two, "two") + "]"
}

func newRenamingHub(t *testing.T) *testHub {
	h := newHub(t, []plan.Resource{resourceNamed(t, configMapsV1, "")}, renamingConfig("first", "second"))
	put(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: "+h.namespace+"}, data: {number: '1'}}")
	put(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: two, namespace: "+h.namespace+"}, data: {number: '2'}}")
	h.expectInMailbox(configMapsV1, "first", holds("number", "1"))
	h.expectInMailbox(configMapsV1, "second", holds("number", "2"))
	return h
}

// An object that gets another name in the mailbox keeps the old name until it exists under the new one.
func TestUpsyncedObjectsAreRenamedWithoutAGap(t *testing.T) {
	h := newRenamingHub(t)
	first := h.configMapInMailbox("first")
	h.refuseWrites(func(verb, _ string) *metav1.Status {
		if verb == http.MethodPost {
			return failure(http.StatusInternalServerError, metav1.StatusReasonInternalError, "not now", nil)
		}
		return nil
	})
	h.configure(renamingConfig("third", "second"))
	h.expectFailure(configMapsV1, "third", plan.ReasonMailboxRefused)
	if after := h.configMapInMailbox("first"); after == nil || after.GetUID() != first.GetUID() {
		t.Errorf("the old object is gone before the new one exists: %v", after)
	}
	h.refuseWrites(func(string, string) *metav1.Status { return nil })
	h.expectInMailbox(configMapsV1, "third", holds("number", "1"))
	h.until("the old object is gone", func() bool { return h.configMapInMailbox("first") == nil })
}

// Two objects that swap their names do not wait for each other.
func TestUpsyncedObjectsSwapNames(t *testing.T) {
	h := newRenamingHub(t)
	h.configure(renamingConfig("second", "first"))
	h.expectInMailbox(configMapsV1, "first", holds("number", "2"))
	h.expectInMailbox(configMapsV1, "second", holds("number", "1"))
}
