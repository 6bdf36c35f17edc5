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
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/internal/writes"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/test/fixtures"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// rules are a CRD with immutable fields, and an admission policy.
const rules = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gauges.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: gauges, singular: gauge, kind: Gauge, listKind: GaugeList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              class: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: Value is immutable}]}
              unit: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: the unit cannot be changed}]}
              limit: {type: integer, maximum: 9}
              note: {type: string}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-poison}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]
  validations:
  - {expression: "!has(object.data) || !('poison' in object.data)", message: no poison here}
  - {expression: "!has(object.data) || !('fixed' in object.data)", message: this field is immutable}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-poison}
spec: {policyName: no-poison, validationActions: [Deny]}
---
apiVersion: example.org/v1
kind: Gauge
metadata: {name: served}
`

// resourceOf returns the resource of a kind that these tests use.
func resourceOf(object *unstructured.Unstructured) schema.GroupVersionResource {
	kind := object.GroupVersionKind()
	return kind.GroupVersion().WithResource(strings.ToLower(kind.Kind) + "s")
}

// withRules applies the rules to the target, and waits until they have an effect.
func withRules(t *testing.T) {
	t.Helper()
	put(t, rules)
	// A policy takes effect a moment after its creation.
	poison := "{apiVersion: v1, kind: ConfigMap, metadata: {name: probe}, data: {poison: x}}"
	suite.WaitUntil(t, "the policy has an effect", func() bool {
		return isAdmissionDenied(framework.Apply(t.Context(), suite.Target(t).Config, poison))
	})
}

// The test uses the responses of a real API server to refused changes.
func TestReasonsOfRefusedChanges(t *testing.T) {
	withRules(t)
	connection := connect(t)
	pod := func(more string) string {
		return "{metadata: {labels: {app: a}}, spec: {restartPolicy: RESTART, containers: [{name: c, image: a" + more + "}]}}"
	}
	always := func(more string) string { return strings.ReplaceAll(pod(more), "RESTART", "Always") }
	never := func(more string) string { return strings.ReplaceAll(pod(more), "RESTART", "Never") }
	for name, test := range map[string]struct {
		// The object is created as before, then applied as after. Both contain the fields after its metadata.
		kind, before, after string
		want                string
		// fields are the immutable fields of the refusal.
		fields []string
	}{
		"the template of a Job": {
			"batch/v1, kind: Job", "spec: {template: " + never("") + "}", "spec: {template: " + never("b") + "}", plan.ReasonImmutable, []string{"spec.template"},
		},
		"the selector of a Deployment": {
			"apps/v1, kind: Deployment", "spec: {selector: {matchLabels: {app: a}}, template: " + always("") + "}",
			"spec: {selector: {matchLabels: {app: a, tier: b}}, template: " + strings.Replace(always(""), "app: a", "app: a, tier: b", 1) + "}",
			plan.ReasonImmutable, []string{"spec.selector"},
		},
		"the address of a Service": {
			"v1, kind: Service", "spec: {ports: [{port: 80}]}", "spec: {clusterIP: None, ports: [{port: 80}]}", plan.ReasonImmutable, []string{"spec.clusterIPs[0]"},
		},
		"the volume claims of a StatefulSet": {
			"apps/v1, kind: StatefulSet", "spec: {serviceName: a, selector: {matchLabels: {app: a}}, template: " + always("") + "}",
			"spec: {serviceName: a, selector: {matchLabels: {app: a}}, template: " + always("") +
				", volumeClaimTemplates: [{metadata: {name: d}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}",
			plan.ReasonImmutable, []string{"spec"},
		},
		"an immutable ConfigMap": {
			"v1, kind: ConfigMap", "data: {a: b}, immutable: true", "data: {a: c}, immutable: true", plan.ReasonImmutable, []string{"data"},
		},
		"the type of a Secret": {
			"v1, kind: Secret", "type: Opaque", "type: example.org/other", plan.ReasonImmutable, []string{"type"},
		},
		"the role of a RoleBinding": {
			"rbac.authorization.k8s.io/v1, kind: RoleBinding", "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}",
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: b}", plan.ReasonImmutable, []string{"roleRef"},
		},
		"the mode of a PersistentVolumeClaim": {
			"v1, kind: PersistentVolumeClaim", "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}",
			"spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}", plan.ReasonImmutable, []string{"spec"},
		},
		"a field with a rule": {
			"example.org/v1, kind: Gauge", "spec: {class: a}", "spec: {class: b}", plan.ReasonImmutable, []string{"spec.class"},
		},
		"a field with a rule in other words": {
			"example.org/v1, kind: Gauge", "spec: {unit: a}", "spec: {unit: b, limit: 3}", plan.ReasonImmutable, []string{"spec.unit"},
		},
		"a value that is too large": {
			"example.org/v1, kind: Gauge", "spec: {limit: 3}", "spec: {limit: 10}", plan.ReasonInvalid, nil,
		},
		"labels that do not fit, however they are called": {
			"apps/v1, kind: Deployment", "spec: {selector: {matchLabels: {app: a}}, template: " + always("") + "}",
			"spec: {selector: {matchLabels: {app: a}}, template: " + strings.Replace(always(""), "app: a", "app: immutable", 1) + "}", plan.ReasonInvalid, nil,
		},
		"a value of the wrong type": {
			"example.org/v1, kind: Gauge", "spec: {note: a}", "spec: {note: {a: b}}", plan.ReasonInvalid, nil,
		},
		"what a policy denies": {
			"v1, kind: ConfigMap", "data: {a: b}", "data: {poison: x}", plan.ReasonAdmissionDenied, nil,
		},
		"what a policy denies as if it were a rule": {
			"v1, kind: ConfigMap", "data: {a: b}", "data: {fixed: x}", plan.ReasonAdmissionDenied, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			name := unique(strings.ToLower(strings.NewReplacer(" ", "-", ",", "").Replace(name)))
			text := func(content string) string {
				return fmt.Sprintf("{apiVersion: %s, metadata: {name: %s, namespace: default}, %s}", test.kind, name, content)
			}
			put(t, text(test.before))
			after := fixtures.Object(t, text(test.after))
			harness := newTargetHarness(t, connection, resourceOf(after), after.GetKind(), plan.Resource{})
			found := harness.get(after)
			desired := desiredOf(t, "{}", someMark)
			desired.Object = after
			err := harness.apply(t.Context(), harness.observeTarget(found), desired, found.GetUID())
			var immutable *immutableError
			var fields []string
			if errors.As(err, &immutable) {
				fields = immutable.fields
			}
			if err == nil || ReasonFor(err) != test.want || !slices.Equal(fields, test.fields) {
				t.Errorf("want %s of %v, got %s of %v: %v", test.want, test.fields, ReasonFor(err), fields, err)
			}

			// If the object was replaced in the meantime, no refusal means that a field is immutable. The next pass observes the
			// new object.
			err = harness.apply(t.Context(), harness.observeTarget(found), desired, "00000000-0000-0000-0000-000000000000")
			if err == nil || errors.As(err, &immutable) || ReasonFor(err) == plan.ReasonImmutable {
				t.Errorf("after a replacement: %s: %v", ReasonFor(err), err)
			}
		})
	}
}

// The test uses the responses of a real API server to refused new objects.
func TestReasonsOfRefusedObjects(t *testing.T) {
	t.Parallel()
	withRules(t)
	put(t, "{apiVersion: v1, kind: Namespace, metadata: {name: ending}}")
	if err := framework.Delete(t.Context(), suite.Target(t).Config, namespaces, "", "ending"); err != nil {
		t.Fatal(err)
	}
	connection := connect(t)
	for name, test := range map[string]struct {
		manifest, want   string
		missingNamespace bool
	}{
		"in a namespace that is missing": {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: missing}}", plan.ReasonNotServed, true},
		"a kind that is not served":      {"{apiVersion: example.org/v1, kind: Valve, metadata: {name: missing, namespace: missing}}", plan.ReasonNotServed, false},
		"a version that is not served":   {"{apiVersion: example.org/v2, kind: Gauge, metadata: {name: missing, namespace: missing}}", plan.ReasonNotServed, false},
		"in a namespace that is ending":  {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ending}}", plan.ReasonNamespaceTerminating, false},
		"with a name that is not legal":  {"{apiVersion: v1, kind: ConfigMap, metadata: {name: Not_Legal, namespace: default}}", plan.ReasonInvalid, false},
		"with a value of another type":   {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}, data: {a: 1}}", plan.ReasonInvalid, false},
		"that a policy denies":           {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}, data: {poison: x}}", plan.ReasonAdmissionDenied, false},
		"that is too large to send": {
			"{apiVersion: example.org/v1, kind: Gauge, metadata: {name: a, namespace: default}, spec: {note: " + strings.Repeat("x", 4<<20) + "}}", plan.ReasonTooLarge, false,
		},
		"that is too large to store": {
			"{apiVersion: example.org/v1, kind: Gauge, metadata: {name: a, namespace: default}, spec: {note: " + strings.Repeat("x", 1700<<10) + "}}", plan.ReasonTooLarge, false,
		},
		"that is too large to keep": {
			"{apiVersion: example.org/v1, kind: Gauge, metadata: {name: a, namespace: default}, spec: {note: " + strings.Repeat("x", 2<<20) + "}}", plan.ReasonTooLarge, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := fixtures.Object(t, test.manifest)
			_, err := connection.Objects.Create(t.Context(), resourceOf(object), object)
			if err == nil {
				t.Fatal("the object is accepted")
			}
			if got := ReasonFor(err); got != test.want {
				t.Errorf("want %s, got %s: %v", test.want, got, status.Truncate(err.Error()))
			}
			if got := writes.IsMissingNamespace(err, object.GetNamespace()); got != test.missingNamespace {
				t.Errorf("the namespace is missing: want %v, got %v: %v", test.missingNamespace, got, status.Truncate(err.Error()))
			}
		})
	}
}

func TestReasonOverQuota(t *testing.T) {
	put(t, "{apiVersion: v1, kind: Namespace, metadata: {name: full}}")
	put(t, "{apiVersion: v1, kind: ResourceQuota, metadata: {name: few, namespace: full}, spec: {hard: {configmaps: 0}}}")
	connection := connect(t)
	// No controller runs that would count the used quota.
	status := `{"status": {"hard": {"configmaps": "0"}, "used": {"configmaps": "0"}}}`
	quotas := administrator(t).Resource(schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}).Namespace("full")
	if _, err := quotas.Patch(t.Context(), "few", types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	var last error
	suite.WaitUntil(t, "the quota counts", func() bool {
		object := fixtures.Object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+unique("a")+", namespace: full}}")
		_, last = connection.Objects.Create(t.Context(), resourceOf(object), object)
		return apierrors.IsForbidden(last) && !strings.Contains(last.Error(), "status unknown")
	})
	if got := ReasonFor(last); got != plan.ReasonQuotaExceeded {
		t.Errorf("want %s, got %s: %v", plan.ReasonQuotaExceeded, got, last)
	}
}
