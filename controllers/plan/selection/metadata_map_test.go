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

package selection_test

import (
	"testing"

	"github.com/synchub-dev/synchub/controllers/plan/selection"
)

// A look-up in labels of any JSON type does not panic.
func TestEntries(t *testing.T) {
	all := selection.MetadataMap{"text": "x", "empty": "", "null": nil, "number": int64(1), "map": map[string]any{}}
	for name, test := range map[string]struct {
		entries selection.MetadataMap
		key     string
		want    string
		exists  bool
	}{
		"text":             {all, "text", "x", true},
		"empty text":       {all, "empty", "", true},
		"null":             {all, "null", "", true},
		"a number":         {all, "number", "", true},
		"a map":            {all, "map", "", true},
		"missing":          {all, "other", "", false},
		"no labels at all": {nil, "text", "", false},
	} {
		value, exists := test.entries.Lookup(test.key)
		if value != test.want || exists != test.exists {
			t.Errorf("%s: got %q, %v", name, value, exists)
		}
		if test.entries.Get(test.key) != value || test.entries.Has(test.key) != exists {
			t.Errorf("%s: Get and Has disagree with Lookup", name)
		}
	}
}
