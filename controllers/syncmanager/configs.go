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
	gosync "sync"

	"github.com/go-logr/logr"
	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/mailboxes/absence"
)

// configLister lists cached objects.
type configLister interface {
	List(resource schema.GroupVersionResource, mailbox logicalcluster.Name) (objects []*unstructured.Unstructured, known bool)
}

// absenceVerifier is the part of [mailboxes.Absences] that verifies that a config is gone.
type absenceVerifier interface {
	VerifyAbsence(mailbox logicalcluster.Name, candidate absence.Candidate)
	TakeVerifiedAbsence(mailbox logicalcluster.Name, candidate absence.Candidate) bool
}

// ConfigLimits bound the active configs of one mailbox, and so the cost of compiling them. The largest config
// that kcp stores is within the limits.
var ConfigLimits = mailboxes.Limits{Objects: 256, Bytes: 16 << 20}

// MaxMatcherSize bounds the matcher of a mailbox in bytes: configs within ConfigLimits can make one that is many times as large. It has
// room for some 100,000 names.
const MaxMatcherSize = 32 << 20

// configs are the active configs of one mailbox, by resource.
//
// Without its config, the hub removes objects from the target. So a config that vanished from the cache is only
// an absence candidate: it stays active until its absence is verified (rule 3 of the design).
type configs map[schema.GroupVersionResource][]*unstructured.Unstructured

// listConfigs returns the configs in the caches; known is false if the mailbox cannot be observed.
func listConfigs(cached configLister, mailbox logicalcluster.Name) (listed configs, known bool) {
	listed = configs{}
	for _, resource := range ConfigResources {
		objects, known := cached.List(resource, mailbox)
		if !known {
			return nil, false
		}
		listed[resource] = objects
	}
	return listed, true
}

// observe returns the configs that are active now, given the active ones before. With verify, it requests
// verification of the absence of each config that is missing from the cache. It returns false if the mailbox
// cannot be observed.
func (c configs) observe(cached configLister, absences absenceVerifier, mailbox logicalcluster.Name, verify bool) (next configs, ok bool) {
	observed, known := listConfigs(cached, mailbox)
	if !known {
		return nil, false
	}
	// A verified absence can be taken only once. So none is taken before all lists are known that are needed to use it.
	next = configs{}
	for resource, objects := range observed {
		candidate := func(key types.NamespacedName) absence.Candidate {
			return absence.Candidate{Resource: resource, Key: key, Missing: true}
		}
		active, unverified := retainUnverified(c[resource], objects, func(key types.NamespacedName) bool { return absences.TakeVerifiedAbsence(mailbox, candidate(key)) })
		next[resource] = active
		for _, key := range unverified {
			if verify {
				absences.VerifyAbsence(mailbox, candidate(key))
			}
		}
	}
	return next, true
}

// retainUnverified returns the configs that are active now: the observed ones that are not being deleted, and
// the former ones whose absence is not verified. unverified are the keys of the latter.
func retainUnverified(before, observed []*unstructured.Unstructured, isAbsenceVerified func(types.NamespacedName) bool) (active []*unstructured.Unstructured, unverified []types.NamespacedName) {
	found := map[types.NamespacedName]bool{}
	for _, config := range observed {
		found[keyOf(config)] = true
		if config.GetDeletionTimestamp() == nil {
			active = append(active, config)
		}
	}
	for _, config := range before {
		if key := keyOf(config); !found[key] && !isAbsenceVerified(key) {
			active, unverified = append(active, config), append(unverified, key)
		}
	}
	return active, unverified
}

// withinLimits returns the configs that are older than every config that is not cached whole because of [ConfigLimits]. all is true
// if there is no such config. Younger configs do not take effect even if they are cached, because the oldest config that selects an
// object decides its conversion.
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

// isOlder reports whether one precedes other in the order in which configs are compiled and cached.
func isOlder(one, other *unstructured.Unstructured) bool {
	return cmp.Or(
		one.GetCreationTimestamp().Compare(other.GetCreationTimestamp().Time),
		cmp.Compare(one.GetKind(), other.GetKind()), cmp.Compare(one.GetName(), other.GetName()),
	) < 0
}

func keyOf(object *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// configEvents records whether the configs of a mailbox may have changed since they were read.
type configEvents struct {
	// enqueue enqueues the SyncTarget.
	enqueue func()

	lock gosync.Mutex
	// stale is true when the configs must be read again. verifyMissing is true if the absence of missing ones must be verified.
	stale, verifyMissing bool
}

// OnEvent is called for each change of a config.
func (e *configEvents) OnEvent(event mailboxes.Event) {
	if event.Old != nil && event.New != nil && event.Old.GetUID() == event.New.GetUID() && event.Old.GetGeneration() == event.New.GetGeneration() &&
		mailboxes.ProjectionOf(event.Old) == mailboxes.ProjectionOf(event.New) {
		return // only the status changed, which the hub itself writes
	}
	e.markStale(true)
}

// OnAbsenceDecided is called when the absence of a config has been verified or refuted. If the config exists
// after all, its event is still to come, and until then a further verification would bring nothing new.
func (e *configEvents) OnAbsenceDecided(types.NamespacedName) { e.markStale(false) }

// OnReset is called after a relist of the mailbox, or a change of its binding.
func (e *configEvents) OnReset() { e.markStale(true) }

func (e *configEvents) markStale(verify bool) {
	e.lock.Lock()
	e.stale, e.verifyMissing = true, e.verifyMissing || verify
	e.lock.Unlock()
	e.enqueue()
}

// take returns whether the configs are stale, and whether the absence of missing ones must be verified, and resets both.
func (e *configEvents) take() (stale, verifyMissing bool) {
	e.lock.Lock()
	defer e.lock.Unlock()
	stale, verifyMissing = e.stale, e.verifyMissing
	e.stale, e.verifyMissing = false, false
	return stale, verifyMissing
}

// updateConfigs compiles the configs of the mailbox if they are stale, and reports whether they are known.
func (p *pass) updateConfigs() bool {
	m, state := p.manager, p.state
	stale, verify := state.configEvents.take()
	if !stale {
		return state.configsKnown
	}
	configs, ok := state.configs.observe(m.Mailboxes, m.Mailboxes.Absences, p.target.Mailbox, verify)
	if !ok {
		return state.configsKnown
	}
	state.configs = configs
	matcher := matcherOf(m.Log, configs)
	state.lock.Lock()
	before := state.configsKnown
	state.configsKnown, state.matcher = true, matcher
	state.lock.Unlock()
	m.updateCachePolicy(state)
	if !before {
		m.StateChanged.Publish(p.target.UID)
	}
	for _, controller := range state.controllers() {
		controller.SetMatcher(matcher)
	}
	return true
}

// matcherOf compiles the active configs.
func matcherOf(log logr.Logger, configs configs) *selection.Matcher {
	active, all := configs.withinLimits()
	matcher := selection.CompileWithin(MaxMatcherSize,
		decodeConfigs[edgev2alpha1.SyncerConfig](log, active[ConfigResources[0]]),
		decodeConfigs[edgev2alpha1.EdgeSyncConfig](log, active[ConfigResources[1]]),
	)
	if !all {
		return matcher.AsPartial()
	}
	return matcher
}

// decodeConfigs converts config objects into their Go type.
func decodeConfigs[T any](log logr.Logger, objects []*unstructured.Unstructured) (configs []*T) {
	for _, object := range objects {
		config := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, config); err != nil {
			// This cannot happen: the schema that kcp enforces is generated from this type.
			log.Error(err, "cannot read a config", "kind", object.GetKind(), "name", object.GetName())
			continue
		}
		configs = append(configs, config)
	}
	return configs
}
