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
	"github.com/synchub-dev/synchub/controllers/crd"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/conversion"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/policy"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/selection"
	"github.com/synchub-dev/synchub/controllers/schemacheck"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
)

// UnavailableEntry is an entry of a config that cannot work now. It does as soon as what it lacks is there.
type UnavailableEntry struct {
	// Field is the entry's path in the config, Resource what it names there.
	Field, Resource string
	// Reason is [ReasonNotPublished], [edgev2alpha1.ReasonNamingConflict], [sync.ReasonNotServed], [sync.ReasonForbidden],
	// [ReasonNotVisible], [compatibility.ReasonVersionNotServed], [compatibility.ReasonSchema] or one of package boundary.
	Reason string
	// Message is what the target or the hub says about it, empty if it is not published.
	Message string
}

// String returns how the shortfall stands in a message.
func (s UnavailableEntry) String() string {
	text := fmt.Sprintf("%s (%s)", s.Field, s.Resource)
	if s.Message != "" {
		text += ": " + strings.TrimSuffix(s.Message, ".")
	}
	return text
}

// Availability is what there is for entries to name.
type Availability struct {
	// Published are the resources that mailboxes have.
	Published []objectsync.Resource
	// Targets are the target's resources that each of them is synced with, and Unavailable those of them that the target
	// does not give.
	Targets     map[schema.GroupResource][]objectsync.TargetAPI
	Unavailable map[schema.GroupResource][]objectsync.UnavailableResource
	// CRDs are those that the hub gives the target, by what they define.
	CRDs map[schema.GroupResource]crd.State
	// Namespaces says which namespaces of the target may be used.
	Namespaces *policy.NamespacePolicy
	// MissingAPIs are those that this mailbox does not have all the same, and Hidden those of which the hub does not see the objects
	// there, with why.
	MissingAPIs syncmanager.MissingAPIs
	Hidden      map[schema.GroupResource]string
	// InitialSyncPending are those of which not all has been tried that was there when they began to be synced.
	InitialSyncPending map[schema.GroupResource]bool
}

// UnavailableEntries returns which entries of a config cannot work now, and why. The conversions are the config's.
func (s Availability) UnavailableEntries(entries []selection.Entry, conversions []conversion.Conversion) []UnavailableEntry {
	var shortfalls []UnavailableEntry
	// With conversions one entry of a config is compiled to several.
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

// checkEntry tells whether an entry names anything that is published, and what of that is not to be had on the target.
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
			// "*" means what there is.
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

// unavailableOnTarget returns what the target does not give of a resource, as which an entry means these of the target.
func (s Availability) unavailableOnTarget(entry selection.Entry, resource objectsync.Resource, matching []objectsync.TargetAPI) (short []UnavailableEntry) {
	for _, unavailable := range s.Unavailable[resource.GroupResource()] {
		// It is told where the conversion stands.
		if unavailable.IsDenied() {
			continue
		}
		// "*" means what there is; that a target has less than what is published is no fault of the config.
		if isWildcard(entry) && (unavailable.Reason == objectsync.ReasonNotServed || unavailable.Reason == schemacheck.ReasonVersionNotServed) {
			continue
		}
		if slices.ContainsFunc(matching, func(target objectsync.TargetAPI) bool {
			return target.Group == unavailable.GroupResource.Group && target.Kind == unavailable.Kind
		}) {
			short = append(short, UnavailableEntry{
				Resource: entryNameOnTarget(entry, unavailable), Reason: unavailable.Reason, Message: objectsync.Truncate(s.unavailableMessage(unavailable)),
			})
		}
	}
	return short
}

// isIncomplete tells whether there is something of which the hub does not see all, or has not tried all.
func (s Availability) isIncomplete() bool { return len(s.Hidden) > 0 || len(s.InitialSyncPending) > 0 }

// IsInitialSyncPending tells whether entries of a config name something of which not all has been tried yet.
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

// deniedUpsync returns what an entry asks to bring up from a resource of the target and may not have. What "*" stands for is what
// there is to have.
func (s Availability) deniedUpsync(entry selection.Entry, resource objectsync.Resource, target objectsync.TargetAPI) (unavailable []UnavailableEntry) {
	if !entry.Up {
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

// namespacesOf returns the namespaces that an entry names, in which the objects are, or which they are.
func namespacesOf(entry selection.Entry, resource objectsync.Resource, target objectsync.TargetAPI) []string {
	switch {
	case target.GroupResource() == schema.GroupResource{Resource: "namespaces"}:
		return entry.Names
	case resource.Namespaced:
		return entry.Namespaces
	default:
		return nil
	}
}

// DeniedConversion returns what a conversion of a config may not do.
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

// unavailableMessage returns why something is not to be had. Where the hub itself brings the definition, it knows best.
func (s Availability) unavailableMessage(unavailable objectsync.UnavailableResource) string {
	state, ok := s.CRDs[unavailable.GroupResource]
	if ok && !state.Ready && unavailable.Reason == objectsync.ReasonNotServed {
		return state.Message
	}
	return strings.TrimSpace(unavailable.Message)
}

// matchingTargets returns the target's resources that an entry means by a published resource, none if it does not speak of it.
func (s Availability) matchingTargets(entry selection.Entry, resource objectsync.Resource, conversions []conversion.Conversion) []objectsync.TargetAPI {
	switch {
	case entry.Up:
		// It is named as on the target; what no conversion makes is called there as the PublishedResource says.
		all, own := s.convertedTargets(resource, conversions), resource.TargetAPI()
		return slices.DeleteFunc(append(all, own), func(target objectsync.TargetAPI) bool {
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

// mailboxAPI is what a published resource is in mailboxes.
func mailboxAPI(resource objectsync.Resource) objectsync.TargetAPI {
	return objectsync.TargetAPI{GroupVersionResource: resource.GroupVersionResource, Kind: resource.Kind}
}

// convertedTargets returns what the conversions make of a published resource.
func (s Availability) convertedTargets(resource objectsync.Resource, conversions []conversion.Conversion) (all []objectsync.TargetAPI) {
	for _, conversion := range conversions {
		upstream := conversion.Upstream
		if upstream.Group != resource.Group || !matchesPattern(upstream.Kind, resource.Kind) || !matchesPattern(upstream.Version, resource.Version) {
			continue
		}
		all = append(all, s.converted(resource, conversion.Downstream))
		if matchesPattern(upstream.Namespace, "") && matchesPattern(upstream.Name, "") {
			// It speaks of every object, and so leaves none to the conversions that follow.
			return all
		}
	}
	return append(all, resource.TargetAPI())
}

// withoutVersion returns an entry that leaves the version open.
func withoutVersion(entry selection.Entry) selection.Entry {
	entry.Version = ""
	return entry
}

func (s Availability) converted(resource objectsync.Resource, downstream conversion.Pattern) objectsync.TargetAPI {
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
	// Nobody has asked the target yet; this guess is wrong for the oddest names only.
	guess, _ := meta.UnsafeGuessKindToResource(made.GroupVersion().WithKind(made.Kind))
	made.Resource = guess.Resource
	return made
}

// matchesPattern tells whether a part of a pattern is the value or stands for any.
func matchesPattern(pattern, value string) bool {
	return pattern == value || pattern == "" || pattern == edgev2alpha1.Wildcard
}

func matchesEntry(entry selection.Entry, target objectsync.TargetAPI) bool {
	named := isWildcard(entry) || entry.Resource != "" && entry.Resource == target.Resource || entry.Kind != "" && entry.Kind == target.Kind
	return named && entry.Group == target.Group && (entry.Version == "" || entry.Version == target.Version)
}

func isWildcard(entry selection.Entry) bool {
	return entry.Resource == selection.All || entry.Kind == selection.All
}

// entryName returns what an entry names, as it stands there.
func entryName(entry selection.Entry) string {
	return strings.TrimSpace(strings.Trim(entry.Group+"/"+entry.Version, "/") + " " + entry.Resource + entry.Kind)
}

// entryNameOnTarget returns what an entry names, and what that is on the target if it is called otherwise there.
func entryNameOnTarget(entry selection.Entry, unavailable objectsync.UnavailableResource) string {
	target := unavailable.GroupResource
	// The target has no plural for a kind that it does not know.
	target.Resource = cmp.Or(target.Resource, unavailable.Kind)
	if entry.Group == target.Group && (entry.Resource != "" && entry.Resource == target.Resource || entry.Kind != "" && entry.Kind == unavailable.Kind) {
		return entryName(entry)
	}
	return fmt.Sprintf("%s as %s", entryName(entry), target)
}
