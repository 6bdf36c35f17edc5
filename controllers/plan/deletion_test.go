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

package plan

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

func TestPropagationOf(t *testing.T) {
	for name, c := range map[string]struct {
		finalizers []string
		want       metav1.DeletionPropagation
	}{
		"nothing":                {nil, metav1.DeletePropagationBackground},
		"an unknown finalizer":   {[]string{"example.org/orphan"}, metav1.DeletePropagationBackground},
		"dependents stay":        {[]string{"example.org/other", "orphan"}, metav1.DeletePropagationOrphan},
		"dependents leave first": {[]string{"foregroundDeletion"}, metav1.DeletePropagationForeground},
	} {
		object := &unstructured.Unstructured{}
		object.SetFinalizers(c.finalizers)
		if got := PropagationOf(object); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// The copies of a deleted object are deleted with its propagation policy. Copies of other objects of the same name, and of
// deselected objects, are deleted with the default policy.
func TestPlanDownDeletesAsTheSourceWas(t *testing.T) {
	mark := ownership.Mark{Policy: ownership.PolicyDelete, Source: ownership.Source{UID: "source"}}
	existing := Copy{Observed: &TargetObject{UID: "uid", Mark: mark, HasOwnerLabel: true}}
	for name, c := range map[string]struct {
		state    State
		deletion *Deletion
		want     metav1.DeletionPropagation
	}{
		"nothing is known":         {SourceNotFound, nil, metav1.DeletePropagationBackground},
		"gone, its children stay":  {SourceNotFound, &Deletion{"source", metav1.DeletePropagationOrphan}, metav1.DeletePropagationOrphan},
		"going, its children stay": {Terminating, &Deletion{"source", metav1.DeletePropagationOrphan}, metav1.DeletePropagationOrphan},
		"its children go first":    {SourceNotFound, &Deletion{"source", metav1.DeletePropagationForeground}, metav1.DeletePropagationForeground},
		"another of its name":      {SourceNotFound, &Deletion{types.UID("former"), metav1.DeletePropagationOrphan}, metav1.DeletePropagationBackground},
		"deselected":               {Deselected, &Deletion{"source", metav1.DeletePropagationOrphan}, metav1.DeletePropagationBackground},
	} {
		planned := Planner{}.PlanDown(&Snapshot{Readable: true, Down: &DownSnapshot{State: c.state, Copies: []Copy{existing}, AbsenceVerified: true, Deletion: c.deletion}})
		if len(planned.Operations) != 1 || planned.Operations[0].Decision.Action != Delete || planned.Operations[0].Propagation != c.want {
			t.Errorf("%s: %+v, want one deletion with %s", name, planned.Operations, c.want)
		}
	}
}
