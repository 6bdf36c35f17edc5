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
// run in the background. The caller only logs the error.
func (p *pass) chooseVersions() (requeueAfter time.Duration, err error) {
	var chosen map[schema.GroupResource]string
	var multiVersion map[schema.GroupResource]bool
	var errs []error
	for _, resource := range p.published {
		if !resource.HasMultipleTargetVersions() || !p.mayBeSynced(resource) {
			continue
		}
		if chosen == nil {
			chosen, multiVersion = map[schema.GroupResource]string{}, map[schema.GroupResource]bool{}
		}
		groupResource := resource.TargetAPI().GroupResource()
		multiVersion[groupResource] = true
		choice, err := p.chooseVersion(resource)
		errs = append(errs, err)
		chosen[resource.GroupResource()] = choice.Version
		if choice.Reason == targetversion.Newest || choice.Reason == targetversion.NotServed {
			requeueAfter = versionPollInterval
		}
		p.forgetCompatibility(groupResource, choice.Version)
	}
	p.state.lock.Lock()
	p.state.chosenVersions = chosen
	p.state.lock.Unlock()
	p.state.apiEvents.multiVersion.Store(&multiVersion)
	p.published = withVersions(p.published, chosen)
	return requeueAfter, errors.Join(errs...)
}

// mayBeSynced reports whether the resource is selected, related to a published one, or recorded as written.
func (p *pass) mayBeSynced(resource plan.Resource) bool {
	return p.state.writtenResources.mayContain(resource.GroupResource()) || len(relationsTo(p.published, resource)) > 0 ||
		isSelected(p.state.matcher, resource, []plan.TargetAPI{resource.TargetAPI()})
}

// chooseVersion chooses the version of one resource. The error is the target's; the choice is valid
// nevertheless.
func (p *pass) chooseVersion(resource plan.Resource) (targetversion.Choice, error) {
	target, published := targetversion.Target{Previous: p.state.writtenResources.versionOf(resource)}, resource.TargetVersions()
	if named := resource.NamedVersions(p.state.matcher); len(named) > 0 {
		return targetversion.Choose(published, named[0].Version, target), nil
	}
	if !p.target.Connection.Health.IsUp() {
		return targetversion.Choose(published, "", target), nil
	}
	served, err := p.target.Connection.APIs.ServedVersionsAsync(resource.TargetAPI().GroupResource())
	target.Served, target.Known = served, err == nil
	if errors.Is(err, targets.ErrPending) {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("%s stays as it is: %w", resource.GroupResource(), err)
	}
	return targetversion.Choose(published, "", target), err
}

// withVersions returns the published resources in the chosen versions.
func withVersions(published []plan.Resource, chosen map[schema.GroupResource]string) []plan.Resource {
	if len(chosen) == 0 {
		return published
	}
	published = slices.Clone(published)
	for i, resource := range published {
		if version, ok := chosen[resource.GroupResource()]; ok && slices.Contains(resource.TargetVersions(), version) {
			published[i] = resource.WithTargetVersion(version)
		}
	}
	return published
}
