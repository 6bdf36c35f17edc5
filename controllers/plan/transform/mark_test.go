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

package transform_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/test/fixtures"
)

func TestMark(t *testing.T) {
	source := fixtures.Object(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, uid: u7}, spec: {replicas: 1}}")
	for _, policy := range []ownership.Policy{ownership.PolicyDelete, ownership.PolicyOrphan, ownership.PolicyCreateOnly} {
		desired, err := down.Desired(source, transform.SyncSpec{Policy: policy})
		if err != nil {
			t.Fatal(err)
		}
		hash, err := down.Hasher.Hash(unmarked(t, desired))
		if err != nil {
			t.Fatal(err)
		}
		want := ownership.Mark{
			Version: ownership.MarkVersion, Hub: "hub-uid", SyncTarget: "target-uid", Mailbox: "2f5wd0xyz",
			Source: ownership.Source{Group: "apps", Resource: "deployments", Namespace: "shop", Name: "web", UID: "u7"},
			Self:   ownership.Self{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"},
			Policy: policy,
			Hash:   hash,
		}
		if desired.Mark != want {
			t.Errorf("want %+v\ngot  %+v", want, desired.Mark)
		}
		got, err := down.Owner.Verify(desired.Object.GetAnnotations(), transform.SelfOf(desired.Object))
		if err != nil || got != want {
			t.Errorf("the object's mark does not verify: %+v, %v", got, err)
		}
	}
	cluster := desiredFor(t, fixtures.Object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}"))
	if want := (ownership.Self{Kind: "Namespace", Name: "shop"}); cluster.Mark.Self != want {
		t.Errorf("want self %+v, got %+v", want, cluster.Mark.Self)
	}
}

// The hash changes with the synced content and with nothing else. Otherwise the hub would write without need, or miss a change.
func TestHashFollowsSyncedContent(t *testing.T) {
	const text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop, uid: u, resourceVersion: '1', labels: {a: b}, annotations: {a: b}}, data: {a: b}}"
	original := desiredFor(t, fixtures.Object(t, text)).Mark.Hash
	for name, test := range map[string]struct {
		path  []string
		value any
		same  bool
	}{
		"data":              {[]string{"data", "a"}, "c", false},
		"a new field":       {[]string{"immutable"}, false, false},
		"a label":           {[]string{"metadata", "labels", "a"}, "c", false},
		"an annotation":     {[]string{"metadata", "annotations", "a"}, "c", false},
		"the name":          {[]string{"metadata", "name"}, "d", false},
		"the API version":   {[]string{"apiVersion"}, "v2", false},
		"resourceVersion":   {[]string{"metadata", "resourceVersion"}, "2", true},
		"the uid":           {[]string{"metadata", "uid"}, "v", true}, // the source in the mark has it
		"status":            {[]string{"status"}, map[string]any{"a": "b"}, true},
		"a finalizer":       {[]string{"metadata", "finalizers"}, []any{"example.com/x"}, true},
		"kcp's annotation":  {[]string{"metadata", "annotations", "kcp.io/cluster"}, "x", true},
		"kcp's claim label": {[]string{"metadata", "labels", "claimed.internal.apis.kcp.io/x"}, "x", true},
		"a null":            {[]string{"binaryData"}, nil, true}, // of a Go type
	} {
		changed := fixtures.Object(t, text)
		if err := unstructured.SetNestedField(changed.Object, test.value, test.path...); err != nil {
			t.Fatal(err)
		}
		if same := desiredFor(t, changed).Mark.Hash == original; same != test.same {
			t.Errorf("%s: the hash stays: %v, want %v", name, same, test.same)
		}
	}
	if other, err := down.Desired(fixtures.Object(t, text), transform.SyncSpec{Policy: ownership.PolicyOrphan}); err != nil || other.Mark.Hash != original {
		t.Errorf("the hash depends on the policy: %v, %v", other, err)
	}
}

func TestTooLarge(t *testing.T) {
	const limit = 256 << 10
	source := fixtures.Object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop, uid: u}}")
	// All hashes have the same length, so all marks of this object have the same size.
	room := limit - len(ownership.MarkAnnotation) - len(down.Owner.Seal(desiredFor(t, source).Mark)) - len("pad")
	for name, test := range map[string]struct {
		annotations map[string]string
		size        int
	}{
		"exactly the limit":   {map[string]string{"pad": strings.Repeat("x", room)}, 0},
		"one more":            {map[string]string{"pad": strings.Repeat("x", room+1)}, limit + 1},
		"bytes, not letters":  {map[string]string{"pad": strings.Repeat("é", room/2+1)}, limit + room/2*2 + 2 - room},
		"keys count":          {map[string]string{"pad": strings.Repeat("x", room-10), "0123456789": "y"}, limit + 1},
		"alone too large":     {map[string]string{"pad": strings.Repeat("x", limit)}, limit + limit - room},
		"what stays does not": {map[string]string{"kubectl.kubernetes.io/last-applied-configuration": strings.Repeat("x", limit)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			source := source.DeepCopy()
			source.SetAnnotations(test.annotations)
			desired, err := down.Desired(source, transform.SyncSpec{Policy: ownership.PolicyDelete})
			var tooLarge *transform.TooLargeError
			switch {
			case test.size == 0 && err != nil:
				t.Errorf("refused: %v", err)
			case test.size > 0 && !errors.As(err, &tooLarge):
				t.Errorf("want TooLarge, got %v", err)
			case test.size > 0 && tooLarge.Size != test.size:
				t.Errorf("want size %d, got %d", test.size, tooLarge.Size)
			case test.size > 0 && desired != nil:
				t.Error("returned an object with the error")
			case test.size > 0 && !strings.Contains(err.Error(), fmt.Sprint(test.size)):
				t.Errorf("the message does not contain the size: %v", err)
			}
		})
	}
}

func TestAsAdopted(t *testing.T) {
	plain := desiredFor(t, fixtures.Object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop, uid: u, annotations: {a: b}}}"))
	before, want := plain.Object.DeepCopy(), plain.Mark
	want.Adopted = true
	adopted := plain.AsAdopted()
	if got, err := down.Owner.Verify(adopted.Object.GetAnnotations(), transform.SelfOf(adopted.Object)); err != nil || got != want || adopted.Mark != want {
		t.Errorf("want %+v, got %+v, %v", want, got, err)
	}
	for _, sealed := range []*transform.Desired{plain, adopted} {
		if got, want := sealed.SealedMark(), sealed.Object.GetAnnotations()[ownership.MarkAnnotation]; got == "" || got != want {
			t.Errorf("the sealed mark is %q, the object carries %q", got, want)
		}
	}
	if !reflect.DeepEqual(plain.Object, before) || plain.Mark.Adopted {
		t.Errorf("the original changed: %v", plain)
	}
	if !reflect.DeepEqual(unmarked(t, adopted), unmarked(t, plain)) {
		t.Error("more than the mark changed")
	}
}

func TestNonJSONValues(t *testing.T) {
	source := fixtures.Object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}}")
	source.Object["ratio"] = math.Inf(1)
	if _, err := down.Desired(source, transform.SyncSpec{Policy: ownership.PolicyDelete}); err == nil || !strings.Contains(err.Error(), "shop/c") {
		t.Errorf("want an error that names the object, got %v", err)
	}
}
