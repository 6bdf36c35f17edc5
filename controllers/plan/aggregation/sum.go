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

package aggregation

import (
	"fmt"
	"maps"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
)

// abnormal are the types of conditions that are True in an abnormal state, for the kinds of Kubernetes and for kstatus. One
// cluster with True makes the combined condition True.
var abnormal = map[string]bool{
	"Failed": true, "FailureTarget": true, "ReplicaFailure": true, "Suspended": true, "Stalled": true, "Reconciling": true,
}

// sum adds up the statuses of all destinations.
func sum(statuses []map[string]any, generation int64) map[string]any {
	total := map[string]any{}
	for _, status := range statuses {
		for field, value := range status {
			switch field {
			case "conditions", "observedGeneration":
			default:
				total[field] = add(total[field], value)
			}
		}
	}
	for field, value := range total {
		if _, isNumber := value.(int64); isNumber {
			continue
		}
		// Any other value must be equal on all clusters, or be a map or list.
		if value = common(field, value, statuses); value == nil {
			delete(total, field)
		} else {
			total[field] = value
		}
	}
	if observed, known := observedGeneration(statuses, generation); known {
		total["observedGeneration"] = observed
	}
	if conditions := conditionsOf(statuses); len(conditions) > 0 {
		total["conditions"] = conditions
	}
	return total
}

// inverted are the numbers of Deployments, StatefulSets and Jobs that are highest on the cluster with the least progress:
// replicas that are surplus, missing or failed. They include replicas, since a rollout waits until the old replicas are gone.
var inverted = map[string]bool{
	"replicas": true, "unavailableReplicas": true, "terminatingReplicas": true, "collisionCount": true, "active": true, "terminating": true, "failed": true,
}

// takeLowest replaces each sum by the number of the cluster with the least progress. A missing number counts as zero, because
// Kubernetes omits zeros.
func takeLowest(total map[string]any, statuses []map[string]any) {
	for field, value := range total {
		if _, isNumber := value.(int64); !isNumber || field == "observedGeneration" {
			continue
		}
		var numbers []int64
		for _, status := range statuses {
			number, _ := status[field].(int64)
			numbers = append(numbers, number)
		}
		if inverted[field] {
			total[field] = slices.Max(numbers)
		} else {
			total[field] = slices.Min(numbers)
		}
	}
}

// maxItems bounds a joined list, and the conditions read from one status. The time to join a list grows with the square of its
// length, and targets can write lists of any length.
const maxItems = 256

// add adds a value to the combined value before: numbers are summed, maps are merged, and lists are joined.
func add(before, value any) any {
	switch typed := value.(type) {
	case int64:
		number, _ := before.(int64)
		return number + typed
	case map[string]any:
		all, _ := before.(map[string]any)
		if all == nil {
			all = map[string]any{}
		}
		for key, item := range typed {
			all[key] = add(all[key], item)
		}
		return all
	case []any:
		all, _ := before.([]any)
		for _, item := range typed {
			if len(all) == maxItems {
				break
			}
			if !slices.ContainsFunc(all, func(known any) bool { return apiequality.Semantic.DeepEqual(known, item) }) {
				all = append(all, runtime.DeepCopyJSONValue(item))
			}
		}
		return all
	default:
		if before == nil {
			return value
		}
		return before
	}
}

// common returns a combined value that is no number, or nil for a text or boolean that differs between destinations. Times are
// the exception: an object starts when its first part starts, and completes when its last part completes.
func common(field string, value any, statuses []map[string]any) any {
	switch value.(type) {
	case map[string]any, []any:
		return value
	}
	for _, status := range statuses {
		other, ok := status[field]
		switch {
		case field == "startTime" && ok:
			value = min(fmt.Sprint(value), fmt.Sprint(other))
		case field == "completionTime" && ok:
			value = max(fmt.Sprint(value), fmt.Sprint(other))
		case field == "startTime":
		case !ok || !apiequality.Semantic.DeepEqual(other, value):
			return nil
		}
	}
	return value
}

// observedGeneration returns the generation of the source that all destinations have observed; known is false if the kind does not
// count it.
func observedGeneration(statuses []map[string]any, generation int64) (observed int64, known bool) {
	observed = generation
	for _, status := range statuses {
		one, ok := status["observedGeneration"].(int64)
		if !ok {
			// A destination without a status has not observed the latest one.
			one = max(generation-1, 0)
		}
		observed, known = min(observed, one), known || ok
	}
	return observed, known
}

// conditionsOf returns one condition for each type, sorted by type.
func conditionsOf(statuses []map[string]any) []any {
	types := map[string]bool{}
	for _, status := range statuses {
		for _, condition := range conditionsIn(status) {
			if name, _ := condition["type"].(string); name != "" {
				types[name] = true
			}
		}
	}
	var combined []any
	for _, name := range slices.Sorted(maps.Keys(types)) {
		combined = append(combined, combine(name, statuses))
	}
	return combined
}

func conditionsIn(status map[string]any) (conditions []map[string]any) {
	list, _ := status["conditions"].([]any)
	for _, item := range list[:min(len(list), maxItems)] {
		if condition, ok := item.(map[string]any); ok {
			conditions = append(conditions, condition)
		}
	}
	return conditions
}

// combine returns the condition of a type for all destinations. Reason, message and times are from the first destination that
// decides the status.
func combine(name string, statuses []map[string]any) map[string]any {
	var found []map[string]any
	for _, status := range statuses {
		for _, condition := range conditionsIn(status) {
			if condition["type"] == name {
				found = append(found, condition)
				break
			}
		}
	}
	deciding, status := found, "True"
	is := func(status string) []map[string]any {
		return slices.DeleteFunc(slices.Clone(found), func(condition map[string]any) bool { return condition["status"] != status })
	}
	switch bad := is("False"); {
	case abnormal[name]:
		if deciding = is("True"); len(deciding) == 0 {
			deciding, status = found, "False"
		}
	case len(bad) > 0:
		deciding, status = bad, "False"
	case len(is("True")) < len(statuses):
		// Some destination has not reported the condition.
		if unknown := is("Unknown"); len(unknown) > 0 {
			deciding = unknown
		}
		status = "Unknown"
	}
	result := runtime.DeepCopyJSON(deciding[0])
	result["status"] = status
	if message, ok := result["message"].(string); ok && message != "" {
		result["message"] = fmt.Sprintf("%d of %d clusters: %s", len(deciding), len(statuses), message)
	}
	return result
}
