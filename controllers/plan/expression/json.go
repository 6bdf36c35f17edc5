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

package expression

import (
	"encoding/base64"
	"fmt"
	"math"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

const (
	// maxSize is the maximum size of a result in bytes: the limit of API servers for the data of a ConfigMap or Secret.
	maxSize = 1 << 20
	// valueSize is the size of each value beside its text, in bytes: about the size of a short value in JSON.
	valueSize = 8
	// maxExact is the largest number below which a float64 represents all whole numbers.
	maxExact = 1 << 53
)

// toJSON returns the result of an expression as a JSON value.
func toJSON(result ref.Val) (any, error) {
	left := sizeBudget(maxSize)
	return left.toJSON(result)
}

// sizeBudget is the number of bytes that a result may still have. A list can contain one large value many times, which costs
// memory only when the list is written out.
type sizeBudget int

func (b *sizeBudget) spend(size int) error {
	if *b -= sizeBudget(size); *b < 0 {
		return fmt.Errorf("the result is larger than %d bytes", maxSize)
	}
	return nil
}

func (b *sizeBudget) toJSON(result ref.Val) (any, error) {
	if err := b.spend(valueSize); err != nil {
		return nil, err
	}
	switch typed := result.(type) {
	case types.Null:
		return nil, nil
	case types.Bool:
		return bool(typed), nil
	case types.Int:
		return int64(typed), nil
	case types.Uint:
		if typed > math.MaxInt64 {
			return nil, fmt.Errorf("the number %d is too large for an API object", uint64(typed))
		}
		return int64(typed), nil
	case types.Double:
		return normalizeNumber(float64(typed))
	case types.String:
		return string(typed), b.spend(len(typed))
	case types.Bytes:
		return base64.StdEncoding.EncodeToString(typed), b.spend(base64.StdEncoding.EncodedLen(len(typed)))
	case *types.Optional:
		if !typed.HasValue() {
			return nil, nil
		}
		return b.toJSON(typed.GetValue())
	case traits.Mapper:
		return b.mapToJSON(typed)
	case traits.Lister:
		return b.listToJSON(typed)
	default:
		return textToJSON(result)
	}
}

// normalizeNumber returns a number with the type that it has when decoded from JSON.
func normalizeNumber(value float64) (any, error) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return nil, fmt.Errorf("%v is not a number in JSON", value)
	}
	if value == math.Trunc(value) && math.Abs(value) < maxExact {
		return int64(value), nil
	}
	return value, nil
}

func (b *sizeBudget) mapToJSON(fields traits.Mapper) (any, error) {
	result := map[string]any{}
	for it := fields.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.(types.String)
		if !ok {
			return nil, fmt.Errorf("a map has a key of type %s: only text can be the name of a field", key.Type().TypeName())
		}
		if err := b.spend(len(name)); err != nil {
			return nil, err
		}
		value, err := b.toJSON(fields.Get(key))
		if err != nil {
			return nil, err
		}
		result[string(name)] = value
	}
	return result, nil
}

func (b *sizeBudget) listToJSON(items traits.Lister) (any, error) {
	result := []any{}
	for it := items.Iterator(); it.HasNext() == types.True; {
		value, err := b.toJSON(it.Next())
		if err != nil {
			return nil, err
		}
		result = append(result, value)
	}
	return result, nil
}

// textToJSON returns a value without a JSON type as text: timestamps, durations, and types of Kubernetes such as quantities.
func textToJSON(result ref.Val) (any, error) {
	if text, ok := result.ConvertToType(types.StringType).(types.String); ok {
		return string(text), nil
	}
	if text, ok := result.Value().(fmt.Stringer); ok {
		return text.String(), nil
	}
	return nil, fmt.Errorf("a result of type %s cannot be part of an object", result.Type().TypeName())
}
