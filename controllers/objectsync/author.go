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
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/tenants"
	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/targets"
)

// settlingRetryDelay is the delay after the target denied a request by rights or quotas that the hub has just written.
const settlingRetryDelay = 200 * time.Millisecond

// errSettling means that the target has not loaded the rights or the quota that the hub has just written, or that the hub has not read
// them. The pass is repeated, and nothing is reported.
var errSettling = errors.New("the target is still loading what the hub wrote for the workspace")

// cannotWithdrawError means that the target does not let the author of an object remove it. workspace is the workload workspace that placed
// the object; empty if none did.
type cannotWithdrawError struct {
	author    string
	workspace logicalcluster.Name
	err       error
}

func (e *cannotWithdrawError) Error() string {
	return fmt.Sprintf("the target does not let %s remove the object: remove it there, or give that ServiceAccount the right: %v", e.author, e.err)
}

func (e *cannotWithdrawError) Unwrap() error { return e.err }

func workspaceOf(identity ownership.Identity) logicalcluster.Name {
	return logicalcluster.Name(identity.Workspace)
}

// authorWorkspace returns the workload workspace whose placement made the object of an operation; empty if none did. A copy that the hub
// removes belongs to the workspace that placed it.
func authorWorkspace(o plan.Operation) logicalcluster.Name {
	switch {
	case isRemoval(o.Decision):
		return workspaceOf(o.Copy.Observed.Identity)
	case o.Desired != nil:
		return workspaceOf(o.Desired.Identity)
	default:
		return ""
	}
}

func isRemoval(decision plan.Decision) bool {
	return decision.Action == plan.Delete || decision.Action == plan.Release
}

// asAuthor returns a context whose writes impersonate the author of an operation's object; author is empty for the hub itself. Before
// it writes an object of a workspace, it makes sure that the namespace has what the workspace needs there.
func (w *targetWriter) asAuthor(ctx context.Context, o plan.Operation) (asAuthor context.Context, author string, err error) {
	workspace, tenants := authorWorkspace(o), w.tenants()
	if !isRemoval(o.Decision) && !w.isCordoned() {
		if err := tenants.Prepare(ctx, o.Copy.Key.Namespace, workspace); err != nil {
			return ctx, "", err
		}
	}
	author = tenants.User(o.Copy.API.GroupResource(), workspace)
	return targets.Impersonate(ctx, author), author, nil
}

// explainDenial returns the error of an operation. If the target denies the request to its author, it returns why the pass must be
// repeated, or that the object cannot be withdrawn.
func (w *targetWriter) explainDenial(ctx context.Context, author string, o plan.Operation, err error) error {
	namespace := o.Copy.Key.Namespace
	switch {
	case errors.Is(err, tenants.ErrNotReady):
		return errSettling
	case !isMissingRight(err) && !isQuotaUnknown(err):
		return err
	case w.tenants().IsSettling(namespace):
		return errSettling
	case author == "" || !isRemoval(o.Decision):
		return err
	case namespace != "" && w.isNamespaceTerminating(ctx, namespace):
		return &namespaceTerminatingError{namespace}
	default:
		return &cannotWithdrawError{author, authorWorkspace(o), err}
	}
}

// namespaceTerminatingError means that the cluster removes an object together with its namespace. The rights of its author have gone
// before.
type namespaceTerminatingError struct{ namespace string }

func (e *namespaceTerminatingError) Error() string {
	return "the target is removing the namespace " + e.namespace + " with the object"
}

func (w *targetWriter) isNamespaceTerminating(ctx context.Context, name string) bool {
	found, err := w.objects.Get(requestclass.With(ctx, requestclass.Extra), namespaces, types.NamespacedName{Name: name})
	return err == nil && found.GetDeletionTimestamp() != nil
}

// isQuotaUnknown reports whether the target has not computed the usage of a new quota yet.
func isQuotaUnknown(err error) bool {
	return apierrors.IsForbidden(err) && quotaUnknownMessage.MatchString(err.Error())
}

// reasonForAuthor returns the reason of a failure because of the author of an object; empty for another failure.
func reasonForAuthor(err error) string {
	_, isStuck := errors.AsType[*cannotWithdrawError](err)
	_, isTerminating := errors.AsType[*namespaceTerminatingError](err)
	switch {
	case isStuck:
		return plan.ReasonCannotWithdraw
	case isTerminating:
		return plan.ReasonNamespaceTerminating
	case tenants.IsForeignNamespace(err):
		return plan.ReasonConflict
	case tenants.IsRefused(err):
		return plan.ReasonNamespaceNotPrepared
	default:
		return ""
	}
}
