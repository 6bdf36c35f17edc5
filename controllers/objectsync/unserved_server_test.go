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
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/plan"
)

// A copy that a placement made fails, without a request, while the target does not serve its API, and arrives once it does. The test counts
// requests, so it does not run in parallel.
func TestCopyOfAnUnservedAPI(t *testing.T) {
	group := unique("pipes") + ".example.org"
	valves := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "valves"}
	of := resourceNamed(t, valves, "")
	of.Kind, of.StatusReturn = "Valve", false
	h := &tenantHub{workspace: "2abc", testHub: newHub(t, []plan.Resource{of}, `
namespaceScope: {namespaces: [NS], resources: [{group: `+group+`, resource: valves}]}`)}
	h.until("the hub knows that the API is not served", func() bool { return !h.controllers[valves].Status.IsServed() })
	before := requestsToTargets(t)

	h.place(valves, "{apiVersion: "+group+"/v1, kind: Valve, metadata: {name: main, namespace: NS}}")
	h.until("the copy fails", func() bool { return h.testHub.failureOf(valves, "main").Reason == plan.ReasonNotServed })
	if message := h.testHub.failureOf(valves, "main").Message; !strings.Contains(message, "does not serve Valve."+group) {
		t.Errorf("the message is %s", message)
	}
	h.expectRequests(t, before, map[string]float64{})
	h.controllers[valves].Resume()
	h.expectRequests(t, before, map[string]float64{})

	put(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: valves.`+group+`}
spec:
  group: `+group+`
  scope: Namespaced
  names: {plural: valves, singular: valve, kind: Valve, listKind: ValveList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]`)
	h.until("the copy is on the target", func() bool { return h.onTarget(valves, "main") != nil })
	h.until("the copy does not fail", func() bool { return h.testHub.failureOf(valves, "main").Reason == "" })
}
