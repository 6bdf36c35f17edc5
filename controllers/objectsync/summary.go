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

package objectsync

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
)

// ConfigSummary counts the objects of one config.
type ConfigSummary struct {
	// Selected counts the objects that the config selects. Synced counts the selected objects that are in sync on both sides.
	// Ready counts the synced objects with a healthy copy on the target.
	Selected, Synced, Ready int64
	// Failed counts the objects in Failures. Undeleted counts the failed objects that are not selected: they are gone from the
	// mailbox, but their copies cannot be deleted from the target.
	Failed, Undeleted int64
	Failures          []ObjectFailure
	// Deferred are objects with fields that the hub no longer ignores, but leaves unchanged on the target until the object
	// changes. They do not count as synced, because the hub does not know whether those fields differ.
	Deferred []DeferredObject
	// Overruled are objects with a name in this config that an older config overrules.
	Overruled []ObjectName
	// ExcludedByUpsync are objects that the config selects for downsync, and another entry selects for upsync. Upsync takes
	// precedence.
	ExcludedByUpsync []ObjectName
	// Dropped are fields of target objects that the mailbox's schema does not have, each with its resource, sorted.
	Dropped []string
}

// ObjectName names an object of a mailbox.
type ObjectName struct {
	Resource schema.GroupResource
	Key      types.NamespacedName
}

// DeferredObject names an object and its deferred fields.
type DeferredObject struct {
	ObjectName
	Fields []string
}

// UnavailableResource is an API that cannot be synced with the target now.
type UnavailableResource struct {
	// GroupResource and Kind are the target API's.
	GroupResource schema.GroupResource
	Kind          string
	// Reason is [plan.ReasonNotServed], [plan.ReasonForbidden] or a reason of package policy; Message is for users.
	Reason, Message string
}

// ObjectFailure names an object that failed.
type ObjectFailure struct {
	Resource plan.Resource
	Key      types.NamespacedName
	Failure  Failure
}

// FirstFailures returns the first failures by resource and name, for a status.
func FirstFailures(all []ObjectFailure, limit int) (first []edgev2alpha1.ObjectFailure) {
	sorted := slices.Clone(all)
	slices.SortFunc(sorted, func(a, b ObjectFailure) int {
		return strings.Compare(a.Resource.GroupResource().String()+" "+a.Key.String(), b.Resource.GroupResource().String()+" "+b.Key.String())
	})
	for _, failure := range sorted[:min(len(sorted), limit)] {
		first = append(first, edgev2alpha1.ObjectFailure{
			Group: failure.Resource.Group, Resource: failure.Resource.Resource,
			Namespace: failure.Key.Namespace, Name: failure.Key.Name,
			Reason: failure.Failure.Reason, Message: status.Truncate(failure.Failure.Message), Differences: failure.Failure.FieldDifferences(),
		})
	}
	return first
}

// FieldDifferences returns the fields that differ on the target. The caller must not change them.
func (f Failure) FieldDifferences() []edgev2alpha1.FieldDifference {
	if f.Differences == nil {
		return nil
	}
	return *f.Differences
}

// WithoutValues returns failures without the values of fields, for a status that people read who may not read the objects.
func WithoutValues(failures []edgev2alpha1.ObjectFailure) []edgev2alpha1.ObjectFailure {
	for i := range failures {
		failures[i].Differences = slices.Clone(failures[i].Differences)
		for j := range failures[i].Differences {
			failures[i].Differences[j].Desired, failures[i].Differences[j].Observed = "", ""
		}
	}
	return failures
}

// Summary counts the objects of one or more controllers.
type Summary struct {
	// Synced counts the objects that are in sync on both sides, Failed those that are not. Objects with deferred fields count as
	// neither.
	Synced, Failed int
	// Former counts the copies that stay on the target although their source is gone: deleted with its mailbox, or before
	// somebody restored the copy from a backup.
	Former int
	// PendingSince is when the hub observed the oldest change that has not reached the other side; zero if there is none.
	PendingSince time.Time
	// Failures are the failed objects, in no order.
	Failures []ObjectFailure
	// HeldRemovals and HeldOverwrites count the failed objects whose copies would be removed, or overwritten, if kcp had not gone back to
	// an earlier state.
	HeldRemovals, HeldOverwrites int
}

// Progress is what a [Summary] is about, without its numbers.
type Progress struct {
	HasSynced, HasFailed, IsSettled bool
}

// And returns the progress of the objects of both.
func (p Progress) And(other Progress) Progress {
	return Progress{p.HasSynced || other.HasSynced, p.HasFailed || other.HasFailed, p.IsSettled && other.IsSettled}
}

// Add adds another summary.
func (s *Summary) Add(other Summary) {
	s.Synced += other.Synced
	s.Failed += other.Failed
	s.Former += other.Former
	s.HeldRemovals += other.HeldRemovals
	s.HeldOverwrites += other.HeldOverwrites
	s.Failures = append(s.Failures, other.Failures...)
	if s.PendingSince.IsZero() || !other.PendingSince.IsZero() && other.PendingSince.Before(s.PendingSince) {
		s.PendingSince = other.PendingSince
	}
}

func summaryOf(summaries map[string]*ConfigSummary, config string) *ConfigSummary {
	summary, ok := summaries[config]
	if !ok {
		summary = &ConfigSummary{}
		summaries[config] = summary
	}
	return summary
}

// IsDenied reports whether the hub, and not the target, excludes the kind.
func (u UnavailableResource) IsDenied() bool {
	return u.Reason == policy.ReasonConversionNotPublished || u.Reason == policy.ReasonConversionBypassesRules
}
