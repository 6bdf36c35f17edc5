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
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

var (
	apiExports         = schema.GroupVersionResource{Group: "apis.kcp.io", Version: "v1alpha2", Resource: "apiexports"}
	apiResourceSchemas = schema.GroupVersionResource{Group: "apis.kcp.io", Version: "v1alpha1", Resource: "apiresourceschemas"}
	ingresses          = api{GroupVersionResource: schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"}, kind: "Ingress"}
	cronJobs           = api{GroupVersionResource: schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}, kind: "CronJob"}
)

// sized are properties of a spec in the CRDs of these specs. More properties may follow.
const sized = `
  size: {type: integer, minimum: 1}
  port: {x-kubernetes-int-or-string: true}
  memory: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}], pattern: "^[0-9.]+(Ki|Mi|Gi)?$"}`

// withSpec returns a CRD of the API that allows only some properties in the spec. All versions are equal, and the first is
// the storage version.
func (a api) withSpec(properties string, versions ...string) string {
	var text strings.Builder
	text.WriteString(a.definition()[:strings.Index(a.definition(), "  versions:")])
	text.WriteString("  versions:")
	for i, version := range versions {
		fmt.Fprintf(&text, `
  - name: %s
    served: true
    storage: %t
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
          spec:
            type: object
            required: [size]
            properties:%s`, version, i == 0, strings.ReplaceAll(properties, "\n", "\n            "))
	}
	return text.String()
}

// readyCondition returns the status, reason and message of the condition Ready of a PublishedResource.
func readyCondition(ctx context.Context, name string) string {
	object, err := framework.Get(ctx, target("hosting"), publishedResources, "", name)
	if err != nil {
		return err.Error()
	}
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, condition := range conditions {
		if fields := condition.(map[string]any); fields["type"] == "Ready" {
			return fmt.Sprintf("%s %s: %s", fields["status"], fields["reason"], fields["message"])
		}
	}
	return ""
}

// specOf returns the spec of an object with the types of its numbers; nil if the object does not exist.
func specOf(ctx context.Context, config *rest.Config, resource schema.GroupVersionResource, namespace, name string) any {
	object, err := framework.Get(ctx, config, resource, namespace, name)
	if err != nil {
		return nil
	}
	return object.Object["spec"]
}

// eventuallyApplied applies a manifest as soon as the mailbox has all its APIs.
func eventuallyApplied(ctx context.Context, mailbox *rest.Config, manifest string) {
	GinkgoHelper()
	Eventually(framework.Apply).WithContext(ctx).WithArguments(mailbox, manifest).Should(Succeed())
}

// expectRefused expects that the mailbox's schema rejects an object.
func expectRefused(ctx context.Context, mailbox *rest.Config, manifest, field string) {
	GinkgoHelper()
	err := framework.Apply(ctx, mailbox, manifest)
	Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
	Expect(err).To(MatchError(ContainSubstring(field)))
}

var _ = Describe("mailboxes get an API", func() {
	It("from any source of its definition, and can use it at once", func(ctx SpecContext) {
		const ns, group = "sources", "sources.example.com"
		dials, knobs, levers := custom(group, "v1", "dials", "Dial"), custom(group, "v1", "knobs", "Knob"), custom(group, "v1", "levers", "Lever")
		hosting, florin := target("hosting"), target("florin")
		apply(ctx, hosting, dials.withSpec(sized, "v1"))
		for _, one := range []api{dials, knobs, levers} {
			apply(ctx, florin, one.withSpec(sized, "v1"))
		}
		inventory := sharedInventory()
		mailbox := register(ctx, inventory, "florin", "florin")
		apply(ctx, mailbox, namespace(ns))
		replica := hub.Pid()

		apply(ctx, hosting, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: knobs, namespace: %s}\ndata:\n  knobs.yaml: |\n    %s",
			installation.Namespace, strings.ReplaceAll(knobs.withSpec(sized, "v1"), "\n", "\n    ")))
		publishAs(ctx, "dials", "\n  resource: {group: sources.example.com, resource: dials}")
		publishAs(ctx, "knobs", "\n  resource: {group: sources.example.com, kind: Knob}\n  api: {schemaFrom: {configMap: {name: knobs, key: knobs.yaml}}}")
		publishAs(ctx, "levers", "\n  resource: {group: sources.example.com, resource: levers}\n  api: {schemaFrom: {syncTarget: {cluster: \""+inventory.Path+"\", name: florin}}}")
		publishAs(ctx, "ingresses", "\n  resource: {group: networking.k8s.io, resource: ingresses}")
		publishAs(ctx, "cronjobs", "\n  resource: {group: batch, resource: cronjobs}")

		const content, other = `spec: {size: 3, port: 8080, memory: 1.50Gi}`, `spec: {size: 1, port: "http", memory: 1048576}`
		const routes = `{ingressClassName: none, rules: [{host: example.com, http: {paths: [
    {path: /a, pathType: Prefix, backend: {service: {name: a, port: {number: 80}}}},
    {path: /b, pathType: Exact, backend: {service: {name: b, port: {name: web}}}}]}}]}`
		const pod = `{restartPolicy: Never, containers: [{name: one, image: registry.invalid/one, resources: {limits: {cpu: 1500m, memory: 1536Mi}},
    livenessProbe: {httpGet: {path: /, port: 80}}, readinessProbe: {tcpSocket: {port: admin}}}]}`
		eventuallyApplied(ctx, mailbox, documents(
			dials.object(ns, "one", content), dials.object(ns, "two", other), knobs.object(ns, "one", content), knobs.object(ns, "two", other),
			levers.object(ns, "one", content), levers.object(ns, "two", other),
			ingresses.object(ns, "one", "spec: "+routes),
			cronJobs.object(ns, "one", `spec: {schedule: "0 0 1 1 *", suspend: true, jobTemplate: {spec: {template: {spec: `+pod+`}}}}`)))
		apply(ctx, mailbox, selecting(ns, dials.GroupVersionResource, knobs.GroupVersionResource, levers.GroupVersionResource, ingresses.GroupVersionResource, cronJobs.GroupVersionResource))
		By("syncing their objects unchanged")
		for _, one := range []api{dials, knobs, levers} {
			Eventually(specOf).WithContext(ctx).WithArguments(florin, one.GroupVersionResource, ns, "one").
				Should(Equal(map[string]any{"size": int64(3), "port": int64(8080), "memory": "1.50Gi"}), one.Resource)
			Eventually(specOf).WithContext(ctx).WithArguments(florin, one.GroupVersionResource, ns, "two").
				Should(Equal(map[string]any{"size": int64(1), "port": "http", "memory": int64(1048576)}), one.Resource)
		}
		eventuallyExists(ctx, florin, ingresses.GroupVersionResource, ns, "one")
		Expect(specOf(ctx, florin, ingresses.GroupVersionResource, ns, "one")).To(Equal(specOf(ctx, mailbox, ingresses.GroupVersionResource, ns, "one")))
		Eventually(value).WithContext(ctx).WithArguments(florin, cronJobs.GroupVersionResource, ns, "one", "spec", "jobTemplate", "spec", "template", "spec", "containers").
			Should(And(ContainSubstring("limits:map[cpu:1500m memory:1536Mi]"), ContainSubstring("port:80"), ContainSubstring("tcpSocket:map[port:admin]")))
		By("refusing objects in the mailbox that the target would refuse")
		for _, one := range []api{dials, knobs, levers} {
			expectRefused(ctx, mailbox, one.object(ns, "wrong", "spec: {size: 0}"), "spec.size")
			expectRefused(ctx, mailbox, one.object(ns, "wrong", "spec: {size: 1, memory: plenty}"), "spec.memory")
		}
		expectRefused(ctx, mailbox, cronJobs.object(ns, "wrong", `spec: {schedule: "0 0 1 1 *", concurrencyPolicy: Sometimes, jobTemplate: {}}`), "spec.concurrencyPolicy")
		expectRefused(ctx, mailbox, ingresses.object(ns, "wrong", "spec: {rules: [{http: {paths: [{path: /a, pathType: Sometimes, backend: {}}]}}]}"), "pathType")
		Expect(hub.Ended()).To(BeFalse())
		Expect(hub.Pid()).To(Equal(replica), "the same replica has done all of it")
	}, NodeTimeout(4*time.Minute))

	It("in several versions, and another schema when the definition changes", thorough, func(ctx SpecContext) {
		const ns, group = "versions", "versions.example.com"
		first, second := custom(group, "v1", "scales", "Scale"), custom(group, "v2", "scales", "Scale")
		hosting, florin, provider := target("hosting"), target("florin"), synchub.InWorkspace(synchub.Workspace)
		const colored, grown = sized + "\n  color: {type: string}", sized + "\n  color: {type: string}\n  shape: {type: string}"
		apply(ctx, hosting, second.withSpec(colored, "v1", "v2"))
		apply(ctx, florin, second.withSpec(grown, "v1", "v2"))
		publishAs(ctx, "scales", "\n  resource: {group: versions.example.com, resource: scales}")
		eventuallyPublished(ctx, "scales")
		mailbox := sharedMailbox(ctx, "florin")
		gvr := second.GroupVersionResource
		apply(ctx, mailbox, documents(namespace(ns), first.object(ns, "painted", "spec: {size: 1, color: white}"), second.object(ns, "plain", "spec: {size: 2}"),
			selecting(ns, first.GroupVersionResource)))
		By("writing to the target in the version that the entry names, for objects created in any version")
		Eventually(specOf).WithContext(ctx).WithArguments(florin, gvr, ns, "painted").Should(Equal(map[string]any{"size": int64(1), "color": "white"}))
		eventuallyExists(ctx, florin, gvr, ns, "plain")
		Expect(value(ctx, mailbox, gvr, ns, "painted", "spec", "color")).To(Equal("white"))
		Expect(value(ctx, mailbox, first.GroupVersionResource, ns, "plain", "spec", "size")).To(Equal("2"))
		Expect(value(ctx, florin, gvr, ns, "painted", "metadata", "managedFields")).To(And(ContainSubstring(group+"/v1"), Not(ContainSubstring(group+"/v2"))))

		By("moving the export to the new schema, and keeping the old schema and other managers' entries")
		schemaName := func() string { return value(ctx, hosting, publishedResources, "", "scales", "status", "schemaName") }
		exported := func() string {
			return value(ctx, provider, apiExports, "", synchubv1alpha1.MailboxExport, "spec", "resources")
		}
		before, placed := schemaName(), identities(ctx, florin, gvr, ns, "")
		Expect(exported()).To(ContainSubstring(before))
		apply(ctx, provider, fmt.Sprintf(`
apiVersion: apis.kcp.io/v1alpha1
kind: APIResourceSchema
metadata: {name: v1.strangers.versions.example.org}
spec:
  group: versions.example.org
  scope: Namespaced
  names: {plural: strangers, singular: stranger, kind: Stranger, listKind: StrangerList}
  versions: [{name: v1, served: true, storage: true, schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}]
---
apiVersion: apis.kcp.io/v1alpha2
kind: APIExport
metadata: {name: %s}
spec: {resources: [{group: versions.example.org, name: strangers, schema: v1.strangers.versions.example.org, storage: {crd: {}}}]}
`, synchubv1alpha1.MailboxExport))
		apply(ctx, hosting, second.withSpec(grown, "v1", "v2"))
		Eventually(schemaName).WithContext(ctx).ShouldNot(Equal(before))
		Eventually(exported).WithContext(ctx).Should(And(ContainSubstring(schemaName()), Not(ContainSubstring(before)), ContainSubstring("v1.strangers.versions.example.org")))
		Expect(framework.Exists(ctx, provider, apiResourceSchemas, "", before)).To(BeTrue())
		Eventually(func(g Gomega) {
			g.Expect(framework.Apply(ctx, mailbox, second.object(ns, "round", "spec: {size: 3, shape: round}"))).To(Succeed())
			g.Expect(value(ctx, mailbox, gvr, ns, "round", "spec", "shape")).To(Equal("round"), "in the mailbox")
			g.Expect(value(ctx, florin, gvr, ns, "round", "spec", "shape")).To(Equal("round"))
		}).WithContext(ctx).Should(Succeed())
		after := identities(ctx, florin, gvr, ns, "")
		Expect(after).To(And(HaveKeyWithValue("painted", placed["painted"]), HaveKeyWithValue("plain", placed["plain"])))

		By("replacing the controllers with each change, without leaks")
		paint := func(color string) {
			GinkgoHelper()
			patch(ctx, hosting, publishedResources, "", "scales", `{"spec": {"mutation": {"down": [{"regex": {"path": "spec.color", "pattern": "^white$", "replacement": "`+color+`"}}]}}}`)
			Eventually(value).WithContext(ctx).WithArguments(florin, gvr, ns, "painted", "spec", "color").Should(Equal(color))
		}
		paint("green")
		running := goroutines(ctx)
		for range 5 {
			paint("red")
			paint("green")
		}
		// Each pair of controllers has more goroutines than this; the goroutines of idle connections come and go.
		const unrelated = 8
		Eventually(goroutines).WithContext(ctx).Should(BeNumerically("<=", running+unrelated))
		Expect(identities(ctx, florin, gvr, ns, "plain")).To(HaveKeyWithValue("plain", placed["plain"]), "the changes make no difference to it")
		Expect(identities(ctx, florin, gvr, ns, "painted")["painted"]).To(HavePrefix(placed["painted"][:36]), "it is changed, not replaced")
	}, NodeTimeout(4*time.Minute))

	It("except where it would act inside kcp or is invalid, and other APIs are not affected", thorough, func(ctx SpecContext) {
		const ns, group = "nonsense", "nonsense.example.com"
		hosting, florin := target("hosting"), target("florin")
		widgets := custom(group, "v1", "widgets", "Widget")
		quotas := schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}
		quotasAbove := api{GroupVersionResource: schema.GroupVersionResource{Group: "quotas.example.com", Version: "v1", Resource: "resourcequotas"}, kind: "ResourceQuota"}
		define(ctx, hosting, widgets)
		define(ctx, florin, widgets)
		publishAs(ctx, "nonsense", "\n  resource: {group: nonsense.example.com, resource: widgets}")
		eventuallyPublished(ctx, "nonsense")
		mailbox := sharedMailbox(ctx, "florin")
		apply(ctx, mailbox, documents(namespace(ns), widgets.object(ns, "before", "spec: {size: 1}"), selecting(ns, widgets.GroupVersionResource)))
		eventuallyExists(ctx, florin, widgets.GroupVersionResource, ns, "before")

		By("refusing a quota under its own group, and downsyncing it from another")
		publishAs(ctx, "quotas-within", "\n  resource: {group: \"\", resource: resourcequotas}\n  api: {source: Schema}")
		publishAs(ctx, "quotas", "\n  resource: {group: \"\", version: v1, resource: resourcequotas, kind: ResourceQuota}\n  projection: {group: quotas.example.com}")
		Eventually(readyCondition).WithContext(ctx).WithArguments("quotas-within").Should(And(HavePrefix("False Invalid: "), ContainSubstring("spec.resource: resourcequotas acts inside kcp itself"),
			ContainSubstring("spec.projection.group")))
		eventuallyApplied(ctx, mailbox, quotasAbove.object(ns, "limits", `spec: {hard: {configmaps: "1", requests.memory: 1Gi}}`))
		apply(ctx, mailbox, selecting(ns, widgets.GroupVersionResource, quotasAbove.GroupVersionResource))
		Eventually(value).WithContext(ctx).WithArguments(florin, quotas, ns, "limits", "spec", "hard").Should(Equal("map[configmaps:1 requests.memory:1Gi]"))
		apply(ctx, mailbox, documents(configMap(ns, "one", "kcp"), configMap(ns, "two", "does not obey"), configMap(ns, "three", "it")))

		By("naming the field of each that is malformed")
		malformed := map[string]struct{ rules, field string }{
			"template":  {`naming: {name: "{{ .Nonsense }}"}`, "spec.naming.name"},
			"namespace": {`naming: {namespace: "{{ nonsense .Mailbox }}"}`, "spec.naming.namespace"},
			"filter":    {`filter: {cel: "self.spec.size >"}`, "spec.filter.cel"},
			"label":     {`filter: {resource: {matchLabels: {"not a label": x}}}`, "spec.filter.resource"},
			"mutation":  {`mutation: {down: [{delete: {path: spec.a}}, {cel: {path: spec.b, expression: "nonsense(value)"}}]}`, "spec.mutation.down[1].cel.expression"},
			"up":        {`mutation: {up: [{template: {path: status.a, template: "{{ .Value | env }}"}}]}`, "spec.mutation.up[0].template"},
			"related":   {`related: [{identifier: a, origin: Mailbox, resource: {group: "", version: v1, resource: secrets}, object: {template: "{{ .Nonsense }}"}}]`, "spec.related[0].object.template"},
		}
		for name, one := range malformed {
			publishAs(ctx, "nonsense-"+name, fmt.Sprintf("\n  resource: {group: nonsense.example.com, resource: widgets}\n  %s\n  projection: {group: %s.nonsense.example.com}", one.rules, name))
		}
		publishAs(ctx, "nonsense-version", "\n  resource: {group: nonsense.example.com, resource: widgets, version: v7}\n  projection: {group: version.nonsense.example.com}")
		for name, one := range malformed {
			Eventually(readyCondition).WithContext(ctx).WithArguments("nonsense-"+name).Should(And(HavePrefix("False Invalid: "), ContainSubstring(one.field)), name)
		}
		Eventually(readyCondition).WithContext(ctx).WithArguments("nonsense-version").Should(And(HavePrefix("False SchemaMissing: "), ContainSubstring("SchemaReady")))
		Expect(message(ctx, hosting, publishedResources, "nonsense-version", "SchemaReady")).To(HavePrefix("spec.resource"))
		apply(ctx, mailbox, widgets.object(ns, "after", "spec: {size: 1}"))
		eventuallyExists(ctx, florin, widgets.GroupVersionResource, ns, "after")

		By("keeping all objects when one PublishedResource is deleted, and reporting that")
		placed := identities(ctx, florin, widgets.GroupVersionResource, ns, "")
		remove(ctx, hosting, publishedResources, "", "nonsense")
		Eventually(reasons).WithContext(ctx).WithArguments(hosting, "default", "nonsense").Should(ContainElement("Unpublished"))
		remove(ctx, mailbox, widgets.GroupVersionResource, ns, "before")
		apply(ctx, mailbox, documents(widgets.object(ns, "after", "spec: {size: 2}"), quotasAbove.object(ns, "later", `spec: {hard: {secrets: "100"}}`)))
		eventuallyExists(ctx, florin, quotas, ns, "later")
		Expect(identities(ctx, florin, widgets.GroupVersionResource, ns, "")).To(Equal(placed))
	}, NodeTimeout(4*time.Minute))

	It("of another export that they have bound, by a claim with its identity", thorough, func(ctx SpecContext) {
		const ns, group = "vendor", "vendor.example.com"
		gizmos := custom(group, "v1", "gizmos", "Gizmo")
		florin := target("florin")
		define(ctx, florin, gizmos)
		inventory := newInventory(ctx, ns)
		mailbox := register(ctx, inventory, "florin", "florin")
		// Any workspace can have an export, so the spec uses the inventory workspace.
		apply(ctx, inventory.Config, `
apiVersion: apis.kcp.io/v1alpha1
kind: APIResourceSchema
metadata: {name: v1.gizmos.vendor.example.com}
spec:
  group: vendor.example.com
  scope: Namespaced
  names: {plural: gizmos, singular: gizmo, kind: Gizmo, listKind: GizmoList}
  versions: [{name: v1, served: true, storage: true, subresources: {status: {}}, schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}]
---
apiVersion: apis.kcp.io/v1alpha2
kind: APIExport
metadata: {name: vendor}
spec: {resources: [{group: vendor.example.com, name: gizmos, schema: v1.gizmos.vendor.example.com, storage: {crd: {}}}]}
`)
		identity := func() string {
			return value(ctx, inventory.Config, apiExports, "", "vendor", "status", "identityHash")
		}
		Eventually(identity).WithContext(ctx).ShouldNot(BeEmpty())
		apply(ctx, mailbox, fmt.Sprintf("apiVersion: apis.kcp.io/v1alpha2\nkind: APIBinding\nmetadata: {name: vendor}\nspec: {reference: {export: {path: %q, name: vendor}}}", inventory.Path))
		eventuallyApplied(ctx, mailbox, documents(namespace(ns), gizmos.object(ns, "theirs", "spec: {size: 1}"), selecting(ns, gizmos.GroupVersionResource)))
		publishAs(ctx, "gizmos", fmt.Sprintf("\n  resource: {group: vendor.example.com, resource: gizmos, version: v1}\n  api: {identityHash: %q}", identity()))
		eventuallyPublished(ctx, "gizmos")
		Eventually(value).WithContext(ctx).WithArguments(florin, gizmos.GroupVersionResource, ns, "theirs", "spec", "size").Should(Equal("1"))
		Expect(value(ctx, target("hosting"), publishedResources, "", "gizmos", "status", "schemaName")).To(BeEmpty())
		By("returning the status by the claim")
		patch(ctx, florin, gizmos.GroupVersionResource, ns, "theirs", `{"status": {"ready": true}}`, "status")
		Eventually(value).WithContext(ctx).WithArguments(mailbox, gizmos.GroupVersionResource, ns, "theirs", "status", "ready").Should(Equal("true"))
	}, NodeTimeout(4*time.Minute))
})
