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

package sync

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Tally counts the objects of one config.
type Tally struct {
	// Selected objects are those the config selects in the mailbox; of these, Synced are on the target and Failed are
	// not in step for a reason given in Failures.
	Selected, Synced, Failed int64
	Failures                 []ObjectFailure
	// Overruled are objects that the config selects under other names than an older config, which wins.
	Overruled []ObjectName
	// LeftOut are objects that an entry for going down selects but that do not go, because one for coming up selects
	// them as well.
	LeftOut []ObjectName
}

// ObjectName names an object of a mailbox.
type ObjectName struct {
	Resource schema.GroupResource
	Key      types.NamespacedName
}

// Unavailable is a resource that cannot be synced with the target now.
type Unavailable struct {
	// Target names the resource on the target, of which Kind is the kind.
	Target schema.GroupResource
	Kind   string
	// Reason is [ReasonNotServed] or [ReasonForbidden]; Message is what the target says.
	Reason, Message string
}

// Unavailable returns what of the controller's resource the target does not serve, or not to the hub.
func (c *Controller) Unavailable() []Unavailable { return nil }

// ObjectFailure is an object that is not in step.
type ObjectFailure struct {
	Resource Resource
	Key      types.NamespacedName
	Failure  Failure
}

// AddTo counts this controller's objects into the tallies of the configs that select them.
func (c *Controller) AddTo(tallies map[string]*Tally) {
	matcher := c.matcher.Load()
	failures := c.failures.snapshot()
	sources, _ := c.Mailboxes.List(c.Resource.GroupVersionResource, c.Mailbox)
	for _, source := range sources {
		object := c.describe(source)
		selected, ok := matcher.Match(object)
		if !ok {
			continue
		}
		key := types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
		failure, failed := failures[key]
		_, observed := c.observe(key)
		for _, config := range selected.Configs {
			tally, ok := tallies[config]
			if !ok {
				tally = &Tally{}
				tallies[config] = tally
			}
			tally.Selected++
			switch {
			case failed:
				tally.Failed++
				tally.Failures = append(tally.Failures, ObjectFailure{Resource: c.Resource, Key: key, Failure: failure})
			case observed != nil && observed.Mark.Source.UID == source.GetUID():
				tally.Synced++
			}
		}
	}
}

// Empty tells whether the target is known to hold no object of ours and none is being made. A reconcile that begins after
// [Controller.SetMatcher] selects by the new matcher, so what is empty under a matcher that selects nothing stays empty.
func (c *Controller) Empty() bool {
	return c.cache.Synced() && c.active.Load() == 0 && c.cache.Len() == 0
}

// Len returns how many objects of ours the target holds.
func (c *Controller) Len() int { return c.cache.Len() }
