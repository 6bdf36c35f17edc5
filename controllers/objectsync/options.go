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

	"github.com/go-logr/logr"
	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/utils/clock"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/controllers/tenants"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/provider/topic"
	"github.com/synchub-dev/synchub/provider/tracing"
)

// Options configure a [Controller].
type Options struct {
	Resource plan.Resource
	// TargetAPIs are the APIs that mailbox objects can have on the target: the resource itself first, then the results of
	// conversions, both current and former ones.
	TargetAPIs []plan.TargetAPI
	// UnresolvedKinds are the kinds that conversions produce, but that the target does not serve or the hub denies.
	UnresolvedKinds []UnavailableResource
	// Mailbox is the logical cluster of the mailbox.
	Mailbox    logicalcluster.Name
	Mailboxes  *mailboxes.Mailboxes
	Connection *targets.Connection
	Owner      ownership.Owner
	Hasher     ownership.Hasher
	// SyncTarget is the name of the SyncTarget.
	SyncTarget string
	// SyncTargetInput returns the SyncTarget's fields as mutations read them (see [mutation.SyncTarget]). Nil means its name only.
	SyncTargetInput func() map[string]any
	// Pruner drops the fields that the mailbox's schema does not have; nil if the hub does not know the schema.
	Pruner *transform.Pruner
	// Registry contains the related objects; all controllers of the SyncTarget share it. Relations are the relations that sync
	// objects of this resource with their primaries.
	Registry  *related.Registry
	Relations []*related.Relation
	// RequestCompleteness asks the controllers of all primaries to finish their initial sync, unless answered returns true first
	// (see [RequestCompleteness]).
	RequestCompleteness func(answered func() bool)
	// RequeueRelated enqueues every object that may be related to objects of this resource.
	RequeueRelated func()
	// Cordoned reports whether nothing new may be created on the target. Nil means never.
	Cordoned func() bool
	// Held reports whether removing and overwriting copies is forbidden, because kcp went back to an earlier state. Lost returns
	// the highest resourceVersion that kcp lost. Nil means that kcp never went back.
	Held func() bool
	Lost func() uint64
	// Adoption returns the SyncTarget's adoption policy, which counts beside the PublishedResource's policy. Nil means none.
	Adoption func() synchubv1alpha1.AdoptionPolicy
	// Tenants returns the tenants of the target, nil if there are none. They decide who writes an object on the target. A nil function
	// means that there are never any.
	Tenants func() *tenants.Controller
	// NamespacePolicy returns the policy for namespaces of the target. Nil allows all.
	NamespacePolicy func() *policy.NamespacePolicy
	// IsPublished reports whether a PublishedResource of this name is in force.
	IsPublished func(publishedResource string) bool
	// WaitFor are channels that close when the controllers of earlier waves have tried all their objects once.
	WaitFor []<-chan struct{}
	// OnChange is called when a summary may have changed: after a write and when the caches show it, when the failure of an object
	// changes, when an object begins or ceases to be held back, and when the target begins or ceases to serve the resource. It must
	// not block.
	OnChange func()
	// SyncStatusChanged carries the marked mailbox objects whose [Controller.SyncStatus] changed; nil carries nothing.
	SyncStatusChanged *topic.Topic[ObjectRef]
	// AggregateMetrics makes the controller share one series per metric with the other controllers of its SyncTarget, without the
	// resource label's value.
	AggregateMetrics bool
	// Journal logs removed objects and failures; nil logs none.
	Journal *status.Journal
	// Tracer records traces of passes; nil records none.
	Tracer *tracing.Tracer
	Clock  clock.Clock
	Log    logr.Logger
}

// needsWholeTargetObjects reports whether a rule reads values of target objects, and not only their metadata and status.
func needsWholeTargetObjects(options *Options) bool {
	rules := options.Resource.GetRules()
	if rules.Down.UsesOther() || rules.Up != nil && options.Resource.StatusReturn {
		return true
	}
	return slices.ContainsFunc(rules.Related, func(r *related.Relation) bool { return r.Origin == synchubv1alpha1.RelatedOriginTarget }) ||
		slices.ContainsFunc(options.Relations, func(r *related.Relation) bool { return r.Down.UsesOther() || r.Up != nil })
}

// readsSyncTarget reports whether a mutation of objects of the resource reads the SyncTarget.
func readsSyncTarget(options *Options) bool {
	rules := options.Resource.GetRules()
	return rules.Down.UsesSyncTarget() || rules.Up.UsesSyncTarget() ||
		slices.ContainsFunc(options.Relations, func(r *related.Relation) bool { return r.Down.UsesSyncTarget() || r.Up.UsesSyncTarget() })
}

// Selector returns the label selector for an owner's objects on a target.
func Selector(owner ownership.Owner) string {
	return ownership.OwnerLabel + "=" + owner.LabelValue()
}

// readsNamespaceLabels reports whether a rule reads the labels of namespaces of the mailbox.
func (c *Controller) readsNamespaceLabels() bool {
	return c.Resource.GetRules().Filter.UsesNamespaceLabels() || c.selectsNamespaces()
}

// selectsNamespaces reports whether a relation selects namespaces by their labels.
func (c *Controller) selectsNamespaces() bool {
	return slices.ContainsFunc(c.Relations, (*related.Relation).SelectsNamespaces)
}
