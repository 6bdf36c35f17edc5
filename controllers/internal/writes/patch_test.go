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

package writes

import (
	"encoding/json"
	"maps"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestMergeIntoMailboxObject(t *testing.T) {
	desired := &unstructured.Unstructured{Object: decode(t, `{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": {"name": "till", "namespace": "shop", "labels": {"synchub.dev/owner": "us", "app": "new"}, "annotations": {"synchub.dev/mark": "new"}},
		"spec": {"replicas": 2}
	}`)}
	want := func() map[string]any {
		return decode(t, `{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": {
				"name": "till", "namespace": "shop", "uid": "u", "resourceVersion": "7", "generation": 3, "creationTimestamp": "2026-01-02T03:04:05Z",
				"finalizers": ["mailbox.example.com/wait"], "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "a"}],
				"labels": {"synchub.dev/owner": "us", "app": "new", "claimed.internal.apis.kcp.io/abc": "def"},
				"annotations": {"synchub.dev/mark": "new", "kcp.io/cluster": "m", "tenancy.kcp.io/x": "y"}
			},
			"spec": {"replicas": 2},
			"status": {"replicas": 1}
		}`)
	}
	withStatus := want()
	withStatus["status"] = decode(t, `{"replicas": 2}`)
	withoutStatus := want()
	delete(withoutStatus, "status")

	for name, test := range map[string]struct {
		desired, existing func(*unstructured.Unstructured)
		want              map[string]any
	}{
		"the status is not written": {func(*unstructured.Unstructured) {}, func(*unstructured.Unstructured) {}, want()},
		"the status is written": {
			func(o *unstructured.Unstructured) { o.Object["status"] = decode(t, `{"replicas": 2}`) }, func(*unstructured.Unstructured) {}, withStatus,
		},
		"there is no status": {
			func(*unstructured.Unstructured) {}, func(o *unstructured.Unstructured) { delete(o.Object, "status") }, withoutStatus,
		},
	} {
		t.Run(name, func(t *testing.T) {
			existing, wanted := upsyncedObject(t), desired.DeepCopy()
			test.existing(existing)
			test.desired(wanted)
			existingBefore, wantedBefore := existing.DeepCopy(), wanted.DeepCopy()
			got := Merge(existing, wanted)
			if !reflect.DeepEqual(got.Object, test.want) {
				t.Errorf("want %v\ngot  %v", test.want, got.Object)
			}
			// Other goroutines read both at the same time.
			if !reflect.DeepEqual(existing, existingBefore) || !reflect.DeepEqual(wanted, wantedBefore) {
				t.Errorf("the arguments have changed: %v, %v", existing, wanted)
			}
			if again := Merge(got, wanted); !reflect.DeepEqual(again, got) {
				t.Errorf("first %v\nthen  %v", got, again)
			}
		})
	}
}

func TestWithKCPs(t *testing.T) {
	type entries = map[string]string
	for name, test := range map[string]struct{ desired, existing, want entries }{
		"no entries":               {entries{"a": "1"}, nil, entries{"a": "1"}},
		"entries of other writers": {entries{"a": "1"}, entries{"b": "2", "example.com/kcp.io": "3", "kcp.io": "4", "akcp.io/x": "5", "kcp.io.example.com/x": "6"}, entries{"a": "1"}},
		"entries of kcp":           {entries{"a": "1"}, entries{"kcp.io/x": "2", "a.b.kcp.io/y": "3", "c": "4"}, entries{"a": "1", "kcp.io/x": "2", "a.b.kcp.io/y": "3"}},
		"kcp's value wins":         {entries{"kcp.io/x": "1"}, entries{"kcp.io/x": "2"}, entries{"kcp.io/x": "2"}},
		"all entries removed":      {entries{}, entries{"a": "1"}, entries{}},
	} {
		existing := maps.Clone(test.existing)
		if got := withKCPEntries(maps.Clone(test.desired), test.existing); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: want %v, got %v", name, test.want, got)
		}
		if !reflect.DeepEqual(test.existing, existing) {
			t.Errorf("%s: the existing entries were changed: %v", name, test.existing)
		}
	}
}

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var content map[string]any
	if err := json.Unmarshal([]byte(text), &content); err != nil {
		t.Fatal(err)
	}
	return content
}

// upsyncedObject returns an upsynced mailbox object, with entries that kcp and the mailbox's users have added.
func upsyncedObject(t *testing.T) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: decode(t, `{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": {
			"name": "till", "namespace": "shop", "uid": "u", "resourceVersion": "7", "generation": 3, "creationTimestamp": "2026-01-02T03:04:05Z",
			"finalizers": ["mailbox.example.com/wait"], "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "a"}],
			"labels": {"synchub.dev/owner": "us", "app": "old", "theirs": "x", "claimed.internal.apis.kcp.io/abc": "def"},
			"annotations": {"synchub.dev/mark": "old", "kcp.io/cluster": "m", "note": "theirs", "tenancy.kcp.io/x": "y", "notkcp.io/x": "z", "kcp.io": "bare"}
		},
		"spec": {"replicas": 1, "paused": true}, "extra": {"a": "b"},
		"status": {"replicas": 1}
	}`)}
}
