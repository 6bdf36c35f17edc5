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
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/synchub-dev/synchub/controllers/plan/fieldpath"
)

// DifferingPaths returns the paths where a target object has other values than desired. It omits the hub's marks, and quantities
// that differ only in their form.
func DifferingPaths(desired, actual map[string]any) []string {
	return slices.DeleteFunc(MissingPaths(desired, actual), func(text string) bool {
		path, err := fieldpath.Parse(strings.TrimPrefix(text, "."))
		return strings.Contains(text, "synchub.dev") || err == nil && isSameQuantity(fmt.Sprint(path.Values(desired)...), fmt.Sprint(path.Values(actual)...))
	})
}

func isSameQuantity(one, other string) bool {
	a, errA := resource.ParseQuantity(one)
	b, errB := resource.ParseQuantity(other)
	return errA == nil && errB == nil && a.Cmp(b) == 0
}
