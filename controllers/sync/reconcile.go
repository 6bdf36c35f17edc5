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

package sync

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/synchub-dev/synchub/controllers/sync/decide"
	"github.com/synchub-dev/synchub/controllers/sync/ownership"
	"github.com/synchub-dev/synchub/controllers/sync/selection"
	"github.com/synchub-dev/synchub/controllers/sync/transform"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/requests"
)

// Reconcile brings one object in step. While the target is away it does nothing; [Controller.Resume] makes up for it.
func (c *Controller) Reconcile(ctx context.Context, key types.NamespacedName) (reconcile.Result, error) {
	if !c.Connection.Up() {
		return reconcile.Result{}, nil
	}
	// Before the matcher is looked at: see Empty.
	c.active.Add(1)
	defer c.active.Add(-1)
	ctx = requests.As(ctx, requests.Object)
	started := c.Clock.Now()
	result, decision, source, err := c.reconcile(ctx, key)
	c.metrics.reconciled(decision.Action, c.Clock.Since(started), err)
	if err == nil {
		if c.failures.clear(key) {
			c.Changed()
		}
		return result, nil
	}
	if ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		// The controller is being stopped; the object has done nothing wrong.
		return reconcile.Result{}, nil
	}
	failure := failureOf(err)
	if failure.Reason == ReasonTargetUnreachable {
		c.Connection.Doubt()
	}
	if c.failures.set(key, failure) {
		c.Changed()
		if source != nil {
			c.events.warn(ctx, c.Resource, source, failure)
		}
	}
	if errors.Is(err, errContended) {
		return result, nil
	}
	return reconcile.Result{}, fmt.Errorf("%s %s: %w", c.Resource.Resource, key, err)
}

func (c *Controller) reconcile(ctx context.Context, key types.NamespacedName) (reconcile.Result, decide.Decision, *unstructured.Unstructured, error) {
	object, observed := c.observe(key)
	source, state, selected, err := c.look(key, observed)
	if err != nil {
		return reconcile.Result{}, decide.Decision{}, source, err
	}
	decision, err := decide.Down(state, observed, c.memory.droppedBy(key))
	if err != nil {
		return reconcile.Result{}, decision, source, err
	}
	if decision.Cause == decide.InStep && selected.StatusReturn && c.Resource.StatusReturn {
		return reconcile.Result{}, decision, source, c.returnStatus(ctx, key, source, object)
	}
	if decision.Cause == decide.Drifted {
		if wait, contended := c.failures.repair(key); contended {
			return reconcile.Result{RequeueAfter: wait}, decision, source, c.contended(ctx, key, state.Desired.Object, decision.Fields)
		}
	}
	result := reconcile.Result{}
	if decision.Action == decide.Create {
		result.RequeueAfter = echoTimeout
	}
	return result, decision, source, c.act(ctx, key, decision, state.Desired, observed)
}

// act carries out a decision.
func (c *Controller) act(ctx context.Context, key types.NamespacedName, decision decide.Decision, desired *transform.Desired, observed *decide.Observed) error {
	var err error
	switch decision.Action {
	case decide.None:
		return nil
	case decide.Create:
		err = c.create(ctx, key, desired.Object)
	case decide.Apply:
		err = c.apply(ctx, key, desired.Object, observed.UID)
	case decide.Delete:
		err = c.delete(ctx, key, observed.UID)
	case decide.Release:
		err = c.release(ctx, key, observed)
	case decide.Prove:
		c.Mailboxes.Prove(c.Mailbox, c.suspect(key, decision.Cause))
	}
	log.FromContext(ctx).V(1).Info("acted", "decision", decision.String())
	if err == nil {
		c.Changed()
	}
	return err
}

// look returns the source and its state.
func (c *Controller) look(key types.NamespacedName, observed *decide.Observed) (*unstructured.Unstructured, decide.Source, selection.Selection, error) {
	source, state := c.Mailboxes.Get(c.Resource.GroupVersionResource, c.Mailbox, key)
	switch state {
	case mailboxes.Unknown:
		return nil, decide.Source{State: decide.Unknown}, selection.Selection{}, nil
	case mailboxes.Absent:
		c.memory.forgetSource(key)
		c.failures.forget(key)
		return nil, c.absence(key, decide.Vanished, observed), selection.Selection{}, nil
	case mailboxes.Present:
	}
	selected, ok := c.matcher.Load().Match(c.describe(source))
	switch {
	case source.GetDeletionTimestamp() != nil:
		return source, c.absence(key, decide.Terminating, observed), selected, nil
	case !ok:
		return source, c.absence(key, decide.Deselected, observed), selected, nil
	case selected.Suspended:
		return source, decide.Source{State: decide.Suspended}, selected, nil
	}
	policy := selected.Policy
	if c.Resource.Orphan {
		policy = ownership.PolicyOrphan
	}
	desired, err := c.down.Desire(source, policy)
	return source, decide.Source{State: decide.InStep, Desired: desired}, selected, err
}

// absence is the state of a source whose object on the target, if there is one, has to go.
func (c *Controller) absence(key types.NamespacedName, cause decide.Cause, observed *decide.Observed) decide.Source {
	return decide.Source{State: cause, Proven: observed != nil && c.Mailboxes.Proven(c.Mailbox, c.suspect(key, cause))}
}

func (c *Controller) suspect(key types.NamespacedName, cause decide.Cause) mailboxes.Suspect {
	return mailboxes.Suspect{Resource: c.Resource.GroupVersionResource, Key: key, Vanished: cause == decide.Vanished}
}

// contended returns the error that names who holds the fields we keep losing.
func (c *Controller) contended(ctx context.Context, key types.NamespacedName, desired *unstructured.Unstructured, fields []string) error {
	object, err := c.Connection.Get(requests.As(ctx, requests.Extra), c.Resource.GroupVersionResource, key)
	if err != nil {
		return err
	}
	holders, err := ownership.Holders(desired.Object, object.GetManagedFields(), fields)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: %v keeps changing %v", errContended, holders, fields)
}

// isMissingNamespace tells whether a create failed because its namespace does not exist.
func isMissingNamespace(err error, namespace string) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Kind == "namespaces" && details.Name == namespace
}
