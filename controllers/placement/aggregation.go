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

package placement

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan/aggregation"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/redact"
)

// maxAggregations is how many placements of a workspace may have spec.aggregation. Their users write the expressions, and each may take
// the hub 0.1 s, as in API servers.
const maxAggregations = 8

// aggregationRest is how many times longer than its evaluations a workspace waits before the next ones, so that the expressions of a
// workspace take at most 2 % of a core.
const aggregationRest = 50

var errAggregationLimit = denied(rules.ReasonLimitExceeded, fmt.Sprintf("%d placements of a workspace may have spec.aggregation, and this one is not among the first by name", maxAggregations))

// secretsResource are left out: a user who may read the placement need not be allowed to read them.
var secretsResource = schema.GroupResource{Resource: "secrets"}

// aggregator evaluates spec.aggregation of the placements of a workspace. Only the controller of reports uses it.
type aggregator struct {
	sources     *sources
	reflections *reflections
	active      *activePlacements
	reports     *reports
	clock       clock.PassiveClock

	// results are the last results by placement.
	results map[types.UID]*aggregated
	// nextAt is when expressions may be evaluated again.
	nextAt time.Time
}

// aggregated is the result of an expression.
type aggregated struct {
	expression string
	// compiled is nil if the expression was not compiled, and isInvalid is true if it cannot be.
	compiled  *aggregation.Objects
	isInvalid bool
	// inputs identifies the objects that value and err are about.
	inputs uint64
	value  []byte
	err    error
}

// evaluate brings the results in line with the objects of the workspace. It returns when to repeat that; zero for at the next change.
func (a *aggregator) evaluate() (again time.Duration) {
	wanting := a.wanting()
	if len(wanting) == 0 {
		a.results = nil
		return 0
	}
	if a.hasResults(wanting) && !a.reports.aggregationChanged.Load() {
		return 0
	}
	return a.limited(func() {
		// A change during the evaluation requests another report.
		a.reports.aggregationChanged.Store(false)
		a.results = evaluateAll(a.results, wanting, a.inputs())
	})
}

// hasResults reports whether there are results of the expressions of these placements alone.
func (a *aggregator) hasResults(placements []*resolvedPlacement) bool {
	return len(a.results) == len(placements) && !slices.ContainsFunc(placements, func(one *resolvedPlacement) bool {
		found := a.results[one.UID]
		return found == nil || found.expression != one.Aggregation
	})
}

// limited calls a function, unless the workspace has to wait after the last call; it returns how long then.
func (a *aggregator) limited(evaluate func()) (wait time.Duration) {
	begun := a.clock.Now()
	if wait = a.nextAt.Sub(begun); wait > 0 {
		return wait
	}
	evaluate()
	end := a.clock.Now()
	a.nextAt = end.Add(max(reportInterval, aggregationRest*end.Sub(begun)))
	return 0
}

// evaluateAll returns the results of placements for what each of them brings into the workspace. before are the former results.
// A placement whose objects are being fetched keeps its former result.
func evaluateAll(before map[types.UID]*aggregated, placements []*resolvedPlacement, inputs map[types.UID]aggregationInput) map[types.UID]*aggregated {
	results := make(map[types.UID]*aggregated, len(placements))
	for i, placement := range placements {
		input, former := inputs[placement.UID], before[placement.UID]
		switch {
		case i >= maxAggregations:
			results[placement.UID] = &aggregated{expression: placement.Aggregation, err: errAggregationLimit}
		case input.isOverLimit:
			results[placement.UID] = &aggregated{expression: placement.Aggregation, err: errWorkspaceLimit}
		case !input.isPending:
			results[placement.UID] = former.evaluate(placement.Aggregation, input.objects)
		case former != nil:
			results[placement.UID] = former
		}
	}
	return results
}

// wanting returns the placements with spec.aggregation, sorted by name.
func (a *aggregator) wanting() (wanting []*resolvedPlacement) {
	active := a.active.get()
	if active == nil {
		return nil
	}
	for _, one := range active.all {
		if one.Aggregation != "" {
			wanting = append(wanting, one)
		}
	}
	slices.SortFunc(wanting, func(x, y *resolvedPlacement) int { return cmp.Compare(x.Name, y.Name) })
	return wanting
}

// aggregates reports whether a placement has spec.aggregation.
func (p *placements) aggregates() bool {
	return slices.ContainsFunc(p.all, func(one *resolvedPlacement) bool { return one.Aggregation != "" })
}

// aggregationInput is what a placement brings into the workspace, as the workspace shows it, in a stable order.
type aggregationInput struct {
	objects []*unstructured.Unstructured
	// isPending is true if some objects are being fetched, and isOverLimit if the workspace has more than the hub reads.
	isPending, isOverLimit bool
}

// add adds an object with how much of it is cached.
func (i *aggregationInput) add(object *unstructured.Unstructured, projection mailboxes.Projection) {
	switch projection {
	case mailboxes.FullObject:
		i.objects = append(i.objects, object)
	case mailboxes.IdentityOnly:
		i.isOverLimit = true
	default:
		// An event follows when it is there.
		i.isPending = true
	}
}

// inputs returns what each placement brings into the workspace.
func (a *aggregator) inputs() map[types.UID]aggregationInput {
	selectedBy := a.reflections.presentFor()
	keys := slices.SortedFunc(maps.Keys(selectedBy), func(x, y objectKey) int {
		return cmp.Or(cmp.Compare(x.resource.Group, y.resource.Group), cmp.Compare(x.resource.Resource, y.resource.Resource),
			cmp.Compare(x.name.Namespace, y.name.Namespace), cmp.Compare(x.name.Name, y.name.Name))
	})
	inputs := map[types.UID]aggregationInput{}
	for _, key := range keys {
		object, _ := a.sources.get(key)
		if object == nil || object.GetDeletionTimestamp() != nil {
			continue
		}
		for _, placement := range selectedBy[key] {
			input := inputs[placement]
			input.add(object, mailboxes.ProjectionOf(object))
			inputs[placement] = input
		}
	}
	return inputs
}

// aggregationChanged requests another evaluation of spec.aggregation, if a placement of the workspace has one.
func (r *reflections) aggregationChanged() {
	if r.isAggregated.Load() && !r.reports.aggregationChanged.Swap(true) {
		r.reports.request()
	}
}

// presentFor returns the reflections that the workspace has, except Secrets, with the placements that select them.
func (r *reflections) presentFor() map[objectKey][]types.UID {
	r.lock.Lock()
	defer r.lock.Unlock()
	present := map[objectKey][]types.UID{}
	for key, found := range r.all {
		if found.isPresent && len(found.selectedBy) > 0 && key.resource.GroupResource() != secretsResource {
			present[objectKey{key.resource, found.name}] = found.selectedBy
		}
	}
	return present
}

// evaluate returns the result of an expression for objects. r is the former result; it may be nil.
func (r *aggregated) evaluate(expression string, objects []*unstructured.Unstructured) *aggregated {
	next := &aggregated{expression: expression, inputs: fingerprintOf(objects)}
	if r != nil && r.expression == expression {
		if r.isInvalid || r.compiled != nil && r.inputs == next.inputs {
			return r
		}
		next.compiled = r.compiled
	}
	if next.compiled == nil {
		compiled, err := aggregation.CompileObjects(expression)
		if err != nil {
			next.isInvalid, next.err = true, denied(rules.ReasonAggregationFailed, err.Error())
			return next
		}
		next.compiled = compiled
	}
	list := make([]any, 0, len(objects))
	for _, object := range objects {
		list = append(list, object.Object)
	}
	value, err := next.compiled.Aggregate(list)
	if err != nil {
		next.err = denied(rules.ReasonAggregationFailed, redact.Text(err.Error()))
	}
	next.value = value
	return next
}

// fingerprintOf identifies objects and their states.
func fingerprintOf(objects []*unstructured.Unstructured) uint64 {
	hash := fnv.New64a()
	for _, object := range objects {
		for _, text := range []string{string(object.GetUID()), object.GetResourceVersion()} {
			_, _ = hash.Write(binary.BigEndian.AppendUint32(nil, uint32(len(text)))) //nolint:gosec // API servers bound it
			_, _ = hash.Write([]byte(text))
		}
	}
	return hash.Sum64()
}

// setAggregation sets the result of spec.aggregation in the next status of a placement, with its condition. The former result stays while
// the one of the present expression is still to come.
func setAggregation(next *edgev2alpha1.EdgePlacementStatus, placement *edgev2alpha1.EdgePlacement, result *aggregated) {
	switch {
	case placement.Spec.Aggregation == nil:
		next.Aggregation = nil
		meta.RemoveStatusCondition(&next.Conditions, edgev2alpha1.ConditionAggregated)
		return
	case result == nil, result.expression != placement.Spec.Aggregation.Expression:
		return
	case result.err != nil:
		next.Aggregation = nil
	case next.Aggregation == nil || !hasSameFields(next.Aggregation.Raw, result.value):
		next.Aggregation = &runtime.RawExtension{Raw: result.value}
	}
	condition := aggregatedCondition(result.err)
	condition.ObservedGeneration = placement.Generation
	meta.SetStatusCondition(&next.Conditions, condition)
}

// hasSameFields reports whether two texts are the same JSON.
func hasSameFields(a, b []byte) bool {
	var one, other any
	return json.Unmarshal(a, &one) == nil && json.Unmarshal(b, &other) == nil && apiequality.Semantic.DeepEqual(one, other)
}

// aggregatedCondition returns the condition Aggregated of a placement with an expression, and the error that the expression has.
func aggregatedCondition(err error) metav1.Condition {
	if err == nil {
		return condition(edgev2alpha1.ConditionAggregated, metav1.ConditionTrue, rules.ReasonAggregated,
			"status.aggregation has the result of spec.aggregation for the objects that spec.upsync brings into this workspace.")
	}
	why := newFailure(err)
	return condition(edgev2alpha1.ConditionAggregated, metav1.ConditionFalse, why.Reason, "%s", why.Message)
}

// aggregationPatch returns the part of a merge patch that turns one result into another.
func aggregationPatch(before, after *runtime.RawExtension) (any, error) {
	switch {
	case after == nil:
		return nil, nil
	case before == nil:
		return after, nil
	}
	patch, err := jsonpatch.CreateMergePatch(before.Raw, after.Raw)
	return json.RawMessage(patch), err
}
