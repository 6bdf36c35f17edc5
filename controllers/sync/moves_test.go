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
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// calledAbove is a config by which the ConfigMaps one and two come up under other names.
func calledAbove(one, two string) string {
	conversion := func(above, below string) string {
		return "{upstream: {version: v1, kind: ConfigMap, name: " + above + "}, downstream: {version: v1, kind: ConfigMap, name: " + below + "}}"
	}
	return "upsync: [{apiGroup: '', resources: [configmaps], namespaces: [NS], names: [one, two]}]\n" +
		"conversions: [" + conversion(one, "one") + ", " + conversion(two, "two") + "]"
}

func newMovingHub(t *testing.T) *hub {
	h := newHub(t, []Resource{resourceNamed(t, configMapsV1, "")}, calledAbove("first", "second"))
	put(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: "+h.namespace+"}, data: {number: '1'}}")
	put(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: two, namespace: "+h.namespace+"}, data: {number: '2'}}")
	h.comesUp(configMapsV1, "first", holds("number", "1"))
	h.comesUp(configMapsV1, "second", holds("number", "2"))
	return h
}

// What is to be in the mailbox under another name stays under the former one until it is there under the other.
func TestWhatComesUpMovesWithoutAGap(t *testing.T) {
	h := newMovingHub(t)
	first := h.above("first")
	h.refusing(func(verb, _ string) *metav1.Status {
		if verb == http.MethodPost {
			return failure(http.StatusInternalServerError, metav1.StatusReasonInternalError, "not now", nil)
		}
		return nil
	})
	h.configure(calledAbove("third", "second"))
	h.fails(configMapsV1, "third", ReasonMailboxRefused)
	if after := h.above("first"); after == nil || after.GetUID() != first.GetUID() {
		t.Errorf("it has gone before it came: %v", after)
	}
	h.refusing(func(string, string) *metav1.Status { return nil })
	h.comesUp(configMapsV1, "third", holds("number", "1"))
	h.until("the former one is gone", func() bool { return h.above("first") == nil })
}

// Two that take each other's names do not wait for each other.
func TestWhatComesUpSwapsNames(t *testing.T) {
	h := newMovingHub(t)
	h.configure(calledAbove("second", "first"))
	h.comesUp(configMapsV1, "first", holds("number", "2"))
	h.comesUp(configMapsV1, "second", holds("number", "1"))
}
