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

	"github.com/synchub-dev/synchub/controllers/sync"
	"github.com/synchub-dev/synchub/controllers/sync/versions"
	"github.com/synchub-dev/synchub/provider/targets"
)

// versionsInterval is how often a target that does not serve the preferred version of a resource is asked whether it does, when
// nothing tells of a change: built-in kinds change with an upgrade only, and not every target lets its definitions be watched.
const versionsInterval = 5 * time.Minute

// chooseVersions chooses in which version objects of each resource are written to the target, where there is a choice, and returns
// when to look again; zero if only after a change. Where the target is to be asked, it is asked beside. The error is for the log,
// and holds up nothing. The caller holds turn.
func (m *Manager) chooseVersions(managed *managed, published []sync.Resource) (again time.Duration, err error) {
	var chosen map[schema.GroupResource]string
	var several map[schema.GroupResource]bool
	var errs []error
	for _, resource := range published {
		if !resource.HasTargetVersions() || !m.mayBeSynced(managed, resource, published) {
			continue
		}
		if chosen == nil {
			chosen, several = map[schema.GroupResource]string{}, map[schema.GroupResource]bool{}
		}
		group := resource.OnTarget().GroupResource()
		several[group] = true
		choice, err := managed.chooseVersion(resource)
		errs = append(errs, err)
		chosen[resource.GroupResource()] = choice.Version
		if choice.Reason == versions.Newest || choice.Reason == versions.Unserved {
			again = versionsInterval
		}
		managed.forgetFit(group, choice.Version)
	}
	managed.lock.Lock()
	managed.versions = chosen
	managed.lock.Unlock()
	managed.several.Store(&several)
	return again, errors.Join(errs...)
}

// mayBeSynced tells whether anything asks for a resource, or did.
func (m *Manager) mayBeSynced(managed *managed, resource sync.Resource, published []sync.Resource) bool {
	return managed.isRecorded(resource.GroupResource()) || len(relationsTo(published, resource)) > 0 ||
		selects(managed.matcher, resource, []sync.TargetResource{resource.OnTarget()})
}

// chooseVersion chooses the version of one resource.
func (t *managed) chooseVersion(resource sync.Resource) (versions.Choice, error) {
	target, published := versions.Target{Before: t.recordedVersion(resource)}, resource.TargetVersions()
	if named := resource.NamedVersions(t.matcher); len(named) > 0 {
		return versions.Choose(published, named[0].Version, target), nil
	}
	connection := t.describe().Connection
	if !connection.Up() {
		return versions.Choose(published, "", target), nil
	}
	served, err := connection.VersionsSoon(resource.OnTarget().GroupResource())
	target.Served, target.Answered = served, err == nil
	if errors.Is(err, targets.ErrAsked) {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("%s stays as it is: %w", resource.GroupResource(), err)
	}
	return versions.Choose(published, "", target), err
}

// recordedVersion returns the version in which objects of a resource may have been written last; empty if none were.
func (t *managed) recordedVersion(resource sync.Resource) string {
	target := resource.OnTarget().GroupResource()
	record := t.recorded[target]
	if record.Own && target == resource.GroupResource() || slices.Contains(record.ConvertedFrom, resource.GroupResource()) {
		return record.Version
	}
	return ""
}

// forgetFit forgets whether objects fit, if that was found out about another version than is used now.
func (t *managed) forgetFit(target schema.GroupResource, version string) {
	record, ok := t.recorded[target]
	if !ok || record.Version == version {
		return
	}
	t.lock.Lock()
	defer t.lock.Unlock()
	fits := maps.Clone(t.fits)
	delete(fits, target)
	t.fits = fits
}

// inVersions returns published resources in the versions that were chosen for the target. The caller holds turn or lock.
func (t *managed) inVersions(published []sync.Resource) []sync.Resource {
	if len(t.versions) == 0 {
		return published
	}
	published = slices.Clone(published)
	for i, resource := range published {
		if version, ok := t.versions[resource.GroupResource()]; ok && slices.Contains(resource.TargetVersions(), version) {
			published[i] = resource.In(version)
		}
	}
	return published
}

// hasSeveral tells whether a resource of the target may be used in another version when its definition changes.
func (t *managed) hasSeveral(target schema.GroupResource) bool {
	several := t.several.Load()
	return several != nil && (*several)[target]
}
