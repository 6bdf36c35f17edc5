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
	gosync "sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/events"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/health"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/targets"
)

// ConfigSummary counts the objects of one config.
type ConfigSummary struct {
	// Selected counts the objects that the config selects. Of these, Synced are on the other side. Of the synced ones, Ready have gone down
	// and do their work on the target.
	Selected, Synced, Ready int64
	// Failed counts the objects that are listed in Failures with the reason. Of these, Undeleted are not selected: they are gone from the
	// mailbox, and their copies cannot be deleted from the target.
	Failed, Undeleted int64
	Failures          []ObjectFailure
	// Deferred are objects with fields that the hub does not ignore any more, but leaves to the target until the object
	// changes. They do not count as synced, because the hub does not know whether those fields differ.
	Deferred []DeferredObject
	// Overruled are objects to which an older config gives another name.
	Overruled []ObjectName
	// ExcludedByUpsync are objects that the config selects for downsync, and another entry for upsync, which wins.
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
	// GroupResource and Kind are those on the target.
	GroupResource schema.GroupResource
	Kind          string
	// Reason is [plan.ReasonNotServed], [plan.ReasonForbidden] or a reason of package policy; Message is for people.
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
			Reason: failure.Failure.Reason, Message: events.Truncate(failure.Failure.Message),
		})
	}
	return first
}

// knownStates are facts about objects that the caches do not show.
type knownStates struct {
	failures map[types.NamespacedName]Failure
	deferred map[types.NamespacedName][]string
}

// SummarizeConfigs adds this controller's objects to the summaries of the configs that select them.
func (c *Controller) SummarizeConfigs(summaries map[string]*ConfigSummary) {
	matcher := c.matcher.Load()
	known := knownStates{c.states.failures(), c.states.deferredFields()}
	sources, _ := c.Mailboxes.List(c.Resource.GroupVersionResource, c.Mailbox)
	for _, source := range sources {
		if selected, ok := c.observer.SelectDown(matcher, source); ok {
			c.countDown(summaries, source, selected, known)
		} else if _, failed := known.failures[keyOf(source)]; failed && len(c.states.upsyncedRefs(keyOf(source))) == 0 {
			c.countFormerlyUpsynced(summaries, matcher, source, known)
		}
	}
	for _, key := range c.states.upsyncedKeys() {
		c.countUp(summaries, matcher, key, known)
	}
	for key, failure := range known.failures {
		c.countUndeleted(summaries, matcher, key, failure)
	}
	c.droppedFields.addTo(summaries, c.Resource.GroupResource())
}

func (c *Controller) countDown(summaries map[string]*ConfigSummary, source *unstructured.Unstructured, selected plan.ObjectSelection, known knownStates) {
	key := keyOf(source)
	name := ObjectName{Resource: c.Resource.GroupResource(), Key: key}
	copies := c.observeCopiesOf(key)
	if len(copies) == 0 && mailboxes.ProjectionOf(source) == mailboxes.FullObject && c.isExcludedByUpsync(source, selected) {
		for _, config := range selected.Configs {
			summary := summaryOf(summaries, config)
			summary.ExcludedByUpsync = append(summary.ExcludedByUpsync, name)
		}
		return
	}
	for _, config := range selected.Overruled {
		summary := summaryOf(summaries, config)
		summary.Overruled = append(summary.Overruled, name)
	}
	uid := source.GetUID()
	state := syncState{}
	if at := slices.IndexFunc(copies, func(copied plan.Copy) bool { return copied.Observed.Mark.Source.UID == uid }); at >= 0 {
		state = syncState{synced: true, ready: copies[at].Observed.Health.Status == health.Current}
	} else if c.states.isFinished(key) {
		// The last status is all that is left of the copy.
		state = syncState{synced: true, ready: c.Resource.GetRules().Health.Of(source).Status == health.Current}
	}
	c.addToSummaries(summaries, selected.Selection, key, state, known)
}

// isExcludedByUpsync reports whether an object stays in the mailbox because upsync selects its name on the target.
func (c *Controller) isExcludedByUpsync(source *unstructured.Unstructured, selected plan.ObjectSelection) bool {
	matcher := c.matcher.Load()
	destination, _, err := c.observer.DestinationOf(matcher, source, selected, nil)
	return err == nil && c.Resource.IsExcludedByUpsync(matcher, source, destination.API, destination.Key)
}

func (c *Controller) countUp(summaries map[string]*ConfigSummary, matcher *selection.Matcher, key types.NamespacedName, known knownStates) {
	inMailbox, _ := c.mailboxObject(key)
	target, object := c.upsyncSource(key, c.observer.UpsyncMark(inMailbox))
	if object == nil {
		return
	}
	selected, ok := c.observer.SelectUp(matcher, target.TargetAPI, object)
	if !ok {
		return
	}
	for _, config := range selected.Overruled {
		summary := summaryOf(summaries, config)
		summary.Overruled = append(summary.Overruled, ObjectName{Resource: c.Resource.GroupResource(), Key: key})
	}
	c.addToSummaries(summaries, selected.Selection, key, syncState{synced: c.isUpsynced(inMailbox)}, known)
}

// countFormerlyUpsynced counts an object that was upsynced before, and is denied now.
func (c *Controller) countFormerlyUpsynced(summaries map[string]*ConfigSummary, matcher *selection.Matcher, inMailbox *unstructured.Unstructured, known knownStates) {
	mark, err := plan.MailboxMark(c.Owner, inMailbox)
	if err != nil {
		return
	}
	if selected, ok, _ := c.observer.SelectsUpsynced(matcher, c.targetResourceFor(upsyncSourceRef(mark).Resource).api(), mark, inMailbox); ok {
		c.addToSummaries(summaries, selected, keyOf(inMailbox), syncState{}, known)
	}
}

// countUndeleted counts an object that is gone from the mailbox, and whose copies stay because of the failure. Its labels are gone with it, so
// it counts for all configs with entries that name it.
func (c *Controller) countUndeleted(summaries map[string]*ConfigSummary, matcher *selection.Matcher, key types.NamespacedName, failure Failure) {
	source, known := c.mailboxObject(key)
	if !known || source != nil || len(c.states.upsyncedRefs(key)) > 0 {
		return
	}
	for _, config := range matcher.ConfigsNaming(c.observer.SelectionObjectByName(key)) {
		summary := summaryOf(summaries, config)
		summary.Failed++
		summary.Undeleted++
		summary.Failures = append(summary.Failures, ObjectFailure{Resource: c.Resource, Key: key, Failure: failure})
	}
}

// syncState is the state of one object: synced on both sides, and ready if it does its work on the target.
type syncState struct{ synced, ready bool }

func (c *Controller) addToSummaries(summaries map[string]*ConfigSummary, selected selection.Selection, key types.NamespacedName, state syncState, known knownStates) {
	failure, failed := known.failures[key]
	deferred := known.deferred[key]
	if failure.Reason == plan.ReasonMailboxLimitExceeded {
		// The mailbox's usage and limits change without an event for this object.
		inMailbox, _ := c.Mailboxes.Get(c.Resource.GroupVersionResource, c.Mailbox, key)
		failure = newFailure(c.Mailboxes.ObjectLimitError(c.Resource.GroupVersionResource, c.Mailbox, inMailbox))
	}
	for _, config := range selected.Configs {
		summary := summaryOf(summaries, config)
		summary.Selected++
		switch {
		case failed:
			summary.Failed++
			summary.Failures = append(summary.Failures, ObjectFailure{Resource: c.Resource, Key: key, Failure: failure})
		case state.synced && len(deferred) > 0:
			summary.Deferred = append(summary.Deferred, DeferredObject{ObjectName{c.Resource.GroupResource(), key}, deferred})
		case state.synced:
			summary.Synced++
			if state.ready {
				summary.Ready++
			}
		}
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

// Summary counts the objects of one or more controllers.
type Summary struct {
	// Synced objects are in sync on both sides, Failed are not. Objects with deferred fields are neither.
	Synced, Failed int
	// Former objects stay on the target though their source is gone: with its mailbox, or before somebody restored them from a backup.
	Former int
	// PendingSince is when the hub observed the oldest change that has not reached the other side; zero if there is none.
	PendingSince time.Time
	// Failures are the failed objects, in no order.
	Failures []ObjectFailure
	// HeldRemovals and HeldOverwrites count the failed objects whose copies would be removed, or overwritten, if kcp had not gone back to
	// an earlier state.
	HeldRemovals, HeldOverwrites int
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

// Summary counts the objects that were downsynced or upsynced.
func (c *Controller) Summary() Summary {
	sum := Summary{Synced: c.CopiedObjectCount()}
	inMailbox, _ := c.Mailboxes.List(c.Resource.GroupVersionResource, c.Mailbox)
	failures := c.states.failures()
	for _, object := range inMailbox {
		if _, failed := failures[keyOf(object)]; c.isUpsynced(object) && !failed {
			sum.Synced++
		}
	}
	for key, failure := range failures {
		sum.Failed++
		sum.Failures = append(sum.Failures, ObjectFailure{Resource: c.Resource, Key: key, Failure: failure})
		switch {
		case failure.Reason != plan.ReasonStoreWentBack:
		case failure.Removal:
			sum.HeldRemovals++
		default:
			sum.HeldOverwrites++
		}
		sum.Synced -= copiedAPIs(c.observeCopiesOf(key))
	}
	for key := range c.states.deferredFields() {
		if _, failed := failures[key]; !failed {
			// The hub does not know whether the deferred fields differ.
			sum.Synced -= copiedAPIs(c.observeCopiesOf(key))
		}
	}
	for _, key := range c.states.formerKeys() {
		copies := c.observeCopiesOf(key)
		sum.Former += len(copies)
		sum.Synced -= copiedAPIs(copies)
	}
	_, sum.PendingSince = c.states.countPending()
	return sum
}

// copiedAPIs returns how often [Controller.CopiedObjectCount] counts a mailbox object with these copies: once for each target API.
func copiedAPIs(copies []plan.Copy) int {
	apis := map[schema.GroupResource]struct{}{}
	for _, existing := range copies {
		apis[existing.API.GroupResource()] = struct{}{}
	}
	return len(apis)
}

// QueueLength returns the number of keys that wait for a worker.
func (c *Controller) QueueLength() int {
	c.lock.Lock()
	queue := c.queue
	c.lock.Unlock()
	if queue == nil {
		return 0
	}
	return queue.Len()
}

// IsEmpty reports whether the hub knows that neither side holds an object that it synced, and no pass is under way. A pass
// that begins after [Controller.SetMatcher] selects by the new matcher, so a controller that is empty under a matcher that
// selects nothing stays empty.
func (c *Controller) IsEmpty() bool {
	if !c.HasSynced() || c.activeReconciles.Load() > 0 || c.CopiedObjectCount() > 0 {
		return false
	}
	_, known := c.Mailboxes.List(c.Resource.GroupVersionResource, c.Mailbox)
	return known && !c.mailboxHoldsObjects()
}

// mailboxHoldsObjects reports whether the mailbox has objects that are upsynced, or that wait for the target.
func (c *Controller) mailboxHoldsObjects() bool {
	inMailbox, _ := c.Mailboxes.List(c.Resource.GroupVersionResource, c.Mailbox)
	return slices.ContainsFunc(inMailbox, func(object *unstructured.Unstructured) bool { return c.isUpsynced(object) || HasFinalizer(object) })
}

// CopiedObjectCount returns how many mailbox objects have a copy, counted once for each target API.
func (c *Controller) CopiedObjectCount() int {
	count := 0
	for _, target := range c.targetResources {
		count += c.countOf(target.GroupResource())
	}
	return count
}

// IsEmptyFor reports the same as [Controller.IsEmpty] for one target API.
func (c *Controller) IsEmptyFor(resource schema.GroupResource) bool {
	target := c.targetResourceFor(resource)
	if target == nil || !target.cache.HasSynced() || c.activeReconciles.Load() > 0 || c.countOf(resource) > 0 {
		return false
	}
	inMailbox, known := c.Mailboxes.List(c.Resource.GroupVersionResource, c.Mailbox)
	return known && !slices.ContainsFunc(inMailbox, func(object *unstructured.Unstructured) bool {
		mark, err := plan.MailboxMark(c.Owner, object)
		return err == nil && upsyncSourceRef(mark).Resource == resource
	})
}

// IsServed reports whether the target serves the resource itself, as far as the hub knows.
func (c *Controller) IsServed() bool {
	return c.targetResources[0].cache.Availability().Reason != targets.ReasonNotServed
}

// countOf returns how many mailbox objects have a copy of this resource on the target.
func (c *Controller) countOf(resource schema.GroupResource) int {
	target := c.targetResourceFor(resource)
	if target == nil {
		return 0
	}
	count := target.cache.CountIndexValues(bySource)
	if len(target.cache.ByIndex(bySource, unverifiedIndexValue)) > 0 {
		count--
	}
	return count
}

// unverifiedCount returns the number of target objects with the hub's label whose mark does not verify.
func (c *Controller) unverifiedCount() int {
	count := 0
	for _, target := range c.targetResources {
		count += len(target.cache.ByIndex(bySource, unverifiedIndexValue))
	}
	return count
}

// maxDroppedFields bounds the fields that are reported for each config.
const maxDroppedFields = 16

// droppedFields are fields of target objects that the mailbox's schema does not have, by the configs that select the objects.
// A field stays listed until the controller ends.
type droppedFields struct {
	lock     gosync.Mutex
	byConfig map[string][]string
}

// recordDroppedFields notes fields that the mailbox drops, and reports new ones.
func (c *Controller) recordPrunedPaths(configs, paths []string) {
	if len(paths) > 0 && c.droppedFields.add(configs, paths) {
		c.OnChange()
	}
}

func (d *droppedFields) add(configs, paths []string) (changed bool) {
	d.lock.Lock()
	defer d.lock.Unlock()
	for _, config := range configs {
		for _, path := range paths {
			known := d.byConfig[config]
			at, found := slices.BinarySearch(known, path)
			if found || len(known) >= maxDroppedFields {
				continue
			}
			if d.byConfig == nil {
				d.byConfig = map[string][]string{}
			}
			d.byConfig[config], changed = slices.Insert(known, at, path), true
		}
	}
	return changed
}

func (d *droppedFields) addTo(summaries map[string]*ConfigSummary, resource schema.GroupResource) {
	d.lock.Lock()
	defer d.lock.Unlock()
	for config, paths := range d.byConfig {
		summary := summaryOf(summaries, config)
		for _, path := range paths {
			summary.Dropped = append(summary.Dropped, resource.String()+" "+path)
		}
		slices.Sort(summary.Dropped)
	}
}
