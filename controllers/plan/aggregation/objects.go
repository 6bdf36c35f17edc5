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
	"encoding/json"
	"fmt"

	"github.com/synchub-dev/synchub/controllers/plan/expression"
	"github.com/synchub-dev/synchub/controllers/plan/fieldpath"
)

// objectsVariable is the name of the list of objects in an expression.
const objectsVariable = "objects"

// MaxResultBytes bounds the result of [Objects.Aggregate] as JSON. A status with it is far from the limit of etcd, 1.5 MB.
const MaxResultBytes = 16 << 10

// Objects combines objects into one value. It is immutable and safe for concurrent use.
type Objects struct{ expression *expression.Expression }

// CompileObjects compiles spec.aggregation of an EdgePlacement. The error names the field.
func CompileObjects(text string) (*Objects, error) {
	compiled, err := expression.CompileCEL(text, objectsVariable)
	if err != nil {
		return nil, fmt.Errorf("spec.aggregation.expression: %w", err)
	}
	return &Objects{compiled}, nil
}

// Aggregate returns the result for a list of objects, as the JSON of a map without nulls. It does not change the objects. The error names
// the field.
func (o *Objects) Aggregate(objects []any) ([]byte, error) {
	result, err := o.expression.Evaluate(map[string]any{objectsVariable: objects})
	if err != nil {
		return nil, fmt.Errorf("spec.aggregation.expression: %w", err)
	}
	fields, ok := result.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("spec.aggregation.expression: the result is not a map but %s", fieldpath.TypeName(result))
	}
	dropNulls(fields)
	data, err := json.Marshal(fields)
	switch {
	case err != nil:
		return nil, fmt.Errorf("spec.aggregation.expression: the result is not JSON: %w", err)
	case len(data) > MaxResultBytes:
		return nil, fmt.Errorf("spec.aggregation.expression: the result has %d bytes as JSON, and may have %d: let it count objects instead of listing them", len(data), MaxResultBytes)
	}
	return data, nil
}

// dropNulls removes the fields that are null: the API server would drop them from the status.
func dropNulls(value any) {
	switch typed := value.(type) {
	case map[string]any:
		for key, field := range typed {
			if field == nil {
				delete(typed, key)
			}
			dropNulls(field)
		}
	case []any:
		for _, item := range typed {
			dropNulls(item)
		}
	}
}
