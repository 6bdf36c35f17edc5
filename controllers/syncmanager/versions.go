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

package syncmanager

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/targetversion"
	"github.com/synchub-dev/synchub/provider/targets"
)

// versionPollInterval is how often the hub polls a target that does not serve the preferred version of a
// resource. Not every change causes an event: built-in kinds change with an upgrade only, and some targets do
// not let the hub watch CRDs.
const versionPollInterval = 5 * time.Minute

// chooseVersions chooses the version that objects are written to the target in, for each resource that is
// published in several. It returns when to choose again, zero if only after an event. Requests to the target
// run in the background. The caller only logs the error. The caller holds reconcileMutex.
func (m *Manager) chooseVersions(state *targetState, published []plan.Resource) (requeueAfter time.Duration, err error) {
	var chosen map[schema.GroupResource]string
	var multiVersion map[schema.GroupResource]bool
	var errs []error
	for _, resource := range published {
		if !resource.HasMultipleTargetVersions() || !state.mayBeSynced(resource, published) {
			continue
		}
		if chosen == nil {
			chosen, multiVersion = map[schema.GroupResource]string{}, map[schema.GroupResource]bool{}
		}
		groupResource := resource.TargetAPI().GroupResource()
		multiVersion[groupResource] = true
		choice, err := state.chooseVersion(resource)
		errs = append(errs, err)
		chosen[resource.GroupResource()] = choice.Version
		if choice.Reason == targetversion.Newest || choice.Reason == targetversion.NotServed {
			requeueAfter = versionPollInterval
		}
		state.forgetCompatibility(groupResource, choice.Version)
	}
	state.lock.Lock()
	state.chosenVersions = chosen
	state.lock.Unlock()
	state.multiVersion.Store(&multiVersion)
	return requeueAfter, errors.Join(errs...)
}

// mayBeSynced reports whether the resource is selected, related to a published one, or recorded as written.
func (t *targetState) mayBeSynced(resource plan.Resource, published []plan.Resource) bool {
	return t.mayHaveWritten(resource.GroupResource()) || len(relationsTo(published, resource)) > 0 ||
		isSelected(t.matcher, resource, []plan.TargetAPI{resource.TargetAPI()})
}

// chooseVersion chooses the version of one resource. The error is the target's; the choice is valid
// nevertheless.
func (t *targetState) chooseVersion(resource plan.Resource) (targetversion.Choice, error) {
	target, published := targetversion.Target{Previous: t.writtenVersion(resource)}, resource.TargetVersions()
	if named := resource.NamedVersions(t.matcher); len(named) > 0 {
		return targetversion.Choose(published, named[0].Version, target), nil
	}
	connection := t.currentTarget().Connection
	if !connection.Health.IsUp() {
		return targetversion.Choose(published, "", target), nil
	}
	served, err := connection.APIs.ServedVersionsAsync(resource.TargetAPI().GroupResource())
	target.Served, target.Known = served, err == nil
	if errors.Is(err, targets.ErrPending) {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("%s stays as it is: %w", resource.GroupResource(), err)
	}
	return targetversion.Choose(published, "", target), err
}

// writtenVersion returns the version that objects of a resource may have been written in last; empty if none
// were.
func (t *targetState) writtenVersion(resource plan.Resource) string {
	target := resource.TargetAPI().GroupResource()
	record := t.writtenResources[target]
	if record.Direct && target == resource.GroupResource() || slices.Contains(record.ConvertedFrom, resource.GroupResource()) {
		return record.Version
	}
	return ""
}

// forgetCompatibility drops the compatibility state of a resource if the state refers to another version than
// the given one.
func (t *targetState) forgetCompatibility(target schema.GroupResource, version string) {
	record, ok := t.writtenResources[target]
	if !ok || record.Version == version {
		return
	}
	t.lock.Lock()
	defer t.lock.Unlock()
	states := maps.Clone(t.compatibilityStates)
	delete(states, target)
	t.compatibilityStates = states
}

// withChosenVersions returns the published resources in the versions chosen for the target. The caller holds reconcileMutex or lock.
func (t *targetState) withChosenVersions(published []plan.Resource) []plan.Resource {
	if len(t.chosenVersions) == 0 {
		return published
	}
	published = slices.Clone(published)
	for i, resource := range published {
		if version, ok := t.chosenVersions[resource.GroupResource()]; ok && slices.Contains(resource.TargetVersions(), version) {
			published[i] = resource.WithTargetVersion(version)
		}
	}
	return published
}

// isMultiVersion reports whether a change of the resource's CRD may lead to another version.
func (t *targetState) isMultiVersion(target schema.GroupResource) bool {
	multiVersion := t.multiVersion.Load()
	return multiVersion != nil && (*multiVersion)[target]
}
