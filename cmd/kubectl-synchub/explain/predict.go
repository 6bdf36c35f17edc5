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

package explain

import (
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/objectsync/observe"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

// Predictor predicts what the hub does with the objects of one resource in one mailbox. It compiles their rules once.
type Predictor struct{ compiled }

// NewPredictor returns a predictor for the resource, the rules and the SyncTarget in the facts.
func NewPredictor(facts *Facts) *Predictor { return &Predictor{compile(facts)} }

// Resource returns the rules for the objects.
func (p *Predictor) Resource() *plan.Resource { return &p.rules }

// Err returns why the PublishedResource of the resource is wrong, or nil.
func (p *Predictor) Err() error { return p.compileErr }

// TargetRef returns the location of the object in the facts on the target, without a plan. The error is the reason why it is unknown.
func (p *Predictor) TargetRef(facts *Facts) (TargetRef, error) {
	o := p.locate(facts)
	return o.ref, o.refErr
}

// Prediction is what the hub does with an object.
type Prediction struct {
	// Plan is the hub's plan. An absence counts as verified. The plan compares no content with the target's object: it is
	// [plan.InSync] if the hub would write the object only because of its content.
	Plan plan.DownPlan
	// State is whether the object belongs on the target, and Err is why it cannot be there although it is selected.
	State plan.State
	Err   error
	// Resource are the rules for the object.
	Resource *plan.Resource
	// Owner is the hub, for the SyncTarget.
	Owner ownership.Owner
	// Ref is the place of the object on the target. RefErr is the reason why it is unknown.
	Ref    TargetRef
	RefErr error
	// Copied is set if the hub owns the target's object. NotOwnedErr is the reason if the target has another object there.
	Copied      *plan.TargetObject
	NotOwnedErr error
}

// ErrUnknownRules means that the rules of a resource cannot be read.
var ErrUnknownRules = errors.New("the rules for the resource cannot be read")

// Predict returns what the hub does with the object in the facts, whose rules are ignored.
func (p *Predictor) Predict(facts *Facts) Prediction {
	o := p.observe(facts)
	prediction := Prediction{
		Plan: o.planned, State: o.down.State, Resource: o.resource(), Owner: o.owner(), Ref: o.ref, RefErr: o.refErr, Copied: o.copied, NotOwnedErr: o.notOwnedErr,
	}
	switch {
	case p.published == nil && facts.Published.Err != nil:
		prediction.Err = errors.Join(ErrUnknownRules, facts.Published.Err)
	case p.compileErr != nil:
		prediction.Err = p.compileErr
	case o.filterErr != nil:
		prediction.Err = o.filterErr
	case o.down.Err != nil:
		prediction.Err = o.down.Err
	case o.down.DestinationErr != nil && o.down.State == plan.Selected:
		prediction.Err = o.down.DestinationErr
	case o.down.State == plan.Unknown:
		prediction.Err = observe.ErrNotReadable
		if o.relation != "" {
			prediction.Err = errors.New("it goes down with another object, by the relation " + o.relation)
		}
	default:
		prediction.Err = o.planned.Err
	}
	return prediction
}

// ResourceOn returns the resource of the place, as a server names it.
func (r TargetRef) ResourceOn(mapper meta.RESTMapper) (schema.GroupVersionResource, error) {
	switch {
	case r.Resource == "":
		mapping, err := mapper.RESTMapping(schema.GroupKind{Group: r.Group, Kind: r.Kind})
		if err != nil {
			return schema.GroupVersionResource{}, err
		}
		return mapping.Resource, nil
	case r.Version == "":
		return mapper.ResourceFor(r.GroupVersionResource)
	default:
		return r.GroupVersionResource, nil
	}
}
