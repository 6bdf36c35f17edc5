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
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
)

// ClaimsPlan is a change of a primary's claims on related objects.
type ClaimsPlan struct {
	Action ClaimsAction
	// Claims are set if the action is SetClaims: one for each relation of the primary.
	Claims []Claim
	// Err is why a relation of the primary cannot be resolved, or only in part.
	Err error
}

// ClaimsAction is what happens to the claims of a primary.
type ClaimsAction int

const (
	// KeepClaims does not change the claims.
	KeepClaims ClaimsAction = iota
	// MarkProcessed does not change the claims, and marks the primary as processed.
	MarkProcessed
	// MarkClaimsUnresolved keeps the claims until the primary can be resolved.
	MarkClaimsUnresolved
	// SetClaims replaces the claims.
	SetClaims
	// RemoveClaims removes the claims.
	RemoveClaims
)

// Claim is the claim of a primary by one relation.
type Claim struct {
	Relation *related.Relation
	// Query is nil if the relation cannot be resolved now. Then the primary keeps its former claim.
	Query *related.Query
}

// claimant is a primary, with the facts that its claims depend on.
type claimant struct {
	key types.NamespacedName
	// inMailbox and onTarget are the primary on each side; nil if it is absent there. namespace is its namespace on the target.
	inMailbox, onTarget *unstructured.Unstructured
	namespace           string
	selection           ObjectSelection
	matcher             *selection.Matcher
}

// setClaims resolves all relations of a primary.
func (p Planner) setClaims(primary claimant) ClaimsPlan {
	result := ClaimsPlan{Action: SetClaims}
	var errs []error
	for i, relation := range p.Relations {
		query, err := p.resolve(relation, primary)
		if err != nil {
			errs = append(errs, &RuleError{Field: fmt.Sprintf("spec.related[%d] (%s)", i, relation.Identifier), Err: err})
		}
		result.Claims = append(result.Claims, Claim{Relation: relation, Query: query})
	}
	result.Err = errors.Join(errs...)
	return result
}

// resolve returns the query of a primary by one relation; nil if it is unknown now. A query may come with an error about a part that
// was left out.
func (p Planner) resolve(relation *related.Relation, primary claimant) (*related.Query, error) {
	object, source, destination := primary.inMailbox, primary.key.Namespace, primary.namespace
	if relation.Origin == synchubv1alpha1.RelatedOriginTarget {
		object, source, destination = primary.onTarget, destination, source
	}
	if object == nil {
		// The primary is absent from that side now, so its former claims stay valid.
		return nil, nil
	}
	query, err := relation.Resolve(object, related.Environment{Mailbox: p.Down.Mailbox, SyncTarget: p.Down.SyncTarget})
	if err != nil {
		return nil, err
	}
	query.PrimaryInfo = related.PrimaryInfo{DestinationNamespace: destination, Configs: primary.selection.Configs, Suspended: primary.selection.Suspended}
	if relation.NamingUsesPrimary() {
		query.PrimaryInfo.Object = object.Object
	}
	for _, name := range query.Names {
		if name.Namespace != source && !primary.matcher.SelectsInNamespace(name.Namespace) {
			return &query, fmt.Errorf("the namespace %s is neither the object's own nor selected by a SyncerConfig: %s is left out", name.Namespace, name)
		}
	}
	return &query, nil
}
