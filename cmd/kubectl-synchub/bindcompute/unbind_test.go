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

package bindcompute

import (
	"strings"
	"testing"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

func equal(one, other any) bool { return apiequality.Semantic.DeepEqual(one, other) }

func TestSelectPlacements(t *testing.T) {
	made := func(name, inventory string) edgev2alpha1.EdgePlacement {
		return *Placement{Name: name, Inventory: inventory}.Object()
	}
	theirs := edgev2alpha1.EdgePlacement{}
	theirs.Name = "theirs"
	all := []edgev2alpha1.EdgePlacement{made("a", "root:one"), made("b", "root:two"), made("c", "root:two"), theirs}
	for name, test := range map[string]struct {
		selection Selection
		want      string
		err       string
		// remaining is in the error if the selection includes the APIBinding.
		remaining string
	}{
		"by inventory":        {selection: Selection{Inventory: "root:one"}, want: "a", remaining: "b, c, theirs"},
		"by name":             {selection: Selection{Name: "c"}, want: "c", remaining: "a, b, theirs"},
		"all":                 {selection: Selection{All: true}, want: "a, b, c", remaining: "theirs"},
		"several":             {selection: Selection{Inventory: "root:two"}, err: "choose one of b, c with --name"},
		"an unknown path":     {selection: Selection{Inventory: "root:three"}, err: "for the inventory workspace root:three"},
		"an unknown name":     {selection: Selection{Name: "d"}, err: "there is no EdgePlacement d"},
		"one of someone else": {selection: Selection{Name: "theirs"}, err: "kubectl delete edgeplacement theirs"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := selectPlacements(all, test.selection)
			if err != nil || test.err != "" {
				if err == nil || test.err == "" || !strings.Contains(err.Error(), test.err) {
					t.Errorf("the error is %v, want %q", err, test.err)
				}
				return
			}
			if namesOf(got) != test.want {
				t.Errorf("got %s, want %s", namesOf(got), test.want)
			}
			if err := checkRemaining(all, &Removal{Placements: got}); err != nil {
				t.Error(err)
			}
			err = checkRemaining(all, &Removal{Placements: got, Binding: &apisv1alpha2.APIBinding{}})
			if err == nil || !strings.Contains(err.Error(), "the EdgePlacements "+test.remaining+" would be deleted with the APIBinding") {
				t.Errorf("the error is %v", err)
			}
		})
	}
	if err := checkRemaining(all, &Removal{Placements: all, Binding: &apisv1alpha2.APIBinding{}}); err != nil {
		t.Error(err)
	}
}
