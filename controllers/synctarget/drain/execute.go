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

package drain

import (
	"context"
	"sync"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/cleanup"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/targets"
)

// failures holds, by UID, the objects of one pass that the target did not let the hub delete or release.
type failures struct {
	lock     sync.Mutex
	items    map[types.UID]failure
	fatalErr error
}

type failure struct {
	item   item
	reason string
}

func newFailures() *failures { return &failures{items: map[types.UID]failure{}} }

// add records that the hub, or the author that it impersonated, could not delete or release an object. A response of the target
// concerns only that object. Any other error is fatal for the pass, since further requests would fail as well.
func (f *failures) add(item item, author string, err error) {
	if err == nil {
		return
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	reason := apierrors.ReasonForError(err)
	if reason == metav1.StatusReasonUnknown {
		reason = "Failed"
		if f.fatalErr == nil && !isAPIStatus(err) {
			f.fatalErr = err
		}
	}
	if reason == metav1.StatusReasonForbidden && author != "" {
		reason = plan.ReasonCannotWithdraw
	}
	f.items[item.UID] = failure{item: item, reason: string(reason)}
}

// isAPIStatus reports whether an API server returned the error.
func isAPIStatus(err error) bool {
	_, ok := err.(apierrors.APIStatus)
	return ok
}

// authorOf returns the user that the hub impersonates for an object: the ServiceAccount for the workspace that placed it. It returns an
// empty name for the hub itself.
func (r *drainer) authorOf(item item) string {
	identity := r.Owner.VerifyIdentity(item.Annotations[ownership.IdentityAnnotation], item.Self())
	return r.Identities.User(item.Resource, logicalcluster.Name(identity.Workspace))
}

// fatal returns the error that ends the pass, nil if there is none.
func (f *failures) fatal() error {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.fatalErr
}

// without returns the items that have not failed.
func (f *failures) without(items []item) []item {
	f.lock.Lock()
	defer f.lock.Unlock()
	var rest []item
	for _, item := range items {
		if _, failed := f.items[item.UID]; !failed {
			rest = append(rest, item)
		}
	}
	return rest
}

func (r *drainer) deleteAll(ctx context.Context, items []item, failed *failures) {
	workqueue.ParallelizeUntil(ctx, workers, len(items), func(i int) {
		if item := items[i]; failed.fatal() == nil {
			author := r.authorOf(item)
			ctx := targets.Impersonate(requestclass.With(ctx, requestclass.Object), author)
			err := r.Target.Delete(ctx, item.resource, item.key(), item.UID)
			failed.add(item, author, err)
			item.notify(r.OnDeleted, err)
		}
	})
}

func (r *drainer) releaseAll(ctx context.Context, items []item, failed *failures) {
	workqueue.ParallelizeUntil(ctx, workers, len(items), func(i int) {
		if item := items[i]; failed.fatal() == nil {
			labels, annotations := cleanup.MarkKeys(r.Owner, item.Object)
			author := r.authorOf(item)
			ctx := targets.Impersonate(requestclass.With(ctx, requestclass.Object), author)
			err := r.Target.RemoveMetadata(ctx, item.resource, item.key(), item.UID, labels, annotations)
			failed.add(item, author, err)
			item.notify(r.OnReleased, err)
		}
	})
}

// notify calls a function with the object, unless the request for the object failed.
func (i item) notify(call func(schema.GroupResource, types.NamespacedName), err error) {
	if call != nil && err == nil {
		call(i.resource.GroupResource(), i.key())
	}
}
