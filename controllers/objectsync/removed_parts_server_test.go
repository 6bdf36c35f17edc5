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
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/test/fixtures"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

var (
	crdsV1     = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	servicesV1 = schema.GroupVersionResource{Version: "v1", Resource: "services"}
)

// removedParts are parts of sources, and what another manager writes below them on the target.
var removedParts = map[string]struct {
	resource      schema.GroupVersionResource
	kind          string
	source, after string
	// patch is another manager's patch of the given type.
	patchType types.PatchType
	patch     string
	// part is a text that the object contains only as long as the part exists.
	part string
}{
	"the conversion of a CustomResourceDefinition": {
		crdsV1, "CustomResourceDefinition",
		crdWith(`, conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {namespace: default, name: webhook}}}}`), crdWith(""),
		types.MergePatchType, `{"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": "BUNDLE"}}}}}`,
		"caBundle",
	},
	"a conversion whose caBundle was applied": {
		crdsV1, "CustomResourceDefinition",
		crdWith(`, conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {namespace: default, name: webhook}}}}`), crdWith(""),
		types.ApplyPatchType, `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "NAMEs.leftovers.example.org"},
			"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": "BUNDLE"}}}}}`,
		"caBundle",
	},
	"a strategy with a default": {
		deploymentsV1, "Deployment", deploymentWith(`{name: main, image: "example.org/main:1"}`), recreated, types.MergePatchType, `{"metadata": {"labels": {"a": "b"}}}`,
		"rollingUpdate",
	},
	"a strategy with a field of another manager": {
		deploymentsV1, "Deployment", strings.Replace(recreated, "type: Recreate", "rollingUpdate: {maxSurge: 2}", 1), recreated,
		types.MergePatchType, `{"spec": {"strategy": {"rollingUpdate": {"maxUnavailable": 1}}}}`,
		"rollingUpdate",
	},
	"a container": {
		deploymentsV1, "Deployment",
		deploymentWith(`{name: main, image: "example.org/main:1"}, {name: sidecar, image: "example.org/sidecar:1"}`),
		deploymentWith(`{name: main, image: "example.org/main:1"}`),
		types.StrategicMergePatchType, `{"spec": {"template": {"spec": {"containers": [{"name": "sidecar", "env": [{"name": "INJECTED", "value": "x"}]}]}}}}`,
		"sidecar",
	},
	"a port": {
		servicesV1, "Service",
		serviceWith(`{name: web, port: 80, protocol: TCP}, {name: metrics, port: 9090, protocol: TCP}`),
		serviceWith(`{name: web, port: 80, protocol: TCP}`),
		types.StrategicMergePatchType, `{"spec": {"ports": [{"port": 9090, "protocol": "TCP", "appProtocol": "http"}]}}`,
		"9090",
	},
}

// recreated is a Deployment with the strategy Recreate.
var recreated = strings.Replace(deploymentWith(`{name: main, image: "example.org/main:1"}`), "spec: {selector", "spec: {strategy: {type: Recreate}, selector", 1)

func crdWith(more string) string {
	return "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: NAMEs.leftovers.example.org, uid: u}, spec: {group: leftovers.example.org, scope: Cluster, " +
		"names: {plural: NAMEs, kind: NAME}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]" + more + "}}"
}

func deploymentWith(containers string) string {
	return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: NAME, namespace: default, uid: u}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [" + containers + "]}}}}"
}

func serviceWith(ports string) string {
	return "{apiVersion: v1, kind: Service, metadata: {name: NAME, namespace: default, uid: u}, spec: {selector: {a: b}, ports: [" + ports + "]}}"
}

// A part that the source no longer has is removed, although another manager has written fields below it.
func TestRemovedPartWithFieldsOfOtherManagers(t *testing.T) {
	t.Parallel()
	bundle := base64.StdEncoding.EncodeToString(suite.CertificateOf(suite.ServeTLS(t, http.NotFoundHandler())))
	for name, test := range removedParts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newTargetHarness(t, connect(t), test.resource, test.kind, plan.Resource{})
			suffix := unique("left")
			source := fixtures.Object(t, strings.ReplaceAll(test.source, "NAME", suffix))
			if err := h.applySource(source, ownership.PolicyDelete); err != nil {
				t.Fatal(err)
			}
			client := administrator(t).Resource(test.resource).Namespace(source.GetNamespace())
			if _, err := client.Patch(t.Context(), source.GetName(), test.patchType, []byte(strings.NewReplacer("BUNDLE", bundle, "NAME", suffix).Replace(test.patch)), metav1.PatchOptions{FieldManager: "injector"}); err != nil {
				t.Fatal(err)
			}
			after := fixtures.Object(t, strings.ReplaceAll(test.after, "NAME", suffix))
			// The target's controllers may write to the object at the same time; then the pass is repeated.
			err := errOutdated
			for errors.Is(err, errOutdated) {
				before := h.get(source)
				err = h.apply(t.Context(), h.observeTarget(before), h.desired(after, ownership.PolicyDelete), before.GetUID())
			}
			if err != nil {
				t.Error(err)
			}
			if text := contentOf(t, h.get(source)); strings.Contains(text, test.part) {
				t.Errorf("the part is still there: %s", text)
			}
		})
	}
}

// A field that the hub never applied stays with its manager. The refusal names both.
func TestFieldOfAnotherManagerInTheWay(t *testing.T) {
	t.Parallel()
	h := newTargetHarness(t, connect(t), deploymentsV1, "Deployment", plan.Resource{})
	name := unique("left")
	source := fixtures.Object(t, strings.ReplaceAll(deploymentWith(`{name: main, image: "example.org/main:1"}`), "NAME", name))
	if err := h.applySource(source, ownership.PolicyDelete); err != nil {
		t.Fatal(err)
	}
	client := administrator(t).Resource(deploymentsV1).Namespace(source.GetNamespace())
	if _, err := client.Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec": {"strategy": {"rollingUpdate": {"maxSurge": 2}}}}`), metav1.PatchOptions{FieldManager: "tuner"}); err != nil {
		t.Fatal(err)
	}
	before := h.get(source)
	err := h.apply(t.Context(), h.observeTarget(before), h.desired(fixtures.Object(t, strings.ReplaceAll(recreated, "NAME", name)), ownership.PolicyDelete), before.GetUID())
	if ReasonFor(err) != plan.ReasonInvalid || !strings.Contains(err.Error(), "spec.strategy.rollingUpdate, which tuner keeps there") {
		t.Errorf("got %v: %v", ReasonFor(err), err)
	}
	if after := h.get(source); after.GetResourceVersion() != before.GetResourceVersion() {
		t.Error("the hub changed the object")
	}
}

// One event names a field that the mailbox object no longer has, and that another manager keeps in part.
func TestEventAboutKeptFields(t *testing.T) {
	t.Parallel()
	h := newHub(t, []plan.Resource{resourceNamed(t, deploymentsV1, "")}, "namespaceScope: {namespaces: [NS], resources: [{group: apps, resource: deployments}]}")
	put := func(more string) {
		h.put(deploymentsV1, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: "+h.namespace+"}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {"+
			more+"containers: [{name: main, image: example.org/main}]}}}}")
	}
	put("securityContext: {runAsUser: 1}, ")
	h.expectOnTarget(deploymentsV1, "web")
	client := administrator(t).Resource(deploymentsV1).Namespace(h.namespace)
	if _, err := client.Patch(t.Context(), "web", types.MergePatchType, []byte(`{"spec": {"template": {"spec": {"securityContext": {"fsGroup": 2}}}}}`), metav1.PatchOptions{FieldManager: "injector"}); err != nil {
		t.Fatal(err)
	}
	h.waitUntilIdle()
	put("")
	h.expectOnTarget(deploymentsV1, "web", func(object *unstructured.Unstructured) bool {
		context, _, _ := unstructured.NestedMap(object.Object, "spec", "template", "spec", "securityContext")
		return len(context) == 1 && context["fsGroup"] == int64(2)
	})
	put("hostNetwork: true, ")
	h.waitUntilIdle()
	h.lock.Lock()
	defer h.lock.Unlock()
	var messages []string
	for _, event := range h.objects[eventsResource] {
		message, _, _ := unstructured.NestedString(event.Object, "message")
		messages = append(messages, message)
	}
	if want := "spec.template.spec.securityContext, which injector keeps"; len(messages) != 1 || !strings.HasSuffix(messages[0], want) {
		t.Errorf("got events %q", messages)
	}
}

// contentOf returns the spec as text.
func contentOf(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	spec := &unstructured.Unstructured{Object: map[string]any{"kind": "Spec", "spec": object.Object["spec"]}}
	text, err := spec.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
