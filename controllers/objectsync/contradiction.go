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

package objectsync

import (
	"errors"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/provider/notfound"
)

// otherUIDMessage matches the answer to a write with a UID as a precondition if another object, or none, has the name.
var otherUIDMessage = regexp.MustCompile(`(?i)uid mismatch|precondition failed: UID`)

// checkIdentity returns the error of a write to the object of that UID. If the error says that there is no such object, it tells the cache,
// which holds it.
func (w *targetWriter) checkIdentity(ref plan.Ref, uid types.UID, err error) error {
	if notfound.Proves(err, ref.Resource, ref.Key.Name) || apierrors.IsConflict(err) && otherUIDMessage.MatchString(err.Error()) || isOtherUID(err) {
		w.view.contradicted(ref, uid)
	}
	return err
}

// isOtherUID reports whether a write was refused because it would change the UID.
func isOtherUID(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Field == "metadata.uid" {
			return true
		}
	}
	return false
}
