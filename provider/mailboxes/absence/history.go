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

package absence

import (
	"context"
	"errors"
	"fmt"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/synchub-dev/synchub/provider/storehistory"
)

// errHistoryLost means that the store went back to a state before a witness.
var errHistoryLost = errors.New("kcp went back to an earlier state, which lacks an object that existed")

// verifyHistory fails if the store went back: an object that is missing in such a store is not deleted, but lost. listed is
// the version of a list that was made now.
//
// The resourceVersion of a restored store may have passed the version of the witness since. So the pass reads the list at that
// version, which must contain the object. A store whose history is compacted cannot return that list, and the pass continues.
func (v *Verifier) verifyHistory(ctx context.Context, client dynamic.Interface, mailbox logicalcluster.Name, resource schema.GroupVersionResource, listed string) error {
	witness, now := v.witnessOf(mailbox, resource), storehistory.ParseVersion(listed)
	if witness.Version == 0 || now == 0 {
		return nil
	}
	isKnown := now >= witness.Version
	if isKnown {
		var err error
		if isKnown, err = hadAt(ctx, client, resource, witness); err != nil {
			return err
		}
	}
	v.dropWitness(mailbox, resource, witness)
	if !isKnown {
		v.cache.OnHistoryLost(mailbox, resource, witness, now)
		return errHistoryLost
	}
	return nil
}

// hadAt reports whether the store had the witness at its version. It is true if the store does not answer for so early a version.
func hadAt(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, witness Witness) (bool, error) {
	list, err := client.Resource(resource).Namespace(witness.Key.Namespace).List(ctx, metav1.ListOptions{
		ResourceVersion: fmt.Sprint(witness.Version), ResourceVersionMatch: metav1.ResourceVersionMatchExact,
		FieldSelector: fields.OneTermEqualSelector("metadata.name", witness.Key.Name).String(),
	})
	switch {
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err), apierrors.IsBadRequest(err), apierrors.IsInvalid(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("cannot read %s as of the version %d: %w", resource.Resource, witness.Version, err)
	}
	for i := range list.Items {
		if list.Items[i].GetName() == witness.Key.Name {
			return storehistory.ParseVersion(list.Items[i].GetResourceVersion()) >= witness.Version, nil
		}
	}
	return false, nil
}
