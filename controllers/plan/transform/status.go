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

package transform

import (
	"math"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/controllers/plan/mutation"
)

// Generations are the generations of the two objects between which a status is returned.
type Generations struct {
	// Source and Target are the metadata.generation of the mailbox object and of the target object.
	Source, Target int64
	// Applied is true if the target object has the content of generation Source.
	Applied bool
}

// StatusOf returns a copy of a status. It is empty if there is no status.
func StatusOf(status any) map[string]any {
	fields, _ := status.(map[string]any)
	return (*Generations)(nil).translateStatus(fields)
}

// EqualStatus reports whether two statuses are equal. A null equals a missing field: kcp drops the nulls that a schema does not
// allow, so that such a status would always differ.
func EqualStatus(first, second map[string]any) bool {
	for name, value := range first {
		if !equalValue(value, second[name]) {
			return false
		}
	}
	for name, value := range second {
		if _, ok := first[name]; !ok && value != nil {
			return false
		}
	}
	return true
}

func equalValue(first, second any) bool {
	switch typed := first.(type) {
	case map[string]any:
		other, ok := second.(map[string]any)
		return ok && EqualStatus(typed, other)
	case []any:
		other, ok := second.([]any)
		return ok && slices.EqualFunc(typed, other, equalValue)
	default:
		return reflect.DeepEqual(first, second)
	}
}

// MutatedStatus returns the status (nil if there is none) of a target object after the mutation for upsync. The caller must not
// change it.
func MutatedStatus(target *unstructured.Unstructured, program *mutation.Program, inputs mutation.Inputs) (any, error) {
	if program == nil || target.Object["status"] == nil {
		return target.Object["status"], nil
	}
	changed := target.DeepCopy()
	if err := program.Run(changed.Object, inputs); err != nil {
		return nil, err
	}
	return changed.Object["status"], nil
}

// ReturnedStatus returns a copy of a target object's status for the mailbox object.
//
// The observedGeneration of the status, and of each item of a list called conditions at any depth, is a generation of the target
// object. ReturnedStatus translates it to a generation of the mailbox object: the current generation if the target has observed
// the object completely. Otherwise the result is earlier by as many generations as the target is behind.
func ReturnedStatus(status any, generations Generations) map[string]any {
	fields, _ := status.(map[string]any)
	return generations.translateStatus(fields)
}

// translateStatus returns a translated copy of a status. Nil generations translate nothing.
func (g *Generations) translateStatus(status map[string]any) map[string]any {
	returned := make(map[string]any, len(status))
	for field, value := range status {
		returned[field] = g.translateValue(field, value)
	}
	g.translateFields(returned)
	return returned
}

// translateValue returns a copy of the value of a field.
func (g *Generations) translateValue(field string, value any) any {
	switch typed := value.(type) {
	case map[string]any:
		kept := make(map[string]any, len(typed))
		for key, item := range typed {
			kept[key] = g.translateValue(key, item)
		}
		return kept
	case []any:
		kept := make([]any, len(typed))
		for index, item := range typed {
			kept[index] = g.translateValue("", item)
			if condition, ok := kept[index].(map[string]any); ok && field == "conditions" {
				g.translateFields(condition)
			}
		}
		return kept
	default:
		return value
	}
}

func (g *Generations) translateFields(fields map[string]any) {
	if g == nil {
		return
	}
	if observed, ok := integer(fields["observedGeneration"]); ok {
		fields["observedGeneration"] = g.translateGeneration(observed)
	}
}

// translateGeneration keeps the distance between the generations, so that an unchanged status is not written.
func (g *Generations) translateGeneration(observed int64) int64 {
	result := max(g.Source, 0) - max(0, max(g.Target, 0)-max(observed, 0))
	if !g.Applied {
		// The target can only have observed an earlier generation.
		result--
	}
	return max(result, 0)
}

// integer returns a whole number of either type that JSON decoding produces.
func integer(value any) (int64, bool) {
	switch number := value.(type) {
	case int64:
		return number, true
	case float64:
		// Within these bounds the conversion is exact.
		if number != math.Trunc(number) || math.Abs(number) >= 1<<63 {
			return 0, false
		}
		return int64(number), true
	default:
		return 0, false
	}
}
