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
	"context"
	"fmt"
	"reflect"
	"text/template"
)

const (
	// maxWork is the maximum size in bytes of all values that functions return during one rendering. A text composed in steps
	// needs far less than sixteen times the largest result.
	maxWork = 16 * maxSize
	// callWork is the work of a call or an iteration of a loop beside its value. It bounds a rendering to about a second.
	callWork = 256
)

// The meter's functions. The template walker inserts them after parsing, so no template can call them by name. The names appear
// in error messages.
const (
	valueStage     = "_value"
	printStage     = "_printed"
	iterationStage = "_round"
)

// meter ends a rendering that does too much work. Go's templates have no limits, and cannot be stopped while they print a value.
// The meter therefore checks the size of a value before it is printed.
type meter struct {
	ctx       context.Context
	remaining int
}

func (m *meter) reset(ctx context.Context) {
	m.ctx = ctx
	m.remaining = maxWork
}

func (m *meter) functions() template.FuncMap {
	return template.FuncMap{valueStage: m.checkValue, printStage: m.checkPrinted, iterationStage: m.iteration}
}

// meterError is the reason why the meter ends a rendering; where is the location in the template.
type meterError struct{ where, what string }

func (e *meterError) Error() string { return e.where + " " + e.what }

func (m *meter) spend(where string, work int) error {
	if err := m.ctx.Err(); err != nil {
		return &meterError{where, "takes too long"}
	}
	if m.remaining -= work; m.remaining < 0 {
		return &meterError{where, "takes too long: the template does too much"}
	}
	return nil
}

// checkValue returns the value, or an error if the value is too large.
func (m *meter) checkValue(where string, value reflect.Value) (reflect.Value, error) {
	size := sizeOf(value, maxSize)
	if size > maxSize {
		return value, &meterError{where, fmt.Sprintf("yields more than %d bytes", maxSize)}
	}
	return value, m.spend(where, callWork+size)
}

// checkPrinted returns the value to print, or an error if the value is missing.
func (m *meter) checkPrinted(where string, value reflect.Value) (reflect.Value, error) {
	if !value.IsValid() || (value.Kind() == reflect.Interface || value.Kind() == reflect.Pointer) && value.IsNil() {
		return value, &meterError{where, "is null: use default, or ask with if"}
	}
	return value, nil
}

// iteration counts an iteration of a loop at its beginning.
func (m *meter) iteration(where string) (string, error) {
	return "", m.spend(where, callWork)
}

// sizeOf returns the approximate size of a value in bytes. It stops counting above the limit.
func sizeOf(value reflect.Value, limit int) int {
	switch value.Kind() {
	case reflect.String:
		return valueSize + value.Len()
	case reflect.Interface, reflect.Pointer:
		return sizeOf(value.Elem(), limit)
	case reflect.Slice, reflect.Array:
		size := valueSize
		for index := 0; index < value.Len() && size <= limit; index++ {
			size += sizeOf(value.Index(index), limit-size)
		}
		return size
	case reflect.Map:
		size := valueSize
		for entry := value.MapRange(); size <= limit && entry.Next(); {
			size += sizeOf(entry.Key(), limit-size) + sizeOf(entry.Value(), limit-size)
		}
		return size
	default:
		return valueSize
	}
}
