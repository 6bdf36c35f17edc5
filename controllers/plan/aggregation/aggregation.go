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

package aggregation

import (
	"cmp"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/expression"
	"github.com/synchub-dev/synchub/provider/cachesize"
)

// Aggregator combines statuses. It is immutable and safe for concurrent use. The nil Aggregator combines none.
type Aggregator struct {
	// expression is nil for [synchubv1alpha1.StatusAggregationSum] and [synchubv1alpha1.StatusAggregationLowest].
	expression *expression.Expression
	lowest     bool
}

// statusesVariable is the name of the list of statuses in an expression.
const statusesVariable = "statuses"

// defaults are the policies of resources whose statuses are combined by default. If the spec has a number of replicas or
// completions, the status must be comparable with it: kubectl shows both side by side.
var defaults = map[schema.GroupResource]synchubv1alpha1.StatusAggregationPolicy{
	{Group: "apps", Resource: "deployments"}:  synchubv1alpha1.StatusAggregationLowest,
	{Group: "apps", Resource: "statefulsets"}: synchubv1alpha1.StatusAggregationLowest,
	{Group: "batch", Resource: "jobs"}:        synchubv1alpha1.StatusAggregationLowest,
	{Group: "apps", Resource: "daemonsets"}:   synchubv1alpha1.StatusAggregationSum,
	{Resource: "services"}:                    synchubv1alpha1.StatusAggregationSum,
}

// Compile compiles the aggregation of a PublishedResource. It returns nil if the statuses of the resource are not combined. The error
// names the field.
func Compile(spec *synchubv1alpha1.PublishedResourceSpec, resource schema.GroupResource) (*Aggregator, error) {
	if spec.StatusExpression != "" {
		compiled, err := expression.CompileCEL(spec.StatusExpression, statusesVariable)
		if err != nil {
			return nil, fmt.Errorf("statusExpression: %w", err)
		}
		return &Aggregator{expression: compiled}, nil
	}
	switch policy := cmp.Or(spec.StatusAggregation, defaults[resource]); policy {
	case synchubv1alpha1.StatusAggregationSum, synchubv1alpha1.StatusAggregationLowest:
		return &Aggregator{lowest: policy == synchubv1alpha1.StatusAggregationLowest}, nil
	default:
		return nil, nil
	}
}

// MaxBytes bounds the statuses that are combined into one, as [cachesize.SizeOf] estimates them. An object of an API server has at most
// 1.5 MB (the limit of etcd), and a sum of usual statuses a few kilobytes for each cluster.
const MaxBytes = 4 << 20

// ErrTooLarge means that the statuses exceed [MaxBytes].
var ErrTooLarge = fmt.Errorf("the statuses of the object on all clusters have more than %d MiB together, so they are not combined", MaxBytes>>20)

// Aggregate combines the statuses of all destinations, which the caller passes in a stable order. A nil status stands for a
// destination without a status. generation is the source's generation, to which the observed generations refer. The result shares
// no memory with the statuses. The error is the reason why the statuses cannot be combined, and names the field of the
// PublishedResource if the field causes it.
func (a *Aggregator) Aggregate(statuses []map[string]any, generation int64) (map[string]any, error) {
	var size int64
	for _, status := range statuses {
		size += cachesize.SizeOf(&unstructured.Unstructured{Object: status})
	}
	if size > MaxBytes {
		return nil, ErrTooLarge
	}
	if a.expression == nil {
		total := sum(statuses, generation)
		if a.lowest {
			takeLowest(total, statuses)
		}
		return total, nil
	}
	list := make([]any, 0, len(statuses))
	for _, status := range statuses {
		if status == nil {
			status = map[string]any{}
		}
		list = append(list, status)
	}
	result, err := a.expression.Evaluate(map[string]any{statusesVariable: list})
	if err != nil {
		return nil, fmt.Errorf("spec.statusExpression: %w", err)
	}
	status, ok := result.(map[string]any)
	if !ok {
		return nil, errors.New("spec.statusExpression: the expression yields no map of fields")
	}
	return status, nil
}
