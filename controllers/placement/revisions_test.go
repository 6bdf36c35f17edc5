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

package placement

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/placement/rules"
)

func TestNextRevision(t *testing.T) {
	t.Parallel()
	full := revisionSlots{{uid: "a", number: 6}, {uid: "b", number: 2}, {uid: "c", number: 3}, {uid: "d", number: 4}, {uid: "e", number: 5}}
	taken := full
	taken[1] = revisionSlot{taken: true}
	all := revisionSlots{{taken: true}, {taken: true}, {taken: true}, {taken: true}, {taken: true}}
	for name, c := range map[string]struct {
		slots  revisionSlots
		slot   int
		number int64
		ok     bool
	}{
		"the first":               {revisionSlots{}, 0, 1, true},
		"a free one":              {revisionSlots{{uid: "a", number: 1}, {}}, 1, 2, true},
		"the oldest":              {full, 1, 7, true},
		"not one of another user": {taken, 2, 7, true},
		"none":                    {all, 0, 1, false},
	} {
		slot, number, ok := c.slots.next()
		if slot != c.slot || number != c.number || ok != c.ok {
			t.Errorf("%s: slot %d, number %d, %t", name, slot, number, ok)
		}
	}
}

func TestRevisionName(t *testing.T) {
	t.Parallel()
	nameOf := func(name string, uid types.UID, slot int) string {
		return revisionName(&resolvedPlacement{Placement: &rules.Placement{Name: name, UID: uid}}, slot)
	}
	long := nameOf(strings.Repeat("a.", 126), "1", 4)
	if len(long) > 253 || strings.Contains(long, ".-") {
		t.Errorf("not a valid name: %s", long)
	}
	names := map[string]bool{nameOf("shop", "1", 0): true, nameOf("shop", "1", 1): true, nameOf("shop", "2", 0): true, nameOf("till", "1", 0): true}
	if len(names) != 4 {
		t.Errorf("two slots have the same name: %v", names)
	}
}

// An undo creates the objects in this order, so Namespaces come first.
func TestOrderOfContents(t *testing.T) {
	t.Parallel()
	var contents []*unstructured.Unstructured
	for _, name := range []string{"Deployment/b", "ConfigMap/a", "Namespace/z", "Deployment/a", "Namespace/y"} {
		kind, name, _ := strings.Cut(name, "/")
		object := &unstructured.Unstructured{}
		object.SetKind(kind)
		object.SetName(name)
		contents = append(contents, object)
	}
	slices.SortFunc(contents, compareContents)
	got := ""
	for _, object := range contents {
		got += object.GetKind() + "/" + object.GetName() + " "
	}
	if got != "Namespace/y Namespace/z ConfigMap/a Deployment/a Deployment/b " {
		t.Errorf("the order is %s", got)
	}
}
