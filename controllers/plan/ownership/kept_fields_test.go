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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

func TestKeptFields(t *testing.T) {
	for name, test := range map[string]struct {
		before, now, others string
		want                []string
	}{
		"nothing given up":      {`{"f:spec":{"f:a":{}}}`, `{"f:spec":{"f:a":{},"f:b":{}}}`, `{"f:spec":{"f:c":{}}}`, nil},
		"nothing kept":          {`{"f:spec":{"f:a":{},"f:b":{}}}`, `{"f:spec":{"f:a":{}}}`, `{"f:spec":{"f:c":{}}}`, nil},
		"a part":                {`{"f:spec":{"f:a":{},"f:b":{"f:c":{},"f:d":{}}}}`, `{"f:spec":{"f:a":{}}}`, `{"f:spec":{"f:b":{"f:e":{}}}}`, []string{".spec.b [other]"}},
		"the same field":        {`{"f:spec":{"f:a":{},"f:replicas":{}}}`, `{"f:spec":{"f:a":{}}}`, `{"f:spec":{"f:replicas":{}}}`, []string{".spec.replicas [other]"}},
		"beside the part":       {`{"f:spec":{"f:b":{"f:c":{},"f:d":{}}}}`, `{"f:spec":{"f:b":{"f:c":{}}}}`, `{"f:spec":{"f:b":{"f:e":{}}}}`, nil},
		"an item of a list":     {`{"f:spec":{"f:l":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}},"k:{\"name\":\"b\"}":{".":{},"f:name":{},"f:x":{}}}}}`, `{"f:spec":{"f:l":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}}}}`, `{"f:spec":{"f:l":{"k:{\"name\":\"b\"}":{"f:y":{}}}}}`, nil},
		"in an item of a list":  {`{"f:spec":{"f:l":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:x":{"f:y":{}}}}}}`, `{"f:spec":{"f:l":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}}}}`, `{"f:spec":{"f:l":{"k:{\"name\":\"a\"}":{"f:x":{"f:z":{}}}}}}`, []string{`.spec.l[name="a"].x [other]`}},
		"an entry of no fields": {`{}`, `{}`, `{}`, nil},
	} {
		live := &unstructured.Unstructured{Object: map[string]any{}}
		live.SetManagedFields([]metav1.ManagedFieldsEntry{
			managedFields("hub", metav1.ManagedFieldsOperationApply, "", test.now),
			managedFields("hub", metav1.ManagedFieldsOperationUpdate, "", test.before),
			managedFields("other", metav1.ManagedFieldsOperationUpdate, "", test.others),
			managedFields("other", metav1.ManagedFieldsOperationApply, "", test.others),
			managedFields("kubelet", metav1.ManagedFieldsOperationUpdate, "status", test.before),
		})
		kept, err := ownership.KeptFields([]byte(test.before), live, "hub")
		var got []string
		for _, field := range kept {
			got = append(got, fmt.Sprint(field.Path, " ", field.Managers))
		}
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}
