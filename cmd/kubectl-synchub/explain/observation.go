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
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync/observe"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/mutation"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/controllers/plan/targetversion"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
	"github.com/synchub-dev/synchub/provider/inventories/parameters"
)

// compiled are the rules for the objects of one resource in one mailbox.
type compiled struct { //nolint:recvcheck // an observation has rules of its own, which compile completes in place
	// published is the PublishedResource in force. It is nil if there is none or it is unknown.
	published *synchubv1alpha1.PublishedResource
	// compileErr is the error of the PublishedResource.
	compileErr error
	matcher    *selection.Matcher
	// rules are how the hub syncs objects, as far as that is known.
	rules plan.Resource
	// version describes in which version the hub writes objects to the target, and why. It is empty if there is only one version.
	version string
}

// observation is what the hub's own code observes and plans, with the facts in place of the hub's caches.
type observation struct {
	*Facts
	compiled
	// planner has the resource.
	planner  plan.Planner
	observer *observe.Observer

	// selected is the selection of the object itself by configs, before the filter and without relations.
	selected   selection.Selection
	isSelected bool
	// source is the mark of an upsynced object, which names its original. noDownsync is why the hub never downsyncs the object.
	source     *ownership.Mark
	noDownsync plan.NoDownsyncReason

	ref    TargetRef
	refErr error
	// copied is set if the hub owns the target's object; else notOwnedErr names the owner. relation is the relation in the mark of the target's
	// object. It is empty for an object that was selected itself.
	copied      *plan.TargetObject
	notOwnedErr error
	relation    string

	// down has what the hub observes of the object and its copy, and planned is its decision. filterErr is set if the result of the filter is
	// unknown; then down and planned assume that the object passes.
	down      *plan.DownSnapshot
	planned   plan.DownPlan
	filterErr error
	// up is what the hub decides about the target's object, if the mailbox does not have the object and a config selects it for upsync.
	up *plan.UpPlan
	// goesDown is true if the hub downsyncs the object because of its own selection, and belongs if it does so for any reason, unless the
	// object's place on the target is selected for upsync.
	goesDown, belongs bool
}

func newObservation(facts *Facts) *observation { return compile(facts).observe(facts) }

// compile compiles the rules in the facts. It needs no facts about an object.
func compile(facts *Facts) compiled {
	c := compiled{matcher: selection.Compile(facts.Configs.Value.SyncerConfigs, facts.Configs.Value.EdgeSyncConfigs)}
	if c.published, c.rules, c.compileErr = publishedresource.CompileServed(facts.Published.Value, facts.Resource, facts.Served.Value); c.published == nil || c.compileErr != nil {
		// If no PublishedResource could be read, assume that configs select the resource.
		c.rules.RelatedOnly = c.published == nil && facts.Published.Err == nil
	}
	c.chooseVersion(facts)
	return c
}

// observe observes and plans for one object.
func (c compiled) observe(facts *Facts) *observation {
	o := c.locate(facts)
	if target := facts.Target.Value; target != nil {
		mark, err := plan.TargetMark(o.owner(), target)
		if o.notOwnedErr = err; err == nil {
			o.copied, o.relation = o.resource().NewTargetObject(o.owner(), o.mailbox(), target, mark), mark.Relation
		}
	}
	o.plan()
	return o
}

// locate observes one object as far as its location on the target needs.
func (c compiled) locate(facts *Facts) *observation {
	o := &observation{Facts: facts, compiled: c}
	resource := c.rules
	o.newObserver(resource)
	if object := facts.Object.Value; object != nil {
		o.source, o.noDownsync = o.observer.UpsyncMark(object), plan.WhyNotDownsynced(o.owner(), object)
		o.selected, o.isSelected = resource.Selects(o.matcher, object)
	}
	o.ref, o.refErr = o.targetRef()
	return o
}

func (o *observation) resource() *plan.Resource { return &o.planner.Resource }

func (o *observation) owner() ownership.Owner { return o.planner.Down.Owner }

func (o *observation) mailbox() logicalcluster.Name {
	if mailbox := o.SyncTarget.Status.Mailbox; mailbox != nil {
		return logicalcluster.Name(mailbox.Cluster)
	}
	return ""
}

// hub returns the UID of the hub. If the caller did not pass it, hub takes it from a mark that contains the UID of
// the SyncTarget.
func (o *observation) hub() types.UID {
	for _, object := range []*unstructured.Unstructured{o.Target.Value, o.Object.Value} {
		if o.Hub != "" || object == nil {
			continue
		}
		if mark, err := ownership.ParseMark(object.GetAnnotations()[ownership.MarkAnnotation]); err == nil && mark.SyncTarget == o.SyncTarget.UID {
			return mark.Hub
		}
	}
	return o.Hub
}

// chooseVersion finds the version in which the hub writes objects to the target, if there are several. The version
// that the hub used last shows which versions the target serves.
func (c *compiled) chooseVersion(facts *Facts) {
	all := c.rules.TargetVersions()
	if facts.Served.Value != nil && c.published == nil {
		all = facts.Served.Value.Versions
	}
	if len(all) < 2 {
		return
	}
	var by selection.NamedVersion
	if named := c.rules.NamedVersions(c.matcher); len(named) > 0 {
		by = named[0]
	}
	choice := targetversion.Choose(all, by.Version, targetversion.Target{Previous: cmp.Or(facts.syncedResource(c.rules.TargetAPI().GroupResource()).Versions...)})
	c.rules = c.rules.WithTargetVersion(choice.Version)
	switch choice.Reason {
	case targetversion.Named:
		c.version = fmt.Sprintf("%s, which %s of %s names", choice.Version, by.Field, by.Config)
	case targetversion.Newest:
		c.version = fmt.Sprintf("%s, since it does not serve %s", choice.Version, all[0])
	default:
		c.version = fmt.Sprintf("%s, which is preferred to %s", choice.Version, strings.Join(all[1:], ", "))
	}
}

// syncedResource returns what the hub reports about a resource of the target. It is zero if there is no report.
func (f *Facts) syncedResource(resource schema.GroupResource) (recorded edgev2alpha1.SyncedResource) {
	for _, one := range f.SyncTarget.Status.SyncedResources {
		if one.Group == resource.Group && one.Resource == resource.Resource {
			recorded = one
		}
	}
	return recorded
}

// newObserver prepares the hub's own code that observes and plans.
func (o *observation) newObserver(resource plan.Resource) {
	owner := ownership.Owner{Hub: o.hub(), SyncTarget: o.SyncTarget.UID, Sealer: ownership.InsecureSealer}
	// Only the hub has the key, so explain compares no hashes.
	o.planner = plan.NewPlanner(resource, owner, ownership.NewHasher([]byte("explain")), o.mailbox(), o.SyncTarget.Name)
	o.planner.HasContent = func(before *transform.Desired) bool {
		return len(transform.DifferingPaths(before.Object.Object, o.Target.Value.Object)) == 0
	}
	input := mutation.SyncTarget(o.SyncTarget.Name, o.SyncTarget.Labels, parameters.Of(o.SyncTarget))
	o.observer = observe.New(observe.Observer{
		Mailbox: mailboxReader{o.Facts}, Target: targetReader{o}, Planner: &o.planner,
		Registry: related.NewRegistry(),
		// Primaries are not read, so whether one still claims the object is as unknown as if its PublishedResource were gone.
		IsPublished:     func(string) bool { return false },
		SyncTargetInput: func() map[string]any { return input }, ReadsCopies: true,
	})
}

// targetRef returns the location of the object's copy on the target, or of the original if the object was upsynced.
func (o *observation) targetRef() (TargetRef, error) {
	own := o.resource().TargetAPI()
	switch object := o.Object.Value; {
	case o.source != nil:
		from := o.source.Source
		if resource := (schema.GroupResource{Group: from.Group, Resource: from.Resource}); own.GroupResource() != resource {
			own = plan.TargetAPI{GroupVersionResource: resource.WithVersion(cmp.Or(o.syncedResource(resource).Versions...))}
		}
		return TargetRef{own, types.NamespacedName{Namespace: from.Namespace, Name: from.Name}}, nil
	case object != nil:
		selected := plan.ObjectSelection{Selection: o.selected}
		selected.Policy = cmp.Or(selected.Policy, ownership.PolicyDelete)
		destination, _, err := o.observer.DestinationOf(o.matcher, object, selected, nil, &plan.Wants{})
		if destination.Key.Name != "" {
			// The hub may not use the place, which is known nevertheless.
			err = nil
		}
		return TargetRef{destination.API, destination.Key}, err
	case o.resource().GetRules().Naming != nil:
		return TargetRef{}, errors.New("its name there is made of the object in the mailbox, which is not there")
	default:
		return TargetRef{own, o.Key}, nil
	}
}

// plan observes the object and plans as the hub does. It takes an absence as verified, to find out what follows.
func (o *observation) plan() {
	s := &plan.Snapshot{Key: o.Key, Matcher: o.matcher, InMailbox: o.Object.Value, Readable: o.Object.Err == nil}
	o.down = o.observer.Down(s)
	if o.isSelected && errors.Is(o.down.Selection.Unresolved, observe.ErrNotReadable) {
		o.filterErr = o.down.Selection.Unresolved
		rules := *o.resource().Rules
		rules.Filter = nil
		o.resource().Rules = &rules
		o.down = o.observer.Down(s)
	}
	o.down.AbsenceVerified = true
	s.Down = o.down
	o.planned = o.planner.PlanDown(s)
	o.goesDown = o.down.State == plan.Selected || o.down.Err != nil
	o.belongs = o.goesDown && o.planned.Decision.Cause != plan.ExcludedByUpsync || s.InMailbox != nil && o.relation != ""
	if s.InMailbox != nil || o.Target.Value == nil || o.copied != nil || o.Configs.Err != nil {
		return
	}
	if s.Up = o.observer.Up(s, nil, o.ref.TargetAPI, o.Target.Value); s.Up.State == plan.Selected {
		up := o.planner.PlanUp(s)
		o.up = &up
	}
}
