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

package tenants

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// action is the decision about one object.
type action string

const (
	actionNone    action = "None"
	actionCreate  action = "Create"
	actionApply   action = "Apply"
	actionReplace action = "Replace"
	// actionRepair applies an object that another client changed.
	actionRepair action = "Repair"
	actionDelete action = "Delete"
	// actionWait leaves a terminating object alone until it is gone.
	actionWait action = "Wait"
	// actionConflict leaves an object alone that is not the owner's.
	actionConflict action = "Conflict"
)

// IsOwned reports whether the owner made the object on the cluster, as one of the objects of this package.
func IsOwned(owner ownership.Owner, annotations map[string]string, self ownership.Self) bool {
	_, owned := verify(owner, annotations, self)
	return owned
}

func verify(owner ownership.Owner, annotations map[string]string, self ownership.Self) (ownership.Mark, bool) {
	mark, err := owner.Verify(annotations, self)
	return mark, err == nil && mark.Source.Group == edgev2alpha1.GroupName && mark.Source.Resource == syncTargets
}

// decide compares the desired object, with its mark and hash, and the observed one. Each may be nil.
func decide(desired *unstructured.Unstructured, hash string, observed *unstructured.Unstructured, owner ownership.Owner) (action, error) {
	if observed == nil {
		if desired == nil {
			return actionNone, nil
		}
		return actionCreate, nil
	}
	mark, owned := verify(owner, observed.GetAnnotations(), transform.SelfOf(observed))
	switch {
	case desired == nil && (!owned || observed.GetDeletionTimestamp() != nil):
		return actionNone, nil
	case desired == nil:
		return actionDelete, nil
	case observed.GetDeletionTimestamp() != nil:
		return actionWait, nil
	case !owned:
		return actionConflict, nil
	case !apiequality.Semantic.DeepEqual(desired.Object["roleRef"], observed.Object["roleRef"]):
		return actionReplace, nil
	case mark.Hash != hash:
		return actionApply, nil
	}
	drifted, err := ownership.UnownedPaths(desired.Object, ownership.AppliedFields(observed, ownership.FieldManager(owner.Hub)))
	if len(drifted) > 0 {
		return actionRepair, err
	}
	return actionNone, err
}
