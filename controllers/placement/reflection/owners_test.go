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

package reflection_test

import (
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/synchub-dev/synchub/controllers/placement/reflection"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

func TestOwnerReferences(t *testing.T) {
	t.Parallel()
	record := transform.OwnerRecord{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "on the cluster", Controller: true}
	present := reflection.ObservedOwner{OwnerRecord: record, State: reflection.OwnerPresent, NameInWorkspace: "web.florin", UIDInWorkspace: "here"}
	with := func(state reflection.OwnerState) reflection.ObservedOwner {
		return reflection.ObservedOwner{OwnerRecord: record, State: state}
	}
	reference := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web.florin", UID: "here", Controller: new(true)}
	for name, c := range map[string]struct {
		owners     []reflection.ObservedOwner
		references []metav1.OwnerReference
		state      reflection.OwnerState
	}{
		"none":                 {nil, nil, reflection.OwnerPresent},
		"present":              {[]reflection.ObservedOwner{present}, []metav1.OwnerReference{reference}, reflection.OwnerPresent},
		"unrelated":            {[]reflection.ObservedOwner{with(reflection.OwnerUnrelated)}, nil, reflection.OwnerPresent},
		"pending":              {[]reflection.ObservedOwner{with(reflection.OwnerPending), present}, []metav1.OwnerReference{reference}, reflection.OwnerPending},
		"unknown":              {[]reflection.ObservedOwner{with(reflection.OwnerUnknown), with(reflection.OwnerPending)}, nil, reflection.OwnerUnknown},
		"gone beats pending":   {[]reflection.ObservedOwner{with(reflection.OwnerGone), with(reflection.OwnerPending)}, nil, reflection.OwnerGone},
		"unrelated is no wait": {[]reflection.ObservedOwner{with(reflection.OwnerUnrelated), present}, []metav1.OwnerReference{reference}, reflection.OwnerPresent},
	} {
		references, state := reflection.OwnerReferences(c.owners)
		if !apiequality.Semantic.DeepEqual(references, c.references) || state != c.state {
			t.Errorf("%s: %v, state %d", name, references, state)
		}
	}
}
