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
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/tenancy"
	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/wording"
)

// User returns the user that the hub impersonates for objects of a resource on the cluster; empty for the hub itself. workspace is the
// one of the verified mark of the placement that made the object; empty if none did.
func (c *Controller) User(resource schema.GroupResource, workspace logicalcluster.Name) string {
	if c == nil {
		return ""
	}
	return c.state.Load().User(resource, workspace)
}

// foreignNamespaceError means that the namespace of a workspace is not as the hub creates it.
type foreignNamespaceError struct{ namespace string }

func (e *foreignNamespaceError) Error() string {
	return fmt.Sprintf("the cluster has a namespace %s without the workspace's label %s, so it may lack the labels of Pod Security too: remove it there",
		e.namespace, edgev2alpha1.LabelWorkspace)
}

// IsForeignNamespace reports whether an error of [Controller.Prepare] means that the namespace was not made for the workspace.
func IsForeignNamespace(err error) bool {
	_, is := errors.AsType[*foreignNamespaceError](err)
	return is
}

// notPreparedError means that the objects for a workspace are not in a namespace.
type notPreparedError struct {
	namespace string
	err       error
}

func (e *notPreparedError) Error() string {
	return fmt.Sprintf("cannot prepare the namespace %s for the workspace: %v", e.namespace, e.err)
}

func (e *notPreparedError) Unwrap() error { return e.err }

// IsRefused reports whether an error of [Controller.Prepare] means that the cluster refuses what the workspace needs in the namespace.
func IsRefused(err error) bool {
	_, is := errors.AsType[*notPreparedError](err)
	return is && isRefusal(err)
}

func isRefusal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}

// Prepare returns once a namespace of the cluster has all objects that the workspace needs there, so that the hub may write the
// workspace's first object. It makes no request for a namespace that is prepared already.
func (c *Controller) Prepare(ctx context.Context, namespace string, workspace logicalcluster.Name) error {
	if c == nil || namespace == "" || workspace == "" {
		return nil
	}
	if c.state.Load().Naming.IsShared() {
		return nil
	}
	labels, known := c.Connection.Watches.NamespaceLabels(namespace)
	if known && !isOfWorkspace(labels, workspace) {
		return &foreignNamespaceError{namespace}
	}
	if _, prepared := c.preparedAt(namespace); prepared {
		return nil
	}
	err := c.prepare(ctx, namespace, workspace).err
	if err == nil || IsForeignNamespace(err) {
		return err
	}
	return &notPreparedError{namespace, err}
}

func isOfWorkspace(labels map[string]string, workspace logicalcluster.Name) bool {
	return labels[edgev2alpha1.LabelWorkspace] == tenancy.WorkspaceHash(workspace)
}

// ensureNamespace creates a namespace for the workspace, unless it exists. It fails if the namespace was not made for the workspace. A
// namespace that the watch has not reported yet is read, since it may have been made by somebody else a moment ago.
func (c *Controller) ensureNamespace(ctx context.Context, namespace string, workspace logicalcluster.Name) error {
	labels, known := c.Connection.Watches.NamespaceLabels(namespace)
	if !known {
		created, err := createNamespace(ctx, &c.Options, namespace, c.NamespaceLabels(workspace))
		if created || err != nil {
			return err
		}
		found, err := c.Connection.Objects.Get(requestclass.With(ctx, requestclass.Extra), namespacesResource, types.NamespacedName{Name: namespace})
		if err != nil {
			return fmt.Errorf("cannot read the namespace %s: %w", namespace, err)
		}
		labels = found.GetLabels()
	}
	if !isOfWorkspace(labels, workspace) {
		return &foreignNamespaceError{namespace}
	}
	return nil
}

// NamespaceLabels returns the labels that a namespace of the cluster has from its creation, if it is created for an object of the
// workspace; nil if no placement made the object.
func (c *Controller) NamespaceLabels(workspace logicalcluster.Name) map[string]string {
	if c == nil || workspace == "" {
		return nil
	}
	return c.state.Load().namespaceLabels(workspace)
}

// IsSettling reports whether the hub wrote objects for a namespace a moment ago. The cluster may still deny requests that they allow.
func (c *Controller) IsSettling(namespace string) bool {
	if c == nil {
		return false
	}
	at, prepared := c.preparedAt(namespace)
	return prepared && c.Clock.Since(at) < settlingTime
}

func (c *Controller) preparedAt(namespace string) (at time.Time, prepared bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	at, prepared = c.prepared[namespace]
	return at, prepared
}

// setPrepared records that the objects of a namespace are in sync with the settings of a state.
func (c *Controller) setPrepared(namespace string, by *state, isWritten bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if by != c.state.Load() {
		return
	}
	at := c.prepared[namespace]
	if isWritten {
		at = c.Clock.Now()
	}
	c.prepared[namespace] = at
}

// forgetPrepared is called when a namespace was deleted.
func (c *Controller) forgetPrepared(namespace string) {
	c.setProblem(namespace, nil)
	c.lock.Lock()
	defer c.lock.Unlock()
	delete(c.prepared, namespace)
}

// setProblem records the error of the last write for a namespace, and reports whether it was another one before. What a later request may
// solve is no problem.
func (c *Controller) setProblem(namespace string, err error) (changed bool) {
	text := ""
	if isRefusal(err) {
		text = c.Connection.RedactError(err)
	}
	c.lock.Lock()
	before := c.problems[namespace]
	if c.problems[namespace] = text; text == "" {
		delete(c.problems, namespace)
	}
	c.lock.Unlock()
	if before != text {
		if text != "" {
			c.Log.Info("the cluster refuses what workspaces need in their namespaces", "namespace", namespace, "message", text)
		}
		c.OnProblem()
	}
	return before != text
}

// Problem returns a message about the objects that the cluster refuses; empty if there are none, and for a nil Controller.
func (c *Controller) Problem() string {
	if c == nil {
		return ""
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	if len(c.problems) == 0 {
		return ""
	}
	first := slices.Min(slices.Collect(maps.Keys(c.problems)))
	return fmt.Sprintf("The cluster refuses what spec.tenancy asks for in %s, so workspaces cannot place objects there. In %s: %s", wording.Count(len(c.problems), "namespace", "namespaces"), first, c.problems[first])
}

// prepare brings the objects of a workspace's namespace in sync, the ServiceAccount first.
func (c *Controller) prepare(ctx context.Context, namespace string, workspace logicalcluster.Name) written {
	return c.writeOnce("namespace/"+namespace, func() (result written) {
		if err := c.ensureNamespace(ctx, namespace, workspace); err != nil {
			return written{err: err}
		}
		state := c.state.Load()
		c.members.setPrepared(namespace, workspace)
		if state.needs(serviceAccounts) {
			result = c.ensureAccount(ctx, state.stores[serviceAccounts], tenancy.WorkspaceHash(workspace), true)
		}
		for _, kind := range namespacedKinds {
			if result.err == nil {
				result = result.and(c.ensureInNamespace(ctx, state, kind, namespace, workspace))
			}
		}
		isSolved := c.setProblem(namespace, result.err)
		if result.err != nil {
			return result
		}
		c.setPrepared(namespace, state, result.isWritten)
		if result.isWritten || isSolved {
			c.OnPrepared(namespace)
		}
		return result
	})
}

// ensureInNamespace brings the object of a kind in a workspace's namespace in sync.
func (c *Controller) ensureInNamespace(ctx context.Context, state *state, kind kind, namespace string, workspace logicalcluster.Name) written {
	store, needed := state.stores[kind], state.needs(kind)
	if store == nil {
		return written{}
	}
	if err := store.check(); err != nil {
		if !needed {
			err = nil
		}
		return written{err: err}
	}
	var desired *unstructured.Unstructured
	if needed {
		var err error
		if desired, err = state.namespacedObject(kind, namespace, tenancy.WorkspaceHash(workspace)); err != nil {
			return written{err: err}
		}
	}
	return c.ensureIn(ctx, store, types.NamespacedName{Namespace: namespace, Name: ObjectName}, desired)
}

// ensureIn brings an object in sync.
func (c *Controller) ensureIn(ctx context.Context, store *store, at types.NamespacedName, desired *unstructured.Unstructured) written {
	result := store.ensure(ctx, at, desired)
	if result.isWritten {
		log.FromContext(ctx).V(1).Info("wrote for a tenant", "resource", store.kind.Resource, "name", at)
	}
	return result
}
