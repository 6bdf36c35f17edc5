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
	"reflect"
	"strings"
	"testing"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// The size of a result is its size in an object: bytes are written in base64, which is longer.
func TestSizeOfAResult(t *testing.T) {
	for name, test := range map[string]struct {
		result  ref.Val
		isLarge bool
	}{
		"a text":                 {types.String(strings.Repeat("x", maxSize-valueSize)), false},
		"a longer one":           {types.String(strings.Repeat("x", maxSize-valueSize+1)), true},
		"bytes":                  {types.Bytes(make([]byte, (maxSize-valueSize)/4*3)), false},
		"more of them":           {types.Bytes(make([]byte, maxSize/4*3+3)), true},
		"bytes in two places":    {types.NewDynamicList(types.DefaultTypeAdapter, [][]byte{make([]byte, maxSize/2), make([]byte, maxSize/2)}), true},
		"the name of a field":    {types.NewStringInterfaceMap(types.DefaultTypeAdapter, map[string]any{strings.Repeat("x", maxSize): 1}), true},
		"a short one":            {types.NewStringInterfaceMap(types.DefaultTypeAdapter, map[string]any{"x": 1}), false},
		"many values of no size": {types.NewDynamicList(types.DefaultTypeAdapter, make([]bool, maxSize/valueSize)), true},
	} {
		if _, err := toJSON(test.result); (err != nil) != test.isLarge {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A null is not printed, for every Go kind of null.
func TestNullIsNotPrinted(t *testing.T) {
	var pointer *int
	var nothing any
	for name, value := range map[string]reflect.Value{"no value": {}, "a pointer": reflect.ValueOf(pointer), "an interface": reflect.ValueOf(&nothing).Elem()} {
		if _, err := (&meter{}).checkPrinted("text:1:2", value); err == nil || !strings.Contains(err.Error(), "text:1:2 is null") {
			t.Errorf("%s: %v", name, err)
		}
	}
	number := 1
	for name, value := range map[string]reflect.Value{"a number": reflect.ValueOf(0), "a text": reflect.ValueOf(""), "a pointer to one": reflect.ValueOf(&number), "an empty list": reflect.ValueOf([]any(nil))} {
		if _, err := (&meter{}).checkPrinted("text:1:2", value); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
