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

package ownership_test

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

func TestMoveAPIVersion(t *testing.T) {
	entry := func(manager, version, subresource, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, APIVersion: "shop/" + version, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: subresource,
			FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	const a, b, both, broken = `{"f:spec":{"f:a":{}}}`, `{"f:spec":{"f:b":{}}}`, `{"f:spec":{"f:a":{},"f:b":{}}}`, `{"f`
	for name, test := range map[string]struct {
		entries, want []metav1.ManagedFieldsEntry
	}{
		"nothing is there":         {},
		"no entry of the version":  {entries: []metav1.ManagedFieldsEntry{entry("x", "v1", "", a), entry("y", "v2", "", b)}},
		"one is":                   {[]metav1.ManagedFieldsEntry{entry("x", "v1beta1", "", a), entry("y", "v1", "", b)}, []metav1.ManagedFieldsEntry{entry("x", "v1", "", a), entry("y", "v1", "", b)}},
		"a manager holds in both":  {[]metav1.ManagedFieldsEntry{entry("x", "v1", "", a), entry("x", "v1beta1", "", b)}, []metav1.ManagedFieldsEntry{entry("x", "v1", "", both)}},
		"the status is for itself": {[]metav1.ManagedFieldsEntry{entry("x", "v1", "", a), entry("x", "v1beta1", "status", b)}, []metav1.ManagedFieldsEntry{entry("x", "v1", "", a), entry("x", "v1", "status", b)}},
		"what cannot be read":      {entries: []metav1.ManagedFieldsEntry{entry("x", "v1", "", a), entry("x", "v1beta1", "", broken)}},
	} {
		got, changed := ownership.MoveAPIVersion(test.entries, "shop/v1beta1", "shop/v1")
		if want := test.want; changed != (want != nil) || changed && fmt.Sprint(got) != fmt.Sprint(want) || !changed && !slices.Equal(texts(got), texts(test.entries)) {
			t.Errorf("%s: want %v, got %v, %v", name, want, got, changed)
		}
	}
}

func texts(entries []metav1.ManagedFieldsEntry) (all []string) {
	for _, entry := range entries {
		all = append(all, fmt.Sprint(entry))
	}
	return all
}
