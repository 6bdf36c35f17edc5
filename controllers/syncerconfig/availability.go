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

package syncerconfig

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/conversion"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/controllers/syncmanager/crd"
	"github.com/synchub-dev/synchub/controllers/syncmanager/schemacheck"
)

// UnavailableEntry is an entry of a config that cannot work now. It works as soon as the missing API or permission is
// there.
type UnavailableEntry struct {
	// Field is the path of the entry in the config, and Resource is the name of the resource in the entry.
	Field, Resource string
	// Reason is [ReasonNotPublished], [edgev2alpha1.ReasonNamingConflict], [plan.ReasonNotServed],
	// [plan.ReasonForbidden], [ReasonNotVisible], [schemacheck.ReasonVersionNotServed],
	// [schemacheck.ReasonSchemaIncompatible] or a reason of package policy.
	Reason string
	// Message is the message of the target or the hub; empty if the resource is not published.
	Message string
}

// String returns the entry as messages name it.
func (s UnavailableEntry) String() string {
	text := fmt.Sprintf("%s (%s)", s.Field, s.Resource)
	if s.Message != "" {
		text += ": " + strings.TrimSuffix(s.Message, ".")
	}
	return text
}

// Availability describes the APIs that entries of configs can name.
type Availability struct {
	// Published are the published resources.
	Published []plan.Resource
	// Targets are the target's resources that each published resource is synced with. Unavailable are the
	// target resources that the target does not serve or does not permit.
	Targets     map[schema.GroupResource][]plan.TargetAPI
	Unavailable map[schema.GroupResource][]objectsync.UnavailableResource
	// CRDs are the CRDs that the hub installs on the target, by the resource that a CRD defines.
	CRDs map[schema.GroupResource]crd.State
	// Namespaces decides which namespaces of the target the hub may use.
	Namespaces *policy.NamespacePolicy
	// MissingAPIs are the published APIs that this mailbox does not have. Hidden are the resources that the hub cannot list
	// in the mailbox, with the reason.
	MissingAPIs syncmanager.MissingAPIs
	Hidden      map[schema.GroupResource]string
	// InitialSyncPending are the resources with objects that existed at the start and that no pass has tried
	// yet.
	InitialSyncPending map[schema.GroupResource]bool
}

// UnavailableEntries returns the entries of a config that cannot work now, with the reasons. conversions are
// the conversions of the config.
func (s Availability) UnavailableEntries(entries []selection.Entry, conversions []conversion.Conversion) []UnavailableEntry {
	var shortfalls []UnavailableEntry
	// With conversions, the matcher has several entries for one entry of the config.
	reported := map[UnavailableEntry]bool{}
	for _, entry := range entries {
		named, unavailable := s.checkEntry(entry, conversions)
		if !named {
			unavailable = []UnavailableEntry{{Reason: ReasonNotPublished, Resource: entryName(entry)}}
		}
		for _, shortfall := range unavailable {
			shortfall.Field = entry.Field
			if !reported[shortfall] {
				reported[shortfall] = true
				shortfalls = append(shortfalls, shortfall)
			}
		}
	}
	return shortfalls
}

// checkEntry reports whether an entry names a published resource, and returns the resources that are not available on the
// target.
func (s Availability) checkEntry(entry selection.Entry, conversions []conversion.Conversion) (named bool, unavailable []UnavailableEntry) {
	for _, resource := range s.Published {
		if resource.RelatedOnly {
			continue
		}
		matching := s.matchingTargets(entry, resource, conversions)
		named = named || len(matching) > 0
		for _, target := range matching {
			unavailable = append(unavailable, s.deniedUpsync(entry, resource, target)...)
		}
		if len(matching) > 0 && s.MissingAPIs.Has(resource.GroupResource()) {
			// "*" selects the APIs that exist.
			if !isWildcard(entry) {
				unavailable = append(unavailable, UnavailableEntry{Resource: entryName(entry), Reason: edgev2alpha1.ReasonNamingConflict})
			}
			continue
		}
		if why := s.Hidden[resource.GroupResource()]; len(matching) > 0 && why != "" {
			unavailable = append(unavailable, UnavailableEntry{Resource: resource.GroupResource().String(), Reason: ReasonNotVisible, Message: why})
			continue
		}
		unavailable = append(unavailable, s.unavailableOnTarget(entry, resource, matching)...)
	}
	return named, unavailable
}

// unavailableOnTarget returns the unavailable resources of the target among those that an entry matches.
func (s Availability) unavailableOnTarget(entry selection.Entry, resource plan.Resource, matching []plan.TargetAPI) (short []UnavailableEntry) {
	for _, unavailable := range s.Unavailable[resource.GroupResource()] {
		// DeniedConversion reports these.
		if unavailable.IsDenied() {
			continue
		}
		// "*" selects the existing APIs. The config is valid even if the target does not serve all published
		// APIs.
		if isWildcard(entry) && (unavailable.Reason == plan.ReasonNotServed || unavailable.Reason == schemacheck.ReasonVersionNotServed) {
			continue
		}
		if slices.ContainsFunc(matching, func(target plan.TargetAPI) bool {
			return target.Group == unavailable.GroupResource.Group && target.Kind == unavailable.Kind
		}) {
			short = append(short, UnavailableEntry{
				Resource: entryNameOnTarget(entry, unavailable), Reason: unavailable.Reason, Message: status.Truncate(s.unavailableMessage(unavailable)),
			})
		}
	}
	return short
}

// setVisibility records whether the hub can list the objects of a resource in the mailbox. For some time after
// a start, a resource that is not listed yet only counts as untried: the first list of a large installation
// takes long, and the earlier counts stay.
func (s Availability) setVisibility(group schema.GroupResource, unreadable string, firstPassDone, keepCounts bool) {
	isFirstList := unreadable == objectsync.NotListedReason && !firstPassDone && keepCounts
	switch {
	case unreadable != "" && !isFirstList:
		s.Hidden[group] = unreadable
	case !firstPassDone:
		s.InitialSyncPending[group] = true
	}
}

// isIncomplete reports whether some resource is hidden or its initial sync is pending.
func (s Availability) isIncomplete() bool { return len(s.Hidden) > 0 || len(s.InitialSyncPending) > 0 }

// IsInitialSyncPending reports whether entries of a config name a resource whose initial sync is pending.
func (s Availability) IsInitialSyncPending(entries []selection.Entry, conversions []conversion.Conversion) bool {
	for _, resource := range s.Published {
		if resource.RelatedOnly || !s.InitialSyncPending[resource.GroupResource()] {
			continue
		}
		if slices.ContainsFunc(entries, func(entry selection.Entry) bool { return len(s.matchingTargets(entry, resource, conversions)) > 0 }) {
			return true
		}
	}
	return false
}

// deniedUpsync returns the resources and namespaces that an upsync entry names and that the policy denies. "*" selects only the
// namespaces that are allowed, and no twins, which never come up.
func (s Availability) deniedUpsync(entry selection.Entry, resource plan.Resource, target plan.TargetAPI) (unavailable []UnavailableEntry) {
	if _, isTwin := policy.OriginalOf(resource.GroupResource()); !entry.Up || isTwin && isWildcard(entry) {
		return nil
	}
	tell := func(err error) {
		if refusal, ok := errors.AsType[*policy.DeniedError](err); ok {
			unavailable = append(unavailable, UnavailableEntry{Resource: entryName(entry), Reason: refusal.Reason, Message: refusal.Message})
		}
	}
	if tell(resource.CheckUpsync(target)); len(unavailable) > 0 {
		return unavailable
	}
	for _, namespace := range namespacesOf(entry, resource, target) {
		if namespace != selection.All && namespace != "" {
			tell(s.Namespaces.Check(namespace, target.Allowed.ProtectedNamespaces))
		}
	}
	return unavailable
}

// namespacesOf returns the namespaces that an entry names: the namespaces of its objects or, for namespaces, the objects themselves.
func namespacesOf(entry selection.Entry, resource plan.Resource, target plan.TargetAPI) []string {
	switch {
	case target.GroupResource() == schema.GroupResource{Resource: "namespaces"}:
		return entry.Names
	case resource.Namespaced:
		return entry.Namespaces
	default:
		return nil
	}
}

// DeniedConversion returns the resources that a conversion of a config may not produce.
func (s Availability) DeniedConversion(field string, converted conversion.Conversion) (unavailable []UnavailableEntry) {
	up, down := converted.Upstream, converted.Downstream
	for _, resource := range s.Published {
		if resource.RelatedOnly || up.Group != resource.Group || !matchesPattern(up.Kind, resource.Kind) {
			continue
		}
		made := schema.GroupVersionKind{Group: down.Group, Version: down.Version, Kind: down.Kind}
		if made.Kind == conversion.Any {
			made.Kind = resource.Kind
		}
		_, err := resource.CheckConversion(s.Published, made)
		if refusal, ok := errors.AsType[*policy.DeniedError](err); ok {
			unavailable = append(unavailable, UnavailableEntry{Field: field, Resource: made.GroupKind().String(), Reason: refusal.Reason, Message: refusal.Message})
		}
	}
	return unavailable
}

// unavailableMessage returns why a resource is not available. If the hub installs the CRD itself, the state of the CRD is
// the better explanation.
func (s Availability) unavailableMessage(unavailable objectsync.UnavailableResource) string {
	state, ok := s.CRDs[unavailable.GroupResource]
	if ok && !state.Ready && unavailable.Reason == plan.ReasonNotServed {
		return state.Message
	}
	return strings.TrimSpace(unavailable.Message)
}

// matchingTargets returns the target's resources that an entry matches for a published resource, or none.
func (s Availability) matchingTargets(entry selection.Entry, resource plan.Resource, conversions []conversion.Conversion) []plan.TargetAPI {
	switch {
	case entry.Up:
		// An upsync entry uses the names on the target. Without a conversion, these are the names in the PublishedResource.
		all, own := s.convertedTargets(resource, conversions), resource.TargetAPI()
		return slices.DeleteFunc(append(all, own), func(target plan.TargetAPI) bool {
			if target.GroupResource() == own.GroupResource() && slices.Contains(resource.TargetVersions(), entry.Version) {
				return !matchesEntry(withoutVersion(entry), target)
			}
			return !matchesEntry(entry, target)
		})
	case matchesEntry(entry, mailboxAPI(resource)) || resource.ServesVersion(entry.Version) && matchesEntry(withoutVersion(entry), mailboxAPI(resource)):
		return s.convertedTargets(resource, conversions)
	default:
		return nil
	}
}

// mailboxAPI returns the names of a published resource in mailboxes.
func mailboxAPI(resource plan.Resource) plan.TargetAPI {
	return plan.TargetAPI{GroupVersionResource: resource.GroupVersionResource, Kind: resource.Kind}
}

// convertedTargets returns the target's resources that the conversions produce from a published resource.
func (s Availability) convertedTargets(resource plan.Resource, conversions []conversion.Conversion) (all []plan.TargetAPI) {
	for _, conversion := range conversions {
		upstream := conversion.Upstream
		if upstream.Group != resource.Group || !matchesPattern(upstream.Kind, resource.Kind) || !matchesPattern(upstream.Version, resource.Version) {
			continue
		}
		all = append(all, s.converted(resource, conversion.Downstream))
		if matchesPattern(upstream.Namespace, "") && matchesPattern(upstream.Name, "") {
			// The pattern matches every object, so later conversions have no effect.
			return all
		}
	}
	return append(all, resource.TargetAPI())
}

// withoutVersion returns a copy of the entry that matches any version.
func withoutVersion(entry selection.Entry) selection.Entry {
	entry.Version = ""
	return entry
}

func (s Availability) converted(resource plan.Resource, downstream conversion.Pattern) plan.TargetAPI {
	made := mailboxAPI(resource)
	made.Group = downstream.Group
	if !matchesPattern(downstream.Version, made.Version) {
		made.Version = downstream.Version
	}
	if matchesPattern(downstream.Kind, made.Kind) {
		return made
	}
	made.Kind = downstream.Kind
	for _, target := range s.Targets[resource.GroupResource()] {
		if target.Group == made.Group && target.Kind == made.Kind {
			made.Resource, made.Allowed = target.Resource, target.Allowed
			return made
		}
	}
	// The plural is not discovered yet; the guess is wrong only for very unusual names.
	guess, _ := meta.UnsafeGuessKindToResource(made.GroupVersion().WithKind(made.Kind))
	made.Resource = guess.Resource
	return made
}

// matchesPattern reports whether a part of a pattern is the value or a wildcard.
func matchesPattern(pattern, value string) bool {
	return pattern == value || pattern == "" || pattern == edgev2alpha1.Wildcard
}

func matchesEntry(entry selection.Entry, target plan.TargetAPI) bool {
	named := isWildcard(entry) || entry.Resource != "" && entry.Resource == target.Resource || entry.Kind != "" && entry.Kind == target.Kind
	return named && entry.Group == target.Group && (entry.Version == "" || entry.Version == target.Version)
}

func isWildcard(entry selection.Entry) bool {
	return entry.Resource == selection.All || entry.Kind == selection.All
}

// entryName returns the names in an entry as the config writes them.
func entryName(entry selection.Entry) string {
	return strings.TrimSpace(strings.Trim(entry.Group+"/"+entry.Version, "/") + " " + entry.Resource + entry.Kind)
}

// entryNameOnTarget returns the names in an entry, with the name on the target if that differs.
func entryNameOnTarget(entry selection.Entry, unavailable objectsync.UnavailableResource) string {
	target := unavailable.GroupResource
	// The plural of a kind that the target does not serve is unknown.
	target.Resource = cmp.Or(target.Resource, unavailable.Kind)
	if entry.Group == target.Group && (entry.Resource != "" && entry.Resource == target.Resource || entry.Kind != "" && entry.Kind == unavailable.Kind) {
		return entryName(entry)
	}
	return fmt.Sprintf("%s as %s", entryName(entry), target)
}
