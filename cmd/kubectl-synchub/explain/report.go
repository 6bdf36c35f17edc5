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
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/overview"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
)

// explainCompatibility explains whether the target accepts objects of the resource.
func (e *explainer) explainCompatibility() {
	if !e.belongsOnTarget() || e.targetRef.Resource == "" {
		return
	}
	recorded := e.facts.SyncTarget.Status.SyncedResources
	index := slices.IndexFunc(recorded, func(one edgev2alpha1.SyncedResource) bool {
		return one.Group == e.targetRef.Group && one.Resource == e.targetRef.Resource
	})
	if index < 0 {
		e.addStep(StepCompatibility, Waiting, "the hub does not list %s in the SyncTarget's status.syncedResources yet", e.targetRef.GroupResource())
		return
	}
	found := recorded[index]
	warnsOnly := e.publishedResource != nil && e.publishedResource.Spec.Compatibility == synchubv1alpha1.CompatibilityWarn
	switch {
	case found.State == edgev2alpha1.SyncedResourceIncompatible && found.Reason == "SchemaIncompatible" && warnsOnly:
		e.addStep(StepCompatibility, OK, "not every object fits, and the PublishedResource lets them go down all the same: %s", sentence(found.Message)).withReason(found.Reason)
	case found.State == edgev2alpha1.SyncedResourceIncompatible:
		e.addStep(StepCompatibility, Stopped, "%s", sentence(found.Message)).withReason(found.Reason)
	case found.State == edgev2alpha1.SyncedResourceAccepted:
		e.addStep(StepCompatibility, OK, "the cluster takes %s", e.targetRef.GroupResource()).withReason(found.Reason)
	case e.observed != nil:
		e.addStep(StepCompatibility, OK, "the cluster took %s before; the hub compares it again", e.targetRef.GroupResource()).withReason(found.Reason)
	default:
		e.addStep(StepCompatibility, Waiting, "the hub has not found out yet whether the cluster takes %s", e.targetRef.GroupResource()).withReason(found.Reason)
	}
}

// explainReport explains the object's failure as the hub reports it, which includes errors from the target.
func (e *explainer) explainReport() {
	if !e.belongsOnTarget() && e.noDownsyncReason() == "" {
		return
	}
	if failure, config := e.failure(); failure != nil {
		e.addStep(StepReport, Stopped, "%s: %s", config, sentence(failure.Message)).withReason(failure.Reason)
		return
	}
	last := e.lastEvent()
	if last != nil && e.observed == nil && e.noDownsyncReason() == "" {
		age := overview.FormatDuration(e.facts.Now.Sub(last.LastTimestamp.Time))
		if e.isResolved(last) {
			e.addStep(StepReport, OK, "an event, %s ago, said: %s; that is over: since then the hub has counted the objects that fail, and this one is not among them", age, sentence(last.Message))
			return
		}
		e.addStep(StepReport, Stopped, "the last event about it, %s ago: %s", age, sentence(last.Message)).withReason(last.Reason)
		return
	}
	if beyond := e.beyondLimits(); beyond != nil && e.observed == nil && e.noDownsyncReason() == "" {
		e.addStep(StepReport, Stopped, "it may be among the objects beyond a limit: %s", sentence(beyond.Message)).withReason(beyond.Reason)
		return
	}
	if e.facts.Configs.Err == nil && e.countFailed() > edgev2alpha1.MaxFailures {
		e.addStep(StepReport, Unknown, "so many objects fail that not all are listed").withAdvice("see the events in the mailbox")
	}
}

// beyondLimits returns the condition of the SyncTarget that the mailbox exceeds a limit, or nil. The limit is that of
// the mailbox, or that of a resource which is or may be this one. The condition does not name the objects beyond the
// limit if there are many, or if labels select them.
func (e *explainer) beyondLimits() *metav1.Condition {
	beyond := e.condition(edgev2alpha1.ConditionMailboxLimitExceeded)
	if beyond == nil || beyond.Status != metav1.ConditionTrue {
		return nil
	}
	switch beyond.Reason {
	case plan.ReasonMailboxLimitExceeded:
		return beyond
	case plan.ReasonResourceLimitExceeded:
		if e.publishedResource == nil || e.publishedResource.Spec.Limits != nil {
			return beyond
		}
	}
	return nil
}

// isResolved reports whether the failure that an event describes is over: the hub has counted failures after the
// event and listed all of them, and the object is not among them.
func (e *explainer) isResolved(event *corev1.Event) bool {
	status := &e.facts.SyncTarget.Status
	return status.Counts != nil && int(status.Counts.Failed) == len(status.Failures) && e.findFailure(status.Failures) == nil &&
		event.LastTimestamp.Before(status.LastSyncerHeartbeatTime)
}

// failure returns the object's failure and the name of the config that reports it. If no config selects the object,
// failure reads the status of the SyncTarget.
func (e *explainer) failure() (*edgev2alpha1.ObjectFailure, string) {
	for _, reported := range e.reports() {
		if found := e.findFailure(reported.Failures); found != nil {
			return found, reported.config
		}
	}
	if found := e.findFailure(e.facts.SyncTarget.Status.Failures); found != nil && len(e.selected.Configs) == 0 {
		return found, "SyncTarget/" + e.facts.SyncTarget.Name
	}
	return nil, ""
}

// findFailure returns the failure of the object, or nil.
func (e *explainer) findFailure(failures []edgev2alpha1.ObjectFailure) *edgev2alpha1.ObjectFailure {
	index := slices.IndexFunc(failures, func(failure edgev2alpha1.ObjectFailure) bool {
		return failure.Group == e.facts.Resource.Group && failure.Resource == e.facts.Resource.Resource &&
			failure.Namespace == e.facts.Key.Namespace && failure.Name == e.facts.Key.Name
	})
	if index < 0 {
		return nil
	}
	return &failures[index]
}

type report struct {
	config string
	*edgev2alpha1.SyncerConfigStatus
}

func (e *explainer) reports() (reports []report) {
	for _, config := range e.facts.Configs.Value.SyncerConfigs {
		reports = append(reports, report{"SyncerConfig/" + config.Name, &config.Status})
	}
	for _, config := range e.facts.Configs.Value.EdgeSyncConfigs {
		reports = append(reports, report{"EdgeSyncConfig/" + config.Name, &config.Status})
	}
	return reports
}

// countFailed returns the largest status.failed of any config.
func (e *explainer) countFailed() (failed int64) {
	for _, reported := range e.reports() {
		failed = max(failed, reported.Failed)
	}
	return failed
}

// lastEvent returns the hub's last warning about the object, or nil. Events about a former object of the same name do
// not count.
func (e *explainer) lastEvent() (last *corev1.Event) {
	var uid types.UID
	if object := e.facts.Object.Value; object != nil {
		uid = object.GetUID()
	}
	for i := range e.facts.Events {
		event := &e.facts.Events[i]
		if event.ReportingController != "synchub" || event.Type != corev1.EventTypeWarning || event.InvolvedObject.UID != uid {
			continue
		}
		if last == nil || last.LastTimestamp.Before(&event.LastTimestamp) {
			last = event
		}
	}
	return last
}
