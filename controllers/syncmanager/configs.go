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
	"cmp"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// configSource is what configs are seen through: the [mailboxes.Mailboxes].
type configSource interface {
	List(resource schema.GroupVersionResource, mailbox logicalcluster.Name) (objects []*unstructured.Unstructured, known bool)
	VerifyAbsence(mailbox logicalcluster.Name, suspect mailboxes.AbsenceCandidate)
	TakeVerifiedAbsence(mailbox logicalcluster.Name, suspect mailboxes.AbsenceCandidate) bool
}

var _ configSource = &mailboxes.Mailboxes{}

// ConfigLimits bound the configs of one mailbox that are in force, and with that what it takes to compile them. The largest
// config that kcp stores is within them.
var ConfigLimits = mailboxes.Limits{Objects: 256, Bytes: 16 << 20}

// configs are those in force in one mailbox, by resource.
//
// Without a config all it selects is removed from the target, so one that is not seen any more is only suspected to be
// deleted, and stays in force until that is proven (rule 3 of the design).
type configs map[schema.GroupVersionResource][]*unstructured.Unstructured

// observe returns the configs that are in force now, given those before, and with ask has it proven that what is missing is
// gone. It returns false if the mailbox cannot be seen.
func (c configs) observe(view configSource, mailbox logicalcluster.Name, ask bool) (next configs, ok bool) {
	seen := configs{}
	for _, resource := range ConfigResources {
		objects, known := view.List(resource, mailbox)
		if !known {
			return nil, false
		}
		seen[resource] = objects
	}
	// A proof serves once, so none is taken before all that is needed to use it is known.
	next = configs{}
	for resource, objects := range seen {
		candidate := func(key types.NamespacedName) mailboxes.AbsenceCandidate {
			return mailboxes.AbsenceCandidate{Resource: resource, Key: key, Missing: true}
		}
		inForce, unverified := retainUnverified(c[resource], objects, func(key types.NamespacedName) bool { return view.TakeVerifiedAbsence(mailbox, candidate(key)) })
		next[resource] = inForce
		for _, key := range unverified {
			if ask {
				view.VerifyAbsence(mailbox, candidate(key))
			}
		}
	}
	return next, true
}

// retainUnverified returns the configs that are in force now: of those seen all that are not being deleted, and of those before,
// where not seen any more, the suspects, which are not proven to be gone.
func retainUnverified(before, seen []*unstructured.Unstructured, proven func(types.NamespacedName) bool) (inForce []*unstructured.Unstructured, unverified []types.NamespacedName) {
	found := map[types.NamespacedName]bool{}
	for _, config := range seen {
		found[keyOf(config)] = true
		if config.GetDeletionTimestamp() == nil {
			inForce = append(inForce, config)
		}
	}
	for _, config := range before {
		if key := keyOf(config); !found[key] && !proven(key) {
			inForce, unverified = append(inForce, config), append(unverified, key)
		}
	}
	return inForce, unverified
}

// withinLimits returns the configs that are older than all that are not held because of [ConfigLimits], and whether that is all.
// A younger one waits, even if it is held: which conversion of an object counts is for the oldest config to say.
func (c configs) withinLimits() (older configs, all bool) {
	var beyond *unstructured.Unstructured
	for _, objects := range c {
		for _, config := range objects {
			if mailboxes.ProjectionOf(config) != mailboxes.FullObject && (beyond == nil || isOlder(config, beyond)) {
				beyond = config
			}
		}
	}
	if beyond == nil {
		return c, true
	}
	older = configs{}
	for resource, objects := range c {
		for _, config := range objects {
			if isOlder(config, beyond) {
				older[resource] = append(older[resource], config)
			}
		}
	}
	return older, false
}

// isOlder orders configs as they are compiled and held.
func isOlder(one, other *unstructured.Unstructured) bool {
	return cmp.Or(
		one.GetCreationTimestamp().Compare(other.GetCreationTimestamp().Time),
		cmp.Compare(one.GetKind(), other.GetKind()), cmp.Compare(one.GetName(), other.GetName()),
	) < 0
}

func keyOf(object *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// configSubscriber makes the manager compile the configs of a mailbox anew when something happened to them.
type configSubscriber struct {
	manager    *Manager
	state      *targetState
	syncTarget types.UID
}

// OnEvent is called for each change of a config.
func (s *configSubscriber) OnEvent(event mailboxes.Event) {
	if event.Old != nil && event.New != nil && event.Old.GetUID() == event.New.GetUID() && event.Old.GetGeneration() == event.New.GetGeneration() &&
		mailboxes.ProjectionOf(event.Old) == mailboxes.ProjectionOf(event.New) {
		return // only the status changed, which we write ourselves
	}
	s.markStale(true)
}

// OnAbsenceDecided is called when a suspicion about a config has been decided. Where it turned out to be there after all, its
// event is still to come, and until then nothing is gained by asking again.
func (s *configSubscriber) OnAbsenceDecided(types.NamespacedName) { s.markStale(false) }

// OnReset is called when the mailbox's cache was filled anew or its binding changed.
func (s *configSubscriber) OnReset() { s.markStale(true) }

func (s *configSubscriber) markStale(ask bool) {
	s.manager.lock.Lock()
	s.state.configsStale = true
	s.state.verifyMissing = s.state.verifyMissing || ask
	s.manager.lock.Unlock()
	s.manager.enqueue(s.syncTarget)
}
