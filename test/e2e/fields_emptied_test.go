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

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/test/framework"
)

// boxes are custom resources with maps and lists of all sorts.
var boxes = custom("boxes.example.com", "v1", "boxes", "Box")

const boxesDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boxes.boxes.example.com}
spec:
  group: boxes.example.com
  scope: Namespaced
  names: {plural: boxes, singular: box, kind: Box, listKind: BoxList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          values: {type: object, x-kubernetes-preserve-unknown-fields: true}
          settings: {type: object, additionalProperties: {type: string}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
          spec:
            type: object
            properties:
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
              map: {type: object, additionalProperties: {type: string}}
              nullable: {type: object, nullable: true, additionalProperties: {type: string}}
              objects: {type: object, additionalProperties: {type: object, properties: {size: {type: integer}, more: {type: object, additionalProperties: {type: string}}}}}
              struct: {type: object, properties: {size: {type: integer}, color: {type: string}}}
              atomic: {type: object, x-kubernetes-map-type: atomic, additionalProperties: {type: string}}
              list: {type: array, items: {type: string}}
              set: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              keyed: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, labels: {type: object, additionalProperties: {type: string}}}}}
`

// emptyings are merge patches that remove the last entry of a map or list of a full Box, and what remains.
var emptyings = map[string]struct{ full, patch, empty string }{
	"free-top":    {`{"values":{"a":1}}`, `{"values":{"a":null}}`, `{"values":{}}`},
	"map-top":     {`{"settings":{"a":"x"}}`, `{"settings":{"a":null}}`, `{"settings":{}}`},
	"spec":        {`{"spec":{"map":{"a":"x"}}}`, `{"spec":{"map":null}}`, `{"spec":{}}`},
	"free":        {`{"spec":{"free":{"a":{"b":1}}}}`, `{"spec":{"free":{"a":{"b":null}}}}`, `{"spec":{"free":{"a":{}}}}`},
	"free-list":   {`{"spec":{"free":{"a":[1]}}}`, `{"spec":{"free":{"a":[]}}}`, `{"spec":{"free":{"a":[]}}}`},
	"map":         {`{"spec":{"map":{"a":"x"}}}`, `{"spec":{"map":{"a":null}}}`, `{"spec":{"map":{}}}`},
	"nullable":    {`{"spec":{"nullable":{"a":"x"}}}`, `{"spec":{"nullable":{"a":null}}}`, `{"spec":{"nullable":{}}}`},
	"objects":     {`{"spec":{"objects":{"a":{"size":1}}}}`, `{"spec":{"objects":{"a":null}}}`, `{"spec":{"objects":{}}}`},
	"object":      {`{"spec":{"objects":{"a/b~c":{"size":1}}}}`, `{"spec":{"objects":{"a/b~c":{"size":null}}}}`, `{"spec":{"objects":{"a/b~c":{}}}}`},
	"struct":      {`{"spec":{"struct":{"color":"red","size":1}}}`, `{"spec":{"struct":{"color":null,"size":null}}}`, `{"spec":{"struct":{}}}`},
	"atomic-map":  {`{"spec":{"atomic":{"a":"x"}}}`, `{"spec":{"atomic":{"a":null}}}`, `{"spec":{"atomic":{}}}`},
	"atomic-list": {`{"spec":{"list":["a"]}}`, `{"spec":{"list":[]}}`, `{"spec":{"list":[]}}`},
	"set":         {`{"spec":{"set":["a","b"]}}`, `{"spec":{"set":[]}}`, `{"spec":{"set":[]}}`},
	"keyed":       {`{"spec":{"keyed":[{"name":"a"}]}}`, `{"spec":{"keyed":[]}}`, `{"spec":{"keyed":[]}}`},
	"keyed-item": {
		`{"spec":{"keyed":[{"name":"a"},{"labels":{"x":"z"},"name":"b"}]}}`, `{"spec":{"keyed":[{"name":"a"},{"name":"b","labels":{}}]}}`,
		`{"spec":{"keyed":[{"name":"a"},{"labels":{},"name":"b"}]}}`,
	},
	"two": {`{"settings":{"a":"x"},"spec":{"map":{"a":"x"},"set":["a"]}}`, `{"settings":{"a":null},"spec":{"map":{"a":null},"set":[]}}`, `{"settings":{},"spec":{"map":{},"set":[]}}`},
}

// box returns a Box with fields in JSON.
func box(namespace, name, fields string) string {
	object := map[string]any{}
	Expect(json.Unmarshal([]byte(fields), &object)).To(Succeed())
	object["apiVersion"], object["kind"], object["metadata"] = "boxes.example.com/v1", "Box", map[string]any{"namespace": namespace, "name": name}
	text, err := json.Marshal(object)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// boxesIn returns the fields of each Box of a namespace.
func boxesIn(ctx context.Context, config *rest.Config, namespace string) map[string]string {
	found := map[string]string{}
	for name := range emptyings {
		object, err := framework.Get(ctx, config, boxes.GroupVersionResource, namespace, name)
		if err != nil {
			continue
		}
		for _, field := range []string{"apiVersion", "kind", "metadata", "status"} {
			delete(object.Object, field)
		}
		text, _ := json.Marshal(object.Object)
		found[name] = string(text)
	}
	return found
}

var _ = Describe("a map or list that becomes empty", Label("placement"), func() {
	It("becomes empty on the other side in both directions, and is filled again", thorough, func(ctx SpecContext) {
		const down, placed, up = "emptied-down", "emptied-placed", "emptied-up"
		hosting, florin := target("hosting"), target("florin")
		apply(ctx, hosting, boxesDefinition)
		apply(ctx, florin, documents(boxesDefinition, namespace(up)))
		publishAs(ctx, "boxes", "\n  resource: {group: boxes.example.com, resource: boxes}")
		eventuallyPublished(ctx, "boxes")
		inventory, workload := newInventory(ctx, "emptied"), newWorkload(ctx, "emptied-workload")
		Expect(inventory.Register(ctx, "florin", kubeconfigOf("florin"), map[string]string{"env": "prod"})).To(Succeed())
		apply(ctx, inventory.Config, location("prod", "prod", workload.Path))
		mailbox := mailboxOf(ctx, inventory, "florin")
		directions := map[string]struct{ source, destination *rest.Config }{
			down: {mailbox, florin}, placed: {workload.Config, florin}, up: {florin, mailbox},
		}
		apply(ctx, mailbox, namespace(down))
		apply(ctx, workload.Config, namespace(placed))
		arrives := func(wanted func(name string) string) {
			GinkgoHelper()
			want := map[string]string{}
			for name := range emptyings {
				want[name] = wanted(name)
			}
			for _, ns := range slices.Sorted(maps.Keys(directions)) {
				Eventually(boxesIn).WithContext(ctx).WithArguments(directions[ns].destination, ns).Should(Equal(want), ns)
			}
		}
		edit := func(patchOf func(name string) string) {
			GinkgoHelper()
			for ns, direction := range directions {
				for name := range emptyings {
					patch(ctx, direction.source, boxes.GroupVersionResource, ns, name, patchOf(name))
				}
			}
		}
		full := func(name string) string { return emptyings[name].full }
		empty := func(name string) string { return emptyings[name].empty }

		for ns, direction := range directions {
			for name, emptying := range emptyings {
				eventuallyApplied(ctx, direction.source, box(ns, name, emptying.full))
			}
		}
		eventuallyPlaced(ctx, workload, placementOn("boxes", placed))
		apply(ctx, mailbox, documents(selecting(down, boxes.GroupVersionResource),
			syncerConfig(up, fmt.Sprintf(`{upsync: [{apiGroup: boxes.example.com, resources: [boxes], namespaces: [%s], names: ["*"]}]}`, up))))
		arrives(full)
		patch(ctx, florin, boxes.GroupVersionResource, down, "map", `{"status": {"map": {"a": "x"}, "list": ["a"]}}`, "status")
		Eventually(value).WithContext(ctx).WithArguments(mailbox, boxes.GroupVersionResource, down, "map", "status").Should(ContainSubstring("x"))

		By("emptying all")
		edit(func(name string) string { return emptyings[name].patch })
		arrives(empty)
		patch(ctx, florin, boxes.GroupVersionResource, down, "map", `{"status": {"map": {"a": null}, "list": []}}`, "status")
		Eventually(value).WithContext(ctx).WithArguments(mailbox, boxes.GroupVersionResource, down, "map", "status").Should(Equal("map[list:[] map:map[]]"))
		for _, config := range []string{down, up} {
			Eventually(framework.Condition).WithContext(ctx).WithArguments(mailbox, syncerConfigs, "", config, "Ready").Should(Equal("True"))
		}
		Eventually(readyStatus).WithContext(ctx).WithArguments(workload, "boxes").Should(Equal("True"))
		before := identities(ctx, florin, boxes.GroupVersionResource, down, "")
		staysFor(ctx, func() string { return fmt.Sprint(identities(ctx, florin, boxes.GroupVersionResource, down, "")) }, fmt.Sprint(before))

		By("filling all again")
		edit(full)
		arrives(full)
	}, NodeTimeout(4*time.Minute))
})
