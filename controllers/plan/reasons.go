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

import "fmt"

// Reasons of failures, in events and in the statuses of SyncTargets, configs and EdgePlacements. Package policy has the reasons
// of denials.
const (
	ReasonAdmissionDenied = "AdmissionDenied"
	// ReasonAdoptionReported: the hub may take over an object of the cluster, and reports how that would change the object.
	ReasonAdoptionReported = "AdoptionReported"
	// ReasonCannotWithdraw: the cluster does not let the workspace's ServiceAccount remove an object that the workspace placed.
	ReasonCannotWithdraw = "CannotWithdraw"
	ReasonConflict       = "Conflict"
	ReasonContended      = "Contended"
	// ReasonDrifted: another client changed the copy on the cluster, and the hub only reports that.
	ReasonDrifted              = "Drifted"
	ReasonForbidden            = "Forbidden"
	ReasonImmutable            = "Immutable"
	ReasonInvalid              = "Invalid"
	ReasonRuleFailed           = "RuleFailed"
	ReasonMailboxLimitExceeded = "MailboxLimitExceeded"
	// Reasons of the SyncTarget's condition if only the objects of one resource, or only the configs, exceed a limit.
	ReasonResourceLimitExceeded = "ResourceLimitExceeded"
	ReasonConfigLimitExceeded   = "ConfigLimitExceeded"
	ReasonMailboxRefused        = "MailboxRefused"
	// ReasonNamespaceNotPrepared: the cluster refuses what the hub must write for a workspace in the namespace before the object.
	ReasonNamespaceNotPrepared = "NamespaceNotPrepared"
	ReasonNamespaceTerminating = "NamespaceTerminating"
	ReasonNotServed            = "NotServed"
	ReasonQuotaExceeded        = "QuotaExceeded"
	ReasonRemovedByCluster     = "RemovedByCluster"
	ReasonRemovedInMailbox     = "RemovedInMailbox"
	// ReasonStoreWentBack: kcp went back to an earlier state, so the copy is neither removed nor overwritten.
	ReasonStoreWentBack = "StoreWentBack"
	// ReasonFieldsKept is the reason of an event, not of a failure: a field that the hub no longer applies stays on the target.
	ReasonFieldsKept        = "FieldsKept"
	ReasonTargetCordoned    = "TargetCordoned"
	ReasonTargetUnreachable = "TargetUnreachable"
	ReasonTooLarge          = "TooLarge"
	ReasonFailed            = "Failed"
)

// Finalizer keeps a mailbox object until its copies are gone from the target. The hub sets it only on objects of APIs that it
// exports itself, and only if the PublishedResource requires it. kcp refuses the hub's writes to other objects once a workspace
// has unbound the export, so the finalizer could never be removed.
const Finalizer = "synchub.dev/wait-for-target"

// RuleError reports that a rule of the PublishedResource fails for an object.
type RuleError struct {
	// Field is the field of the PublishedResource with the rule.
	Field string
	Err   error
}

func (e *RuleError) Error() string {
	return fmt.Sprintf("the PublishedResource's %s: %v", e.Field, e.Err)
}

func (e *RuleError) Unwrap() error { return e.Err }
