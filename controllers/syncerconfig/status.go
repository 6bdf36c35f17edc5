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

package syncerconfig

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/sync"
	"github.com/synchub-dev/synchub/controllers/sync/selection"
	"github.com/synchub-dev/synchub/controllers/unimplemented"
)

// Reasons of the condition Ready of a config, beside those of single objects.
const (
	ReasonInStep        = "InStep"
	ReasonSyncing       = "Syncing"
	ReasonObjectsFailed = "ObjectsFailed"
	ReasonNotPublished  = "NotPublished"
	ReasonInvalidEntry  = "InvalidEntry"
	ReasonSuspended     = "Suspended"
	ReasonNothing       = "SelectsNothing"
)

// Findings are what is known of one config.
type Findings struct {
	// Tally is nil if nothing is selected.
	Tally *sync.Tally
	// Selects is true if the config has an entry that could select something.
	Selects   bool
	Suspended bool
	Problems  []selection.Problem
	// Unresolved names the entries whose resource is not published, with what they name.
	Unresolved    []string
	Unimplemented []string
	Generation    int64
}

// Status returns the status that follows from the findings; current is the status so far.
func Status(findings Findings, current edgev2alpha1.SyncerConfigStatus) edgev2alpha1.SyncerConfigStatus {
	next := *current.DeepCopy()
	next.ObservedGeneration = findings.Generation
	tally := findings.Tally
	if tally == nil {
		tally = &sync.Tally{}
	}
	next.Selected, next.Synced, next.Failed = tally.Selected, tally.Synced, tally.Failed
	next.Failures = failures(tally)

	ready := readiness(findings, tally)
	ready.ObservedGeneration = findings.Generation
	meta.SetStatusCondition(&next.Conditions, ready)
	setOrRemove(&next.Conditions, !findings.Selects, metav1.Condition{
		Type: edgev2alpha1.ConditionSelectsNothing, Reason: ReasonNothing, ObservedGeneration: findings.Generation,
		Message: `An absent or empty list selects nothing; "*" selects all.`,
	})
	setOrRemove(&next.Conditions, findings.Suspended, metav1.Condition{
		Type: edgev2alpha1.ConditionSuspended, Reason: ReasonSuspended, ObservedGeneration: findings.Generation,
		Message: "What only this config selects is left as it is.",
	})
	unimplemented.SetCondition(&next.Conditions, findings.Generation, findings.Unimplemented)
	return next
}

func readiness(findings Findings, tally *sync.Tally) metav1.Condition {
	condition := metav1.Condition{Type: edgev2alpha1.ConditionReady, Status: metav1.ConditionFalse}
	switch {
	case len(findings.Problems) > 0:
		problem := findings.Problems[0]
		condition.Reason, condition.Message = ReasonInvalidEntry, fmt.Sprintf("%s: %s", problem.Field, problem.Message)
	case len(findings.Unresolved) > 0:
		condition.Reason, condition.Message = ReasonNotPublished, "Not published by the hub: "+strings.Join(findings.Unresolved, "; ")+"."
	case tally.Failed > 0:
		condition.Reason, condition.Message = ReasonObjectsFailed, fmt.Sprintf("%d of %d objects failed; see status.failures and the events on them.", tally.Failed, tally.Selected)
	case findings.Suspended:
		condition.Reason, condition.Message = ReasonSuspended, "The config is suspended."
	case tally.Synced < tally.Selected:
		condition.Reason, condition.Message = ReasonSyncing, fmt.Sprintf("%d of %d objects are on the target.", tally.Synced, tally.Selected)
	default:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, ReasonInStep, "All selected objects are on the target."
	}
	return condition
}

func setOrRemove(conditions *[]metav1.Condition, set bool, condition metav1.Condition) {
	if !set {
		meta.RemoveStatusCondition(conditions, condition.Type)
		return
	}
	condition.Status = metav1.ConditionTrue
	meta.SetStatusCondition(conditions, condition)
}

// failures returns the first failures by name.
func failures(tally *sync.Tally) []edgev2alpha1.ObjectFailure {
	all := slices.Clone(tally.Failures)
	slices.SortFunc(all, func(a, b sync.ObjectFailure) int {
		return strings.Compare(a.Resource.GroupResource().String()+" "+a.Key.String(), b.Resource.GroupResource().String()+" "+b.Key.String())
	})
	if len(all) > edgev2alpha1.MaxFailures {
		all = all[:edgev2alpha1.MaxFailures]
	}
	var result []edgev2alpha1.ObjectFailure
	for _, failure := range all {
		result = append(result, edgev2alpha1.ObjectFailure{
			Group: failure.Resource.Group, Resource: failure.Resource.Resource,
			Namespace: failure.Key.Namespace, Name: failure.Key.Name,
			Reason: failure.Failure.Reason, Message: failure.Failure.Message,
		})
	}
	return result
}

// Unresolved returns, by config, the entries that name a resource which is not published, or not in that version.
func Unresolved(matcher *selection.Matcher, published []sync.Resource) map[string][]string {
	result := map[string][]string{}
	for _, entry := range matcher.Entries() {
		found := slices.ContainsFunc(published, func(resource sync.Resource) bool {
			named := entry.Resource == selection.All || entry.Kind == selection.All ||
				entry.Resource != "" && entry.Resource == resource.Resource ||
				entry.Kind != "" && entry.Kind == resource.Kind
			return named && entry.Group == resource.Group && (entry.Version == "" || entry.Version == resource.Version)
		})
		if !found {
			text := fmt.Sprintf("%s (%s)", entry.Field, strings.TrimSpace(strings.Trim(entry.Group+"/"+entry.Version, "/")+" "+entry.Resource+entry.Kind))
			if !slices.Contains(result[entry.Config], text) {
				result[entry.Config] = append(result[entry.Config], text)
			}
		}
	}
	return result
}
