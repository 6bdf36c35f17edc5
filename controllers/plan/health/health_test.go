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

package health_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/health"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	content, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = object.UnmarshalJSON(content)
	}
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// The health of Kubernetes' kinds, and of custom resources with the usual conditions, is computed by kstatus.
func TestByKstatus(t *testing.T) {
	const deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: shop, generation: 2}, spec: {replicas: 2}, status: "
	const custom = "{apiVersion: example.org/v1, kind: Till, metadata: {name: shop, generation: 2}, status: "
	for name, c := range map[string]struct {
		object  string
		want    health.Status
		message string
	}{
		"an object without a status":     {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", health.Current, ""},
		"a new Deployment":               {deployment + "{}}", health.InProgress, ""},
		"a Deployment of old replicas":   {deployment + "{observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2}}", health.InProgress, ""},
		"a Deployment with all replicas": {deployment + "{observedGeneration: 2, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2, conditions: [{type: Available, status: 'True'}, {type: Progressing, status: 'True', reason: NewReplicaSetAvailable}]}}", health.Current, ""},
		"a Deployment past its deadline": {deployment + "{observedGeneration: 2, conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded, message: too late}]}}", health.Failed, "Progress deadline exceeded"},
		"a failed Job":                   {"{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {completions: 1}, status: {conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded}]}}", health.Failed, "Job Failed"},
		"an object being deleted":        {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, deletionTimestamp: '2026-01-01T00:00:00Z'}}", health.Terminating, ""},
		"a custom object that is ready":  {custom + "{conditions: [{type: Ready, status: 'True'}]}}", health.Current, ""},
		"one that is not":                {custom + "{conditions: [{type: Ready, status: 'False'}]}}", health.InProgress, ""},
		"one that is stalled":            {custom + "{conditions: [{type: Stalled, status: 'True', message: no money}]}}", health.Failed, "no money"},
		"a status that cannot be read":   {custom + "{conditions: none}}", health.Unknown, "kstatus cannot read the object"},
	} {
		got := (*health.Rules)(nil).Of(parse(t, c.object))
		if got.Status != c.want || !strings.HasPrefix(got.Message, c.message) || (c.message == "") != (got.Message == "") {
			t.Errorf("%s: %s, %q", name, got.Status, got.Message)
		}
	}
}

// The expressions of a PublishedResource replace kstatus, except for a deletion and an outdated status.
func TestByRules(t *testing.T) {
	rules, err := health.Compile(&synchubv1alpha1.HealthRules{
		Current: "has(self.status) && self.status.phase == 'Open'", Failed: "has(self.status) && self.status.phase == 'Broken'", Message: "self.status.why",
	})
	if err != nil {
		t.Fatal(err)
	}
	const till = "{apiVersion: example.org/v1, kind: Till, metadata: {name: shop, generation: 2}"
	for name, c := range map[string]struct {
		object string
		want   health.Health
	}{
		"open":                     {till + ", status: {phase: Open}}", health.Health{Status: health.Current}},
		"still opening":            {till + ", status: {phase: Opening}}", health.Health{Status: health.InProgress}},
		"without a status":         {till + "}", health.Health{Status: health.InProgress}},
		"open, before the change":  {till + ", status: {phase: Open, observedGeneration: 1}}", health.Health{Status: health.InProgress}},
		"broken":                   {till + ", status: {phase: Broken, why: no money}}", health.Health{Status: health.Failed, Message: "no money"}},
		"broken, nobody knows why": {till + ", status: {phase: Broken}}", health.Health{Status: health.Failed, Message: "spec.health.message: cannot evaluate the expression: no such key: why"}},
		"a phase of another type":  {till + ", status: {}}", health.Health{Status: health.Unknown, Message: "spec.health.failed: cannot evaluate the expression: no such key: phase"}},
		"being deleted": {
			"{apiVersion: example.org/v1, kind: Till, metadata: {name: a, deletionTimestamp: '2026-01-01T00:00:00Z'}, status: {phase: Open}}", health.Health{Status: health.Terminating},
		},
	} {
		if got := rules.Of(parse(t, c.object)); got != c.want {
			t.Errorf("%s: %s, %q", name, got.Status, got.Message)
		}
	}
}

func TestCompileNamesTheField(t *testing.T) {
	for _, c := range []struct {
		spec synchubv1alpha1.HealthRules
		want string
	}{
		{synchubv1alpha1.HealthRules{Current: "self."}, "current: not a valid CEL expression"},
		{synchubv1alpha1.HealthRules{Current: "'yes'"}, "current: the expression must yield true or false"},
		{synchubv1alpha1.HealthRules{Current: "true", Failed: "1"}, "failed: the expression must yield true or false"},
		{synchubv1alpha1.HealthRules{Current: "true", Message: "other"}, "message: not a valid CEL expression"},
	} {
		if _, err := health.Compile(&c.spec); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v: %v", c.spec, err)
		}
	}
	if rules, err := health.Compile(nil); rules != nil || err != nil {
		t.Errorf("%v, %v", rules, err)
	}
}

// FuzzOf uses arbitrary statuses. The health is one of the five statuses, the object is not changed, and the message is bounded
// and valid UTF-8.
func FuzzOf(f *testing.F) {
	f.Add("apps/v1", "Deployment", []byte(`{"metadata": {"generation": 1}, "spec": {"replicas": "2"}, "status": {"observedGeneration": 1.5, "conditions": [{"type": 1}]}}`))
	f.Add("v1", "Pod", []byte(`{"status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}], "containerStatuses": 3}}`))
	f.Add("v1", "Service", []byte(`{"spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": []}}`))
	f.Add("example.org/v1", "Till", []byte(`{"status": {"conditions": [{"type": "Stalled", "status": "True", "message": "`+strings.Repeat("\xf0\x9f\x98\x80", 200)+`"}]}}`))
	rules, err := health.Compile(&synchubv1alpha1.HealthRules{Current: "self.status.phase == 'Open'", Failed: "size(self.status.conditions) > 3", Message: "self.status.message"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, apiVersion, kind string, content []byte) {
		object := &unstructured.Unstructured{}
		if yaml.Unmarshal(content, &object.Object) != nil || object.Object == nil {
			return
		}
		object.SetAPIVersion(apiVersion)
		object.SetKind(kind)
		before := object.DeepCopy()
		for _, judge := range []*health.Rules{nil, rules} {
			got := judge.Of(object)
			if got.Status > health.Terminating || len(got.Message) > 256 || !utf8.ValidString(got.Message) {
				t.Errorf("%s, %q", got.Status, got.Message)
			}
			if (got.Status == health.Current || got.Status == health.InProgress) && got.Message != "" {
				t.Errorf("%s needs no message: %q", got.Status, got.Message)
			}
		}
		if want, _ := before.MarshalJSON(); true {
			if after, _ := object.MarshalJSON(); string(after) != string(want) {
				t.Errorf("the object changed: %s", after)
			}
		}
	})
}

// Users read in the EdgePlacement why a workload does not get on. Counts are left out, since each would cause a write.
func TestProgressMessage(t *testing.T) {
	condition := func(kind, status, message string) any {
		return map[string]any{"type": kind, "status": status, "reason": "R", "message": message}
	}
	for name, test := range map[string]struct {
		conditions []any
		want       string
	}{
		"no conditions":       {nil, ""},
		"a quota is exceeded": {[]any{condition("Available", "False", "no minimum availability."), condition("ReplicaFailure", "True", "exceeded quota")}, "exceeded quota"},
		"not available":       {[]any{condition("Progressing", "True", "1 of 2"), condition("Available", "False", "no minimum availability.")}, "no minimum availability."},
		"available":           {[]any{condition("Available", "True", "fine")}, ""},
		"no node for the Pod": {[]any{condition("PodScheduled", "False", "0/3 nodes are available.")}, "0/3 nodes are available."},
		"the failure is over": {[]any{condition("ReplicaFailure", "False", "exceeded quota")}, ""},
	} {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web", "generation": int64(1)},
			"spec": map[string]any{"replicas": int64(2)}, "status": map[string]any{"observedGeneration": int64(1), "replicas": int64(2), "conditions": test.conditions},
		}}
		var rules *health.Rules
		if got := rules.Of(object); got.Status != health.InProgress || got.Message != test.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
