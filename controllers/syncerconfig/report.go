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

	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/conversion"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/controllers/syncmanager/schemacheck"
)

// report holds the observed state of all configs of one mailbox.
type report struct {
	syncmanager.View
	summaries    map[string]*objectsync.ConfigSummary
	availability Availability
	entries      map[string][]selection.Entry // by config
	// keepCounts is true while the counts from before a start may stay.
	keepCounts bool
	// evictedReason is why the mailbox is evicted, or empty if it is not.
	evictedReason string
}

// newReport returns the state of the configs of a mailbox. keepCounts is true while the counts from before a start may stay.
func newReport(view syncmanager.View, keepCounts bool) report {
	report := report{
		View:       view,
		keepCounts: keepCounts,
		summaries:  map[string]*objectsync.ConfigSummary{},
		availability: Availability{
			Published:          view.Published,
			Targets:            map[schema.GroupResource][]plan.TargetAPI{},
			Unavailable:        map[schema.GroupResource][]objectsync.UnavailableResource{},
			CRDs:               view.CRDs,
			Namespaces:         view.Namespaces,
			MissingAPIs:        view.MissingAPIs,
			Hidden:             map[schema.GroupResource]string{},
			InitialSyncPending: map[schema.GroupResource]bool{},
		},
		entries: map[string][]selection.Entry{},
	}
	for _, controller := range view.Controllers {
		controller.Status.SummarizeConfigs(report.summaries)
		group := controller.Resource.GroupResource()
		report.availability.Targets[group], report.availability.Unavailable[group] = controller.TargetAPIs, withVersionReasons(controller.Status.UnavailableResources(), view.Compatibility)
		report.availability.setVisibility(group, controller.Status.UnreadableReason(), controller.HasCompletedFirstPass(), keepCounts)
	}
	for _, group := range view.Unstarted {
		report.availability.InitialSyncPending[group] = true
	}
	for _, resource := range view.Published {
		group := resource.GroupResource()
		if state, ok := view.Incompatible[group]; ok {
			target := resource.TargetAPI()
			report.availability.Targets[group] = []plan.TargetAPI{target}
			report.availability.Unavailable[group] = []objectsync.UnavailableResource{{GroupResource: target.GroupResource(), Kind: target.Kind, Reason: state.Reason, Message: state.Message}}
		}
	}
	for _, entry := range view.Matcher.Entries() {
		report.entries[entry.Config] = append(report.entries[entry.Config], entry)
	}
	return report
}

// withVersionReasons changes the reason of resources that the target serves only in other versions. The watch fails in the
// same way as for a resource that the target does not serve at all.
func withVersionReasons(unavailable []objectsync.UnavailableResource, fits map[schema.GroupResource]schemacheck.State) []objectsync.UnavailableResource {
	for i := range unavailable {
		state := fits[unavailable[i].GroupResource]
		if unavailable[i].Reason == plan.ReasonNotServed && state.Reason == schemacheck.ReasonVersionNotServed {
			unavailable[i].Reason, unavailable[i].Message = state.Reason, state.Message
		}
	}
	return unavailable
}

// overruledVersions describes the entries of a config whose version differs from the version that the hub
// writes. The description names the entry that decides.
func (r report) overruledVersions(id string) (overruled []string) {
	for _, resource := range r.Published {
		if resource.RelatedOnly || !resource.HasMultipleTargetVersions() {
			continue
		}
		named := resource.NamedVersions(r.Matcher)
		for _, one := range named {
			if one.Config == id && one.Version != named[0].Version {
				overruled = append(overruled, fmt.Sprintf("%s names %s for %s, %s of %s names %s",
					one.Field, one.Version, resource.GroupResource(), named[0].Field, named[0].Config, named[0].Version))
			}
		}
	}
	slices.Sort(overruled)
	return overruled
}

// observedConfig returns the observed state of a config with the given conversions.
func (r report) observedConfig(id string, conversions []edgev2alpha1.Conversion) ObservedConfig {
	var usable []conversion.Conversion
	var refused []UnavailableEntry
	for i, written := range conversions {
		// An invalid conversion is already among the problems.
		if compiled, err := conversion.New(written); err == nil {
			usable = append(usable, compiled)
			refused = append(refused, r.availability.DeniedConversion(fmt.Sprintf("spec.conversions[%d]", i), compiled)...)
		}
	}
	return ObservedConfig{
		KeepCounts:         r.keepCounts,
		InitialSyncPending: r.availability.IsInitialSyncPending(r.entries[id], usable),
		OverruledVersions:  r.overruledVersions(id),
		Summary:            r.summaries[id],
		Selects:            r.Matcher.HasRules(id),
		EmptyEntries:       r.Matcher.EmptyEntries(id),
		Problems:           r.Matcher.Problems(id),
		UnavailableEntries: append(refused, r.availability.UnavailableEntries(r.entries[id], usable)...),
		MissingAPIs:        r.availability.MissingAPIs,
	}
}
