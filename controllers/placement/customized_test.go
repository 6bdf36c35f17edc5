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
	"maps"
	"slices"
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/placement/customization"
	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
)

// active returns a placement with a destination for each mailbox, in a city.
func active(uid types.UID, cities map[logicalcluster.Name]string) *resolvedPlacement {
	one := &resolvedPlacement{Placement: &rules.Placement{UID: uid}, mailboxes: map[logicalcluster.Name]rules.Destination{}}
	for mailbox, city := range cities {
		one.mailboxes[mailbox] = rules.Destination{SyncTarget: fleet.SyncTarget{Mailbox: mailbox, Annotations: map[string]string{"city": city}}}
	}
	return one
}

func TestMailboxesWithOtherParameters(t *testing.T) {
	type cities = map[logicalcluster.Name]string
	before := &placements{all: []*resolvedPlacement{active("old", cities{"a": "Florence", "b": "Gouda"}), active("young", cities{"a": "Florence"})}}
	for name, test := range map[string]struct {
		next []*resolvedPlacement
		want []logicalcluster.Name
	}{
		"the same":                     {next: before.all},
		"another value":                {next: []*resolvedPlacement{active("old", cities{"a": "Florence", "b": "Delft"})}, want: []logicalcluster.Name{"b"}},
		"the young one decides":        {next: []*resolvedPlacement{active("old", cities{"b": "Gouda"}), before.all[1]}, want: []logicalcluster.Name{"a"}},
		"a placement selects one more": {next: []*resolvedPlacement{active("young", cities{"a": "Florence", "b": "Gouda"})}, want: []logicalcluster.Name{"b"}},
		"a new placement":              {next: []*resolvedPlacement{active("new", cities{"c": "Delft"})}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := slices.Sorted(maps.Keys(before.mailboxesWithOtherParameters(&placements{all: test.next}))); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
	if got := (*placements)(nil).mailboxesWithOtherParameters(before); got != nil {
		t.Errorf("before the placements were known: got %v", got)
	}
}

// The index drops an object with all of its entries.
func TestCustomizedObjects(t *testing.T) {
	w := newTestWorkspace()
	till := types.NamespacedName{Namespace: "shop", Name: "till"}
	key := objectKey{name: types.NamespacedName{Namespace: "shop", Name: "prices"}}
	entry := w.pairs.ensureObject(key)
	for _, request := range []customization.Request{{Customizer: till}, {Expand: true, Customizer: till}, {Expand: true}} {
		w.pairs.setCustomization(key, entry, request)
		if _, isIndexed := w.pairs.customized[request.Customizer][key]; len(w.pairs.customized) != 1 || !isIndexed {
			t.Errorf("after %+v: %+v", request, w.pairs.customized)
		}
	}
	w.pairs.setCustomization(key, entry, customization.Request{Customizer: till})
	w.pairs.dropObjectIfUnused(key, entry)
	if len(w.pairs.customized) > 0 || len(w.pairs.objects) > 0 {
		t.Errorf("after the object is gone: %+v", w.pairs.customized)
	}
}
