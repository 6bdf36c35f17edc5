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
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/controllers/syncmanager/schemacheck"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/provider/wording"
)

// Reasons of the condition Ready of a config. The reasons of single objects are in package objectsync.
const (
	ReasonInSync         = "InSync"
	ReasonSyncing        = "Syncing"
	ReasonObjectsFailed  = "ObjectsFailed"
	ReasonNotPublished   = "NotPublished"
	ReasonInvalidEntry   = "InvalidEntry"
	ReasonSuspended      = "Suspended"
	ReasonSelectsNothing = "SelectsNothing"
	// ReasonNotSynced: the hub syncs nothing with the SyncTarget now.
	ReasonNotSynced = "NotSynced"
	// ReasonNotVisible: the hub cannot list objects of the mailbox, so it has no counts of them.
	ReasonNotVisible = "NotVisible"
	// ReasonNotInSchema is the reason of the condition FieldsDropped.
	ReasonNotInSchema = "NotInSchema"
	// ReasonOlderVersions is the reason of the condition StoreWentBack: kcp shows older resourceVersions than the hub has observed.
	ReasonOlderVersions = "OlderVersions"
	// ReasonLeftToTarget: all objects are in sync, except fields that ignoreFields named earlier. The target keeps these
	// fields until their objects change.
	ReasonLeftToTarget = "LeftToTarget"
)

// Reasons of the condition Overlapping of a config.
const (
	// ReasonConversionOverruled: an older config of the mailbox determines the names of objects on the target.
	ReasonConversionOverruled = "ConversionOverruled"
	// ReasonVersionOverruled: another entry, of this or an older config, names the version of a resource that
	// the hub writes to the target.
	ReasonVersionOverruled = "VersionOverruled"
	// ReasonSelectedUp: objects that a downsync entry selects are not downsynced, because an upsync entry selects them too.
	ReasonSelectedUp = "SelectedUp"
)

// maxListed limits how many entries or objects a message names.
const maxListed = 5

// ObservedConfig is the observed state of one config.
type ObservedConfig struct {
	// Summary is nil if no object is selected.
	Summary *objectsync.ConfigSummary
	// Selects is true if the config has an entry that can select objects.
	Selects bool
	// EmptyEntries are the entries that select nothing because a list is absent or empty.
	EmptyEntries       []string
	Suspended          bool
	Problems           []selection.Problem
	UnavailableEntries []UnavailableEntry
	Generation         int64
	// MissingAPIs are the published APIs that the mailbox does not have.
	MissingAPIs syncmanager.MissingAPIs
	// BeyondLimits is true if the hub ignores the config because the mailbox has too many configs.
	BeyondLimits bool
	// OverruledVersions describes the entries whose version differs from the version that the hub writes.
	OverruledVersions []string
	// InitialSyncPending is true until every object that existed at the start of a sync controller has been tried once.
	InitialSyncPending bool
	// KeepCounts is true if, as long as InitialSyncPending, the counts of the same generation stay.
	KeepCounts bool
	// Held is true while nothing is removed from the target, or overwritten there, because kcp went back to an earlier state.
	Held bool
	// EvictedReason is why the mailbox is evicted, or empty if it is not. All other fields are unknown then.
	EvictedReason string
}

// NextStatus returns the next status of a config; current is the current status.
func NextStatus(observed ObservedConfig, current edgev2alpha1.SyncerConfigStatus) edgev2alpha1.SyncerConfigStatus {
	next := *current.DeepCopy()
	next.ObservedGeneration = observed.Generation
	summary := observed.Summary
	if summary == nil {
		summary = &objectsync.ConfigSummary{}
	}
	ready := readyCondition(observed, summary)
	before := meta.FindStatusCondition(current.Conditions, ready.Type)
	status.SetConditionIf(observed.Held, &next.Conditions, metav1.Condition{
		Type: edgev2alpha1.ConditionStoreWentBack, Reason: ReasonOlderVersions, ObservedGeneration: observed.Generation,
		Message: "kcp went back to an earlier state, as after a restore from a backup. Until the administrator of the cluster confirms that, the hub removes nothing from it, and overwrites nothing there. " +
			"Restore the missing objects here.",
	})
	if observed.keepsCounts(before, ready) {
		return next
	}
	if observed.EvictedReason == "" && observed.isFullyVisible() {
		next.Selected, next.Synced, next.Ready, next.Failed = summary.Selected, summary.Synced, summary.Ready, summary.Failed
		next.Failures = objectsync.FirstFailures(summary.Failures, edgev2alpha1.MaxFailures)
	}
	if observed.InitialSyncPending && ready.Status == metav1.ConditionTrue &&
		(before == nil || before.Status != metav1.ConditionTrue || before.ObservedGeneration != observed.Generation) {
		// The condition of the previous leader stays until it is disproved.
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, ReasonSyncing, "Not all selected objects have been tried yet."
	}
	ready.ObservedGeneration = observed.Generation
	meta.SetStatusCondition(&next.Conditions, ready)
	status.SetConditionIf(!observed.BeyondLimits && (!observed.Selects || len(observed.EmptyEntries) > 0), &next.Conditions, metav1.Condition{
		Type: edgev2alpha1.ConditionSelectsNothing, Reason: ReasonSelectsNothing, ObservedGeneration: observed.Generation,
		Message: selectsNothingMessage(observed.EmptyEntries),
	})
	status.SetConditionIf(observed.Suspended, &next.Conditions, metav1.Condition{
		Type: edgev2alpha1.ConditionSuspended, Reason: ReasonSuspended, ObservedGeneration: observed.Generation,
		Message: "Objects that only this config selects stay unchanged.",
	})
	status.SetConditionIf(len(observed.MissingAPIs.Resources) > 0, &next.Conditions, metav1.Condition{
		Type: edgev2alpha1.ConditionAPIsMissing, Reason: edgev2alpha1.ReasonNamingConflict, ObservedGeneration: observed.Generation,
		Message: observed.MissingAPIs.Message,
	})
	overlapping := overlappingCondition(summary, observed.OverruledVersions)
	overlapping.ObservedGeneration = observed.Generation
	status.SetConditionIf(overlapping.Reason != "", &next.Conditions, overlapping)
	status.SetConditionIf(len(summary.Dropped) > 0, &next.Conditions, metav1.Condition{
		Type: edgev2alpha1.ConditionFieldsDropped, Reason: ReasonNotInSchema, ObservedGeneration: observed.Generation,
		Message: status.Truncate(fmt.Sprintf("The schema of the mailbox does not have these fields, which selected objects on the target have, or had since the hub began: %s.", wording.FirstClauses(maxListed, summary.Dropped))),
	})
	return next
}

// keepsCounts reports whether the counts from before a start stay, given the condition Ready before and as it would be now.
func (f ObservedConfig) keepsCounts(before *metav1.Condition, ready metav1.Condition) bool {
	return f.InitialSyncPending && f.KeepCounts && before != nil && before.ObservedGeneration == f.Generation &&
		isAboutCounts(before.Reason) && isUndisproved(ready.Reason)
}

// isAboutCounts reports whether a reason of the condition Ready describes how many objects were in sync.
func isAboutCounts(reason string) bool {
	return slices.Contains([]string{ReasonInSync, ReasonSyncing, ReasonObjectsFailed, ReasonLeftToTarget}, reason)
}

// isUndisproved reports whether the untried objects alone can explain a reason, so that the earlier counts may
// still be right.
func isUndisproved(reason string) bool { return reason == ReasonInSync || reason == ReasonSyncing }

// isFullyVisible reports whether the hub can list all objects that the entries select, so that it can count them.
func (f ObservedConfig) isFullyVisible() bool {
	return !slices.ContainsFunc(f.UnavailableEntries, func(unavailable UnavailableEntry) bool {
		return unavailable.Reason == ReasonNotVisible || unavailable.Reason == targets.ReasonNotReadable
	})
}

// notSyncedStatus returns the status of a config while the hub syncs nothing. It contains only the reason: the
// message on the SyncTarget may be confidential to users of the mailbox.
func notSyncedStatus(halt syncmanager.NotSynced, generation int64, current edgev2alpha1.SyncerConfigStatus) edgev2alpha1.SyncerConfigStatus {
	next := *current.DeepCopy()
	meta.SetStatusCondition(&next.Conditions, metav1.Condition{
		Type: edgev2alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: ReasonNotSynced, ObservedGeneration: generation,
		Message: fmt.Sprintf("Nothing is synced now: SyncerReady of the SyncTarget %s is not True (%s). The counts and objects in this status are older.", halt.SyncTarget, halt.Reason),
	})
	return next
}

// beyondLimitsMessage contains no number that changes, since it is in the status of every ignored config.
var beyondLimitsMessage = fmt.Sprintf("The config is not in force: of one mailbox the hub acts upon %d configs, which may take %d bytes of its memory together, and their rules %d, "+
	"the oldest first. As long as there are more, nothing is removed because no config selects it. Delete configs, or put several into one.",
	syncmanager.ConfigLimits.Objects, syncmanager.ConfigLimits.Bytes, syncmanager.MaxMatcherSize)

// selectsNothingMessage returns a message with the entries that select nothing.
func selectsNothingMessage(entries []string) string {
	const rule = `an absent or empty list selects nothing; "*" selects all.`
	if len(entries) == 0 {
		return "No entry selects anything: " + rule
	}
	return fmt.Sprintf("%s: %s", wording.FirstClauses(maxListed, entries), rule)
}

func readyCondition(findings ObservedConfig, summary *objectsync.ConfigSummary) metav1.Condition {
	condition := metav1.Condition{Type: edgev2alpha1.ConditionReady, Status: metav1.ConditionFalse}
	switch {
	case findings.EvictedReason != "":
		condition.Reason, condition.Message = plan.ReasonMailboxLimitExceeded, status.Truncate(findings.EvictedReason)
	case findings.BeyondLimits:
		condition.Reason, condition.Message = plan.ReasonMailboxLimitExceeded, beyondLimitsMessage
	case len(findings.Problems) > 0:
		problem := findings.Problems[0]
		condition.Reason, condition.Message = ReasonInvalidEntry, status.Truncate(fmt.Sprintf("%s: %s", problem.Field, problem.Message))
	case len(findings.UnavailableEntries) > 0:
		condition.Reason, condition.Message = unavailableReason(findings.UnavailableEntries)
	case limitFailureMessage(summary) != "":
		condition.Reason, condition.Message = plan.ReasonMailboxLimitExceeded, status.Truncate(limitFailureMessage(summary))
	case summary.Failed > 0:
		condition.Reason, condition.Message = ReasonObjectsFailed, failedMessage(summary)
	case findings.Suspended:
		condition.Reason, condition.Message = ReasonSuspended, "The config is suspended."
	case len(summary.Deferred) > 0 && summary.Synced+int64(len(summary.Deferred)) == summary.Selected:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, ReasonLeftToTarget, status.Truncate(leftToTargetMessage(summary))
	case summary.Synced < summary.Selected:
		condition.Reason, condition.Message = ReasonSyncing, fmt.Sprintf("%d of %d objects are in sync.", summary.Synced, summary.Selected)
	default:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, ReasonInSync, "All selected objects are in sync."
		if summary.Selected == 0 {
			condition.Message = "No existing object is selected by the config."
		}
	}
	return condition
}

func failedMessage(summary *objectsync.ConfigSummary) string {
	undeleted := wording.Count(summary.Undeleted, "copy", "copies") + " of deleted objects cannot be deleted from the cluster"
	switch failed := summary.Failed - summary.Undeleted; {
	case summary.Undeleted == 0:
		return fmt.Sprintf("%d of %d objects failed; see status.failures and the events on them.", failed, summary.Selected)
	case failed == 0:
		return undeleted + "; see status.failures."
	default:
		return fmt.Sprintf("%d of %d objects failed, and %s; see status.failures and the events on the objects.", failed, summary.Selected, undeleted)
	}
}

// leftToTargetMessage returns a message about the objects with fields that ignoreFields no longer names and
// that the target still keeps.
func leftToTargetMessage(summary *objectsync.ConfigSummary) string {
	var objects []string
	for _, object := range summary.Deferred {
		objects = append(objects, fmt.Sprintf("%s (%s)", formatObjectName(object.ObjectName), strings.Join(object.Fields, ", ")))
	}
	slices.Sort(objects)
	return fmt.Sprintf("%d of %d objects are in sync. Of the remaining ones the target keeps fields that ignoreFields no longer names, until the object changes in the mailbox: %s.",
		summary.Synced, summary.Selected, wording.FirstClauses(maxListed, objects))
}

// limitFailureMessage returns the messages of objects beyond a limit of the mailbox or of their resource; empty if there
// are none.
func limitFailureMessage(summary *objectsync.ConfigSummary) string {
	messages := map[string]struct{}{}
	for _, failure := range summary.Failures {
		if failure.Failure.Reason == plan.ReasonMailboxLimitExceeded {
			messages[failure.Failure.Message] = struct{}{}
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(messages)), "; ")
}

// unavailableReason returns the reason of the worst unavailable entries, and a message with all entries, the worst first.
func unavailableReason(shortfalls []UnavailableEntry) (reason, message string) {
	var sentences []string
	for _, kind := range []struct{ reason, text string }{
		{policy.ReasonConversionNotPublished, "Refused, because no PublishedResource publishes the resulting kind"},
		{policy.ReasonConversionBypassesRules, "Refused, because it would leave rules of the operator"},
		{policy.ReasonPrivilegedUpsync, "Refused, because such objects act inside kcp"},
		{policy.ReasonNamespaceProtected, "Refused, because the namespace is protected"},
		{policy.ReasonNamespaceNotAllowed, "Refused, because the SyncTarget is bound to other namespaces"},
		{ReasonNotPublished, "Not published by the hub"},
		{edgev2alpha1.ReasonNamingConflict, "Not served by the mailbox, see the condition " + edgev2alpha1.ConditionAPIsMissing},
		{ReasonNotVisible, "Not visible to the hub in the mailbox, so that the counts are older"},
		{targets.ReasonNotReadable, "Not readable on the target, so that the counts are older"},
		{plan.ReasonNotServed, "Not served by the target"},
		{schemacheck.ReasonVersionNotServed, "Served by the target in other versions only"},
		{plan.ReasonForbidden, "Not permitted on the target"},
		{schemacheck.ReasonSchemaIncompatible, "Not synced, because it may not fit into the target"},
		{schemacheck.ReasonSchemaTooLarge, "Not synced, because the target's schema is too large to be compared"},
	} {
		var entries []string
		for _, shortfall := range shortfalls {
			if shortfall.Reason == kind.reason {
				entries = append(entries, shortfall.String())
			}
		}
		if len(entries) > 0 {
			reason = cmp.Or(reason, kind.reason)
			sentences = append(sentences, fmt.Sprintf("%s: %s.", kind.text, wording.FirstClauses(maxListed, entries)))
		}
	}
	return reason, strings.Join(sentences, " ")
}

// overlappingCondition returns the condition for objects and versions on which another entry decided. Its reason is empty
// if there are none.
func overlappingCondition(summary *objectsync.ConfigSummary, versions []string) metav1.Condition {
	condition := metav1.Condition{Type: edgev2alpha1.ConditionOverlapping}
	var sentences []string
	for _, kind := range []struct {
		reason, text string
		things       []string
	}{
		{ReasonConversionOverruled, "An older config selects these objects too, and its conversions decide their names on the target", objectNames(summary.Overruled)},
		{ReasonVersionOverruled, "A resource is written to the target in one version, and the oldest entry that names one decides", versions},
		{ReasonSelectedUp, "These objects are not downsynced, because an upsync entry selects them too", objectNames(summary.ExcludedByUpsync)},
	} {
		if len(kind.things) > 0 {
			condition.Reason = cmp.Or(condition.Reason, kind.reason)
			sentences = append(sentences, fmt.Sprintf("%s: %s.", kind.text, wording.FirstClauses(maxListed, kind.things)))
		}
	}
	condition.Message = strings.Join(sentences, " ")
	return condition
}

// objectNames returns each name once, sorted: the message must not depend on the order in which objects are
// counted.
func objectNames(objects []objectsync.ObjectName) []string {
	var names []string
	for _, object := range objects {
		names = append(names, formatObjectName(object))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func formatObjectName(object objectsync.ObjectName) string {
	return fmt.Sprintf("%s %s", object.Resource, strings.TrimPrefix(object.Key.String(), "/"))
}
