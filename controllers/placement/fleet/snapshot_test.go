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

package fleet

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

func TestSelector(t *testing.T) {
	prod := edgev2alpha1.LocationSpec{InstanceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}}
	for name, test := range map[string]struct {
		location          Location
		selects, selectsX bool
	}{
		"no selector":  {Location{}, true, true},
		"a selector":   {Location{Spec: prod}, true, false},
		"unusable":     {Location{Unusable: "it is too large"}, false, false},
		"terminating":  {Location{Terminating: true}, false, false},
		"not compiled": {Location{Spec: edgev2alpha1.LocationSpec{InstanceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"-": "x"}}}}, false, false},
	} {
		selector := test.location.Selector()
		if selector.Matches(labels.Set{"env": "prod"}) != test.selects || selector.Matches(labels.Set{"env": "x"}) != test.selectsX {
			t.Errorf("%s: got the selector %s", name, selector)
		}
	}
}
