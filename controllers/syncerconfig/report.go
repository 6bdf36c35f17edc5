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
	"github.com/synchub-dev/synchub/controllers/compatibility"
	"github.com/synchub-dev/synchub/controllers/sync"
	"github.com/synchub-dev/synchub/controllers/sync/conversion"
	"github.com/synchub-dev/synchub/controllers/sync/selection"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
)

// report is what there is to say about the configs of one mailbox.
type report struct {
	syncmanager.View
	tallies map[string]*sync.Tally
	supply  Supply
	entries map[string][]selection.Entry // by config
	// closed says why nothing is held of the mailbox; empty if that is not so.
	closed string
}

func newReport(view syncmanager.View) report {
	report := report{
		View:    view,
		tallies: map[string]*sync.Tally{},
		supply: Supply{
			Published:   view.Published,
			Targets:     map[schema.GroupResource][]sync.TargetResource{},
			Unavailable: map[schema.GroupResource][]sync.Unavailable{},
			Definitions: view.Definitions,
			Namespaces:  view.Namespaces,
			Missing:     view.Missing,
			Hidden:      map[schema.GroupResource]string{},
			Unfinished:  map[schema.GroupResource]bool{},
		},
		entries: map[string][]selection.Entry{},
	}
	for _, controller := range view.Controllers {
		controller.AddTo(report.tallies)
		group := controller.Resource.GroupResource()
		report.supply.Targets[group], report.supply.Unavailable[group] = controller.Targets, inOtherVersions(controller.Unavailable(), view.Fits)
		if why := controller.Hidden(); why != "" {
			report.supply.Hidden[group] = why
		} else if !controller.Knows() {
			report.supply.Unfinished[group] = true
		}
	}
	for _, group := range view.Unstarted {
		report.supply.Unfinished[group] = true
	}
	for _, resource := range view.Published {
		group := resource.GroupResource()
		if state, ok := view.Frozen[group]; ok {
			target := resource.OnTarget()
			report.supply.Targets[group] = []sync.TargetResource{target}
			report.supply.Unavailable[group] = []sync.Unavailable{{Target: target.GroupResource(), Kind: target.Kind, Reason: state.Reason, Message: state.Message}}
		}
	}
	for _, entry := range view.Matcher.Entries() {
		report.entries[entry.Config] = append(report.entries[entry.Config], entry)
	}
	return report
}

// inOtherVersions tells apart what the target serves in other versions only from what it does not serve at all: a watch
// fails in the same way.
func inOtherVersions(unavailable []sync.Unavailable, fits map[schema.GroupResource]compatibility.State) []sync.Unavailable {
	for i := range unavailable {
		state := fits[unavailable[i].Target]
		if unavailable[i].Reason == sync.ReasonNotServed && state.Reason == compatibility.ReasonVersionNotServed {
			unavailable[i].Reason, unavailable[i].Message = state.Reason, state.Message
		}
	}
	return unavailable
}

// overruledVersions returns which entries of a config name a version for a resource that is written to the target in another,
// and what names that.
func (r report) overruledVersions(id string) (overruled []string) {
	for _, resource := range r.Published {
		if resource.Companion || !resource.HasTargetVersions() {
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

// findings returns what is known of a config with these conversions.
func (r report) findings(id string, conversions []edgev2alpha1.Conversion) Findings {
	var usable []conversion.Conversion
	var refused []Shortfall
	for i, written := range conversions {
		// One that cannot be used is among the problems.
		if compiled, err := conversion.New(written); err == nil {
			usable = append(usable, compiled)
			refused = append(refused, r.supply.RefusedConversion(fmt.Sprintf("spec.conversions[%d]", i), compiled)...)
		}
	}
	return Findings{
		Unfinished: r.supply.IsUnfinished(r.entries[id], usable),
		Versions:   r.overruledVersions(id),
		Tally:      r.tallies[id],
		Selects:    r.Matcher.HasRules(id),
		Idle:       r.Matcher.Idle(id),
		Problems:   r.Matcher.Problems(id),
		Shortfalls: append(refused, r.supply.Shortfalls(r.entries[id], usable)...),
		Missing:    r.supply.Missing,
	}
}
