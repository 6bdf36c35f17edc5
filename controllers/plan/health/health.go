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

package health

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/expression"
	"github.com/synchub-dev/synchub/provider/redact"
)

// Status is the health status of an object, with the names of kstatus.
type Status uint8

const (
	// Unknown: the health cannot be computed from the object's status.
	Unknown Status = iota
	// Current: the cluster has fully realized the object's spec.
	Current
	// InProgress: the cluster has not fully realized the object's spec yet.
	InProgress
	// Failed: the cluster has given up on the object.
	Failed
	// Terminating: the object is being deleted.
	Terminating
)

// String returns kstatus' name of the status.
func (s Status) String() string {
	switch s {
	case Current:
		return kstatus.CurrentStatus.String()
	case InProgress:
		return kstatus.InProgressStatus.String()
	case Failed:
		return kstatus.FailedStatus.String()
	case Terminating:
		return kstatus.TerminatingStatus.String()
	default:
		return kstatus.UnknownStatus.String()
	}
}

// Health is the status of one version of an object. It is comparable.
type Health struct {
	Status Status
	// Message is the reason for the status Failed or Unknown, and what keeps an object InProgress if its conditions have that; empty
	// for other statuses. It comes from the target, and is a [redact.Text].
	Message string
}

// Rules are the expressions of a PublishedResource. They are immutable and safe for concurrent use. The nil Rules use kstatus.
type Rules struct {
	current         *expression.Expression
	failed, message *expression.Expression
}

// self is the name of the object of the target in an expression.
const self = "self"

// Compile compiles rules. It returns nil for nil. The error names the field.
func Compile(spec *synchubv1alpha1.HealthRules) (*Rules, error) {
	if spec == nil {
		return nil, nil
	}
	rules := &Rules{}
	for _, part := range []struct {
		field, text string
		isBool      bool
		compiled    **expression.Expression
	}{
		{"current", spec.Current, true, &rules.current},
		{"failed", spec.Failed, true, &rules.failed},
		{"message", spec.Message, false, &rules.message},
	} {
		if part.text == "" {
			continue
		}
		compiled, err := expression.CompileCEL(part.text, self)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", part.field, err)
		}
		if part.isBool && !compiled.ReturnsBool() {
			return nil, fmt.Errorf("%s: the expression must yield true or false", part.field)
		}
		*part.compiled = compiled
	}
	return rules, nil
}

// Of returns the health of a complete target object. It does not change the object.
func (r *Rules) Of(object *unstructured.Unstructured) Health {
	if r == nil {
		return byKstatus(object)
	}
	return r.byRules(object)
}

func byKstatus(object *unstructured.Unstructured) Health {
	result, err := kstatus.Compute(object)
	if err != nil {
		return Health{Unknown, redact.Text("kstatus cannot read the object: " + err.Error())}
	}
	switch result.Status {
	case kstatus.CurrentStatus:
		return Health{Status: Current}
	case kstatus.InProgressStatus:
		return Health{InProgress, progressMessage(object)}
	case kstatus.TerminatingStatus:
		return Health{Status: Terminating}
	case kstatus.FailedStatus:
		return Health{Failed, redact.Text(result.Message)}
	default:
		return Health{Unknown, redact.Text(result.Message)}
	}
}

// obstacles are the conditions of workloads, each with a status, whose messages explain why the object is not Current yet, the most telling
// first. Their texts stay the same while the object waits: messages with counts would cause a status write for each Pod.
var obstacles = []struct{ condition, status string }{{"ReplicaFailure", "True"}, {"PodScheduled", "False"}, {"Available", "False"}}

// progressMessage returns what keeps an object InProgress; empty if its conditions do not have that.
func progressMessage(object *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, obstacle := range obstacles {
		for _, one := range conditions {
			fields, _ := one.(map[string]any)
			message, _ := fields["message"].(string)
			if fields["type"] == obstacle.condition && fields["status"] == obstacle.status && message != "" {
				return redact.Text(message)
			}
		}
	}
	return ""
}

// byRules evaluates the expressions. A deletion, and a status of an older generation, need no expression, since they mean the
// same for every kind.
func (r *Rules) byRules(object *unstructured.Unstructured) Health {
	if object.GetDeletionTimestamp() != nil {
		return Health{Status: Terminating}
	}
	if observed, found, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration"); found && observed != object.GetGeneration() {
		return Health{Status: InProgress}
	}
	variables := map[string]any{self: object.Object}
	if failed, err := isTrue(r.failed, variables); err != nil {
		return Health{Unknown, redact.Text("spec.health.failed: " + err.Error())}
	} else if failed {
		return Health{Failed, r.messageOf(variables)}
	}
	current, err := isTrue(r.current, variables)
	switch {
	case err != nil:
		return Health{Unknown, redact.Text("spec.health.current: " + err.Error())}
	case current:
		return Health{Status: Current}
	default:
		return Health{Status: InProgress}
	}
}

// messageOf returns the message of a failed object.
func (r *Rules) messageOf(variables map[string]any) string {
	if r.message == nil {
		return "spec.health.failed of the PublishedResource is true for the object"
	}
	result, err := r.message.Evaluate(variables)
	if err != nil {
		return redact.Text("spec.health.message: " + err.Error())
	}
	text, ok := result.(string)
	if !ok {
		return "spec.health.message: the expression yields no string"
	}
	return redact.Text(text)
}

// isTrue evaluates an expression; nil is false. The error does not contain the result, which may be a part of a Secret.
func isTrue(rule *expression.Expression, variables map[string]any) (bool, error) {
	if rule == nil {
		return false, nil
	}
	result, err := rule.Evaluate(variables)
	if err != nil {
		return false, err
	}
	value, ok := result.(bool)
	if !ok {
		return false, errors.New("the expression yields neither true nor false")
	}
	return value, nil
}
