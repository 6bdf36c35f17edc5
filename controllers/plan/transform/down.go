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

package transform

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/plan/conversion"
	"github.com/synchub-dev/synchub/controllers/plan/fieldpath"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

// aggregatedRulesField is ignored in a ClusterRole that aggregates other ClusterRoles.
var aggregatedRulesField = IgnoredField{Path: fieldpath.Path{}.Child(aggregatedRules)}

// Down transforms mailbox objects of one resource into objects of one target.
type Down struct {
	// Owner is the owner in the marks.
	Owner ownership.Owner
	// Mailbox is the logical cluster of the sources, and SyncTarget the name of the target's SyncTarget.
	Mailbox, SyncTarget string
	// Resource is the resource of the sources.
	Resource schema.GroupResource
	// Namespaced is false if the sources are cluster-scoped.
	Namespaced bool
	// Hasher computes the hash in the mark.
	Hasher ownership.Hasher
}

// Name returns the name and kind of the object on the target. The error is a [*InvalidObjectError] if the name is invalid.
func (d Down) Name(source *unstructured.Unstructured, spec SyncSpec) (conversion.Name, error) {
	name := conversionName(source)
	switch {
	case spec.Conversion != nil:
		converted, ok := spec.Conversion.Down(name)
		if !ok {
			return conversion.Name{}, fmt.Errorf("the conversion from %v to %v does not cover %v", spec.Conversion.Upstream, spec.Conversion.Downstream, name)
		}
		name = converted
		if spec.Naming != nil {
			source = withName(source, name)
		}
	case spec.Kind.Kind != "":
		name.GVK = spec.Kind
	}
	name.GVK.Version = cmp.Or(spec.Version, name.GVK.Version)
	return spec.applyNaming(source, d.Mailbox, d.SyncTarget, name, d.Namespaced)
}

// withName returns the object with another name and kind, for templates.
func withName(object *unstructured.Unstructured, name conversion.Name) *unstructured.Unstructured {
	metadata, _ := object.Object["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	metadata["name"] = name.Name
	content := maps.Clone(object.Object)
	content["metadata"] = metadata
	renamed := &unstructured.Unstructured{Object: content}
	renamed.SetGroupVersionKind(name.GVK)
	return renamed
}

// Desired returns the object that the target must have. The error is a [*TooLargeError], a [*InvalidObjectError] or a
// [*mutation.Error] if the object cannot be synced.
func (d Down) Desired(source *unstructured.Unstructured, spec SyncSpec) (*Desired, error) {
	if source.GetAnnotations()[ownership.OverwriteAnnotation] == "false" {
		spec.Policy = ownership.PolicyCreateOnly
	}
	name, err := d.Name(source, spec)
	if err != nil {
		return nil, err
	}
	content, err := spec.contentOf(source, name, shouldDownsyncAnnotation)
	if err != nil {
		return nil, err
	}
	identity := d.identityOf(source)
	workspaceMarkOf(source, identity).setOn(content)
	// The kind may depend on the target's discovery. As another kind, the object would leak the mailbox's token.
	if isTokenSecret(source.Object) && !isTokenSecret(content) {
		return nil, &InvalidObjectError{
			Field:   "type",
			Message: "the token of a ServiceAccount is of use in its own mailbox only, and on the target this Secret would be no Secret of that type: leave it out",
		}
	}
	if err := adaptForOtherCluster(content); err != nil {
		return nil, err
	}
	first := removeIgnored(content, spec.IgnoredFields)
	mark := ownership.Mark{
		Mailbox:  d.Mailbox,
		Source:   sourceOf(source, d.Resource),
		Policy:   spec.Policy,
		Relation: spec.Relation,
		Ignored:  formatIgnored(spec.IgnoredFields),

		SourceVersion: parseVersion(source.GetResourceVersion()),
	}
	desired, err := seal(content, mark, d.Owner, d.Hasher)
	if err != nil {
		return nil, err
	}
	desired.IgnoredFields, desired.ReportsDrift = spec.IgnoredFields, spec.ReportsDrift
	if IsAggregated(content) {
		// The hub may still own the rules of a copy, from a time before the source aggregated other roles.
		desired.IgnoredFields = append(slices.Clip(desired.IgnoredFields), aggregatedRulesField)
	}
	desired.forCreate = first
	desired.Identity = identity
	desired.setIdentity()
	return desired, nil
}

// identityOf returns the workload workspace and object that a placement made a mailbox object from; zero if a user created it.
func (d Down) identityOf(source *unstructured.Unstructured) ownership.Identity {
	placed, err := d.Owner.ForPlacements().VerifyUp(source.GetAnnotations(), SelfOf(source))
	if err != nil {
		return ownership.Identity{}
	}
	return ownership.Identity{Workspace: placed.Mailbox, Object: placed.Source.UID}
}

// RunOf returns the run of a mailbox object that runs to completion; ok is false for other kinds.
func (d Down) RunOf(source *unstructured.Unstructured) (run ownership.Run, ok bool) {
	if !runsToCompletion[source.GroupVersionKind().GroupKind()] {
		return ownership.Run{}, false
	}
	spec, _ := source.Object["spec"].(map[string]any)
	return ownership.Run{Source: source.GetUID(), Object: d.identityOf(source).Object, Spec: spec}, true
}

// DesiredForMark returns the desired object for a copy with this mark. The mark may be from a time when other fields were
// ignored. As long as the source does not change, the copy does not change: a change of the list of ignored fields changes no
// value. unchanged reports whether the copy has the content of the object that was desired before. It is called only if the
// result depends on it.
func (d Down) DesiredForMark(source *unstructured.Unstructured, spec SyncSpec, mark ownership.Mark, unchanged func(before *Desired) bool) (*Desired, error) {
	desired, err := d.Desired(source, spec)
	if err != nil {
		return nil, err
	}
	asBefore := false
	if mark.Ignored != desired.Mark.Ignored {
		if desired, asBefore, err = d.desiredAsBefore(source, spec, mark, desired, unchanged); err != nil {
			return nil, err
		}
	}
	if mark.Adopted {
		desired = desired.AsAdopted()
	}
	if asBefore {
		desired = desired.AsMarked(mark)
	}
	return desired, nil
}

// desiredAsBefore returns the desired object of a copy that was written when other fields were ignored. asBefore is false if the
// current list applies.
func (d Down) desiredAsBefore(source *unstructured.Unstructured, spec SyncSpec, mark ownership.Mark, desired *Desired, unchanged func(*Desired) bool) (_ *Desired, asBefore bool, _ error) {
	former, ok := IgnoredAtMark(mark)
	if !ok {
		return desired, false, nil
	}
	now := spec.IgnoredFields
	spec.IgnoredFields = former
	before, err := d.Desired(source, spec)
	if err != nil || !unchanged(before) {
		return desired, false, err
	}
	spec.IgnoredFields = UnionIgnored(now, former)
	both, err := d.Desired(source, spec)
	if err != nil {
		return nil, false, err
	}
	for _, field := range spec.IgnoredFields[len(now):] {
		if len(field.Path.Values(desired.Object.Object)) > 0 {
			both.DeferredFields = append(both.DeferredFields, field)
		}
	}
	return both, true, nil
}

// parseVersion returns a resourceVersion as a number; zero if it is not a number.
func parseVersion(resourceVersion string) uint64 {
	version, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return version
}
