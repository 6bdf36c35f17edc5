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

package crd

import (
	"context"
	"errors"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/provider/notfound"
	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/targets"
)

var crdResource = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// State is the known state of a CRD on a target.
type State struct {
	// Reason is one of the Reason constants. Message is a sentence for users.
	Reason, Message string
	// Ready is true if the target serves the API, with or without a CRD of the hub.
	Ready bool
	// Installed is true if the hub owns the CRD on the target. The CRD stays there when it is no longer desired.
	Installed bool
	// RequeueAfter is when to reconcile again without an event; zero for never.
	RequeueAfter time.Duration
}

// Installer installs CRDs on one target and keeps them in sync. It records its writes, so that it does not
// repeat a write that the target did not keep in full. It is safe for concurrent use, except for two calls
// about the same CRD.
type Installer struct {
	connection *targets.Connection
	owner      ownership.Owner
	clock      clock.PassiveClock

	lock      sync.Mutex
	histories map[string]*writeHistory
}

// NewInstaller returns an installer without any history.
func NewInstaller(connection *targets.Connection, owner ownership.Owner, clock clock.PassiveClock) *Installer {
	return &Installer{connection: connection, owner: owner, clock: clock, histories: map[string]*writeHistory{}}
}

// Ensure reads the CRD from the target and brings it in sync. A write takes effect on the target a little later, so the caller must
// call Ensure again when the CRD changes. After an error the caller must retry; the state describes the error, too.
func (i *Installer) Ensure(ctx context.Context, installation Installation) (State, error) {
	desired, err := Desired(installation, i.owner)
	if err != nil {
		return State{Reason: ReasonInvalid, Message: sentence(err)}, nil
	}
	history := i.historyOf(desired.Name)
	task := &task{Installer: i, installation: installation, desired: desired, version: installation.version(), history: history}
	state, err := task.run(ctx)
	history.ready, history.installed = state.Ready, state.Installed
	return state, err
}

func (i *Installer) historyOf(name string) *writeHistory {
	i.lock.Lock()
	defer i.lock.Unlock()
	found, ok := i.histories[name]
	if !ok {
		found = &writeHistory{}
		i.histories[name] = found
	}
	return found
}

// forget drops the history of a CRD that is no longer desired.
func (i *Installer) forget(resource schema.GroupResource) {
	i.lock.Lock()
	defer i.lock.Unlock()
	delete(i.histories, resource.String())
}

// task is one call of [Installer.Ensure].
type task struct {
	*Installer
	installation Installation
	desired      *apiextensionsv1.CustomResourceDefinition
	version      string
	history      *writeHistory
}

func (t *task) run(ctx context.Context) (State, error) {
	observed, err := t.get(requestclass.With(ctx, requestclass.Background))
	if err != nil {
		// The last known state may still hold.
		return failedState(Decision{Usable: t.history.ready, Installed: t.history.installed}, "read the definition", err)
	}
	return t.execute(requestclass.With(ctx, requestclass.Extra), observed, t.install)
}

// execute executes the decision about the observed CRD. The caller decides what install does if there is no
// CRD.
func (t *task) execute(ctx context.Context, observed *observedCRD, install func(context.Context, Decision) (State, error)) (State, error) {
	decision := Decide(t.desired, observed.crd(), t.owner, t.version)
	switch decision.Action {
	case ActionInstall:
		return install(ctx, decision)
	case ActionUpdate:
		return t.update(ctx, decision, observed)
	default:
		return stateForDecision(decision), nil
	}
}

// install creates the CRD, unless the target serves the API without one.
func (t *task) install(ctx context.Context, decision Decision) (State, error) {
	served, err := t.isServed(ctx)
	switch {
	case err != nil:
		return failedState(decision, "find out whether the target serves the API", err)
	case served:
		return State{Reason: ReasonNotNeeded, Message: "The target serves the API without a definition.", Ready: true}, nil
	}
	if wait := t.history.backoff(fingerprintOf(t.desired), t.clock.Now()); wait > 0 {
		decision.Message = "Somebody keeps removing the definition; the hub installs it less and less often."
		return backoffState(decision, wait), nil
	}
	object, err := toUnstructured(t.desired)
	if err != nil {
		return failedState(decision, "install the definition", err)
	}
	created, err := t.connection.Objects.Create(ctx, crdResource, object)
	if errors.Is(err, targets.ErrAlreadyExists) {
		return t.retryAfterConflict(ctx, err)
	}
	if err != nil {
		return failedState(decision, "install the definition", err)
	}
	return t.stateAfterWrite(created)
}

// retryAfterConflict decides again about a CRD that another client created after the read.
func (t *task) retryAfterConflict(ctx context.Context, conflict error) (State, error) {
	observed, err := t.get(ctx)
	if err != nil {
		return failedState(Decision{}, "read the definition", err)
	}
	return t.execute(ctx, observed, func(_ context.Context, decision Decision) (State, error) {
		return failedState(decision, "install the definition", conflict)
	})
}

// isServed reports whether the target serves the API. Just after a CRD was deleted, it may still return true.
func (t *task) isServed(ctx context.Context) (bool, error) {
	resource := t.installation.Resource()
	_, _, err := t.connection.APIs.ResolveResource(ctx, resource.WithVersion(t.version))
	if errors.Is(err, targets.ErrNotServed) {
		return false, nil
	}
	return err == nil, err
}

// update brings the observed CRD, which the hub owns, in sync.
func (t *task) update(ctx context.Context, decision Decision, observed *observedCRD) (State, error) {
	ours := fingerprintOf(t.desired)
	if t.history.isKnownResponse(ours, fingerprintOf(observed.typed)) {
		return t.partiallyAppliedState(observed), nil
	}
	if wait := t.history.backoff(ours, t.clock.Now()); wait > 0 {
		decision.Message = t.contentionMessage(observed)
		return backoffState(decision, wait), nil
	}
	object, err := toUnstructured(t.desired)
	if err != nil {
		return failedState(decision, "change the definition", err)
	}
	applied, err := t.connection.Objects.Apply(ctx, crdResource, object, observed.typed.UID)
	if err != nil {
		return failedState(decision, "change the definition", err)
	}
	return t.stateAfterWrite(applied)
}

// stateAfterWrite derives the state from the target's response to a write.
func (t *task) stateAfterWrite(response *unstructured.Unstructured) (State, error) {
	observed, err := newObservedCRD(response)
	if err != nil {
		return failedState(Decision{Installed: true}, "read the target's answer", err)
	}
	t.history.recordWrite(fingerprintOf(t.desired), fingerprintOf(observed.typed))
	decision := Decide(t.desired, observed.typed, t.owner, t.version)
	if decision.Action == ActionUpdate {
		return t.partiallyAppliedState(observed), nil
	}
	return stateForDecision(decision), nil
}

// partiallyAppliedState returns the state of a CRD that differs from the desired one even after a write. Either
// the target does not keep every field, or other managers own some of the fields.
func (t *task) partiallyAppliedState(observed *observedCRD) State {
	reason, message := usability(observed.typed, t.version)
	return State{
		Reason: reason, Message: message + " The definition differs from the published one even after the hub has written it: the target or another manager changes it.",
		Ready: reason == ReasonInSync, Installed: true,
	}
}

func (t *task) get(ctx context.Context) (*observedCRD, error) {
	object, err := t.connection.Objects.Get(ctx, crdResource, types.NamespacedName{Name: t.desired.Name})
	if notfound.Proves(err, crdResource.GroupResource(), t.desired.Name) {
		return nil, nil //nolint:nilnil // no CRD is a valid result
	}
	if err != nil {
		return nil, err
	}
	return newObservedCRD(object)
}
