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
	"github.com/synchub-dev/synchub/controllers/compatibility"
	"github.com/synchub-dev/synchub/controllers/definition"
	"github.com/synchub-dev/synchub/controllers/sync"
	"github.com/synchub-dev/synchub/controllers/sync/boundary"
	"github.com/synchub-dev/synchub/controllers/sync/conversion"
	"github.com/synchub-dev/synchub/controllers/sync/selection"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
)

// Shortfall is an entry of a config that cannot work now. It does as soon as what it lacks is there.
type Shortfall struct {
	// Field is the entry's path in the config, Resource what it names there.
	Field, Resource string
	// Reason is [ReasonNotPublished], [edgev2alpha1.ReasonNamingConflict], [sync.ReasonNotServed], [sync.ReasonForbidden],
	// [ReasonNotVisible], [compatibility.ReasonVersionNotServed], [compatibility.ReasonSchema] or one of package boundary.
	Reason string
	// Message is what the target or the hub says about it, empty if it is not published.
	Message string
}

// String returns how the shortfall stands in a message.
func (s Shortfall) String() string {
	text := fmt.Sprintf("%s (%s)", s.Field, s.Resource)
	if s.Message != "" {
		text += ": " + strings.TrimSuffix(s.Message, ".")
	}
	return text
}

// Supply is what there is for entries to name.
type Supply struct {
	// Published are the resources that mailboxes have.
	Published []sync.Resource
	// Targets are the target's resources that each of them is synced with, and Unavailable those of them that the target
	// does not give.
	Targets     map[schema.GroupResource][]sync.TargetResource
	Unavailable map[schema.GroupResource][]sync.Unavailable
	// Definitions are those that the hub gives the target, by what they define.
	Definitions map[schema.GroupResource]definition.State
	// Namespaces says which namespaces of the target may be used.
	Namespaces *boundary.Namespaces
	// Missing are those that this mailbox does not have all the same, and Hidden those of which the hub does not see the objects
	// there, with why.
	Missing syncmanager.MissingAPIs
	Hidden  map[schema.GroupResource]string
	// Unfinished are those of which not all has been tried that was there when they began to be synced.
	Unfinished map[schema.GroupResource]bool
}

// Shortfalls returns which entries of a config cannot work now, and why. The conversions are the config's.
func (s Supply) Shortfalls(entries []selection.Entry, conversions []conversion.Conversion) []Shortfall {
	var shortfalls []Shortfall
	// With conversions one entry of a config is compiled to several.
	told := map[Shortfall]bool{}
	for _, entry := range entries {
		named, short := s.hold(entry, conversions)
		if !named {
			short = []Shortfall{{Reason: ReasonNotPublished, Resource: nameOf(entry)}}
		}
		for _, shortfall := range short {
			shortfall.Field = entry.Field
			if !told[shortfall] {
				told[shortfall] = true
				shortfalls = append(shortfalls, shortfall)
			}
		}
	}
	return shortfalls
}

// hold tells whether an entry names anything that is published, and what of that is not to be had on the target.
func (s Supply) hold(entry selection.Entry, conversions []conversion.Conversion) (named bool, short []Shortfall) {
	for _, resource := range s.Published {
		if resource.Companion {
			continue
		}
		meant := s.meantBy(entry, resource, conversions)
		named = named || len(meant) > 0
		for _, target := range meant {
			short = append(short, s.refused(entry, resource, target)...)
		}
		if len(meant) > 0 && s.Missing.Has(resource.GroupResource()) {
			// "*" means what there is.
			if !isWildcard(entry) {
				short = append(short, Shortfall{Resource: nameOf(entry), Reason: edgev2alpha1.ReasonNamingConflict})
			}
			continue
		}
		if why := s.Hidden[resource.GroupResource()]; len(meant) > 0 && why != "" {
			short = append(short, Shortfall{Resource: resource.GroupResource().String(), Reason: ReasonNotVisible, Message: why})
			continue
		}
		short = append(short, s.unavailable(entry, resource, meant)...)
	}
	return named, short
}

// unavailable returns what the target does not give of a resource, as which an entry means these of the target.
func (s Supply) unavailable(entry selection.Entry, resource sync.Resource, meant []sync.TargetResource) (short []Shortfall) {
	for _, unavailable := range s.Unavailable[resource.GroupResource()] {
		// It is told where the conversion stands.
		if unavailable.IsRefused() {
			continue
		}
		// "*" means what there is; that a target has less than what is published is no fault of the config.
		if isWildcard(entry) && (unavailable.Reason == sync.ReasonNotServed || unavailable.Reason == compatibility.ReasonVersionNotServed) {
			continue
		}
		if slices.ContainsFunc(meant, func(target sync.TargetResource) bool {
			return target.Group == unavailable.Target.Group && target.Kind == unavailable.Kind
		}) {
			short = append(short, Shortfall{
				Resource: nameOnTarget(entry, unavailable), Reason: unavailable.Reason, Message: sync.Truncate(s.messageAbout(unavailable)),
			})
		}
	}
	return short
}

// isIncomplete tells whether there is something of which the hub does not see all, or has not tried all.
func (s Supply) isIncomplete() bool { return len(s.Hidden) > 0 || len(s.Unfinished) > 0 }

// IsUnfinished tells whether entries of a config name something of which not all has been tried yet.
func (s Supply) IsUnfinished(entries []selection.Entry, conversions []conversion.Conversion) bool {
	for _, resource := range s.Published {
		if resource.Companion || !s.Unfinished[resource.GroupResource()] {
			continue
		}
		if slices.ContainsFunc(entries, func(entry selection.Entry) bool { return len(s.meantBy(entry, resource, conversions)) > 0 }) {
			return true
		}
	}
	return false
}

// refused returns what an entry asks to bring up from a resource of the target and may not have. What "*" stands for is what
// there is to have.
func (s Supply) refused(entry selection.Entry, resource sync.Resource, target sync.TargetResource) (short []Shortfall) {
	if !entry.Up {
		return nil
	}
	tell := func(err error) {
		if refusal, ok := errors.AsType[*boundary.RefusalError](err); ok {
			short = append(short, Shortfall{Resource: nameOf(entry), Reason: refusal.Reason, Message: refusal.Message})
		}
	}
	if tell(resource.RefusesUp(target)); len(short) > 0 {
		return short
	}
	for _, namespace := range namespacesOf(entry, resource, target) {
		if namespace != selection.All && namespace != "" {
			tell(s.Namespaces.Check(namespace, target.Allows.ProtectedNamespaces))
		}
	}
	return short
}

// namespacesOf returns the namespaces that an entry names, in which the objects are, or which they are.
func namespacesOf(entry selection.Entry, resource sync.Resource, target sync.TargetResource) []string {
	switch {
	case target.GroupResource() == schema.GroupResource{Resource: "namespaces"}:
		return entry.Names
	case resource.Namespaced:
		return entry.Namespaces
	default:
		return nil
	}
}

// RefusedConversion returns what a conversion of a config may not do.
func (s Supply) RefusedConversion(field string, converted conversion.Conversion) (short []Shortfall) {
	up, down := converted.Upstream, converted.Downstream
	for _, resource := range s.Published {
		if resource.Companion || up.Group != resource.Group || !isOrAny(up.Kind, resource.Kind) {
			continue
		}
		made := schema.GroupVersionKind{Group: down.Group, Version: down.Version, Kind: down.Kind}
		if made.Kind == conversion.Any {
			made.Kind = resource.Kind
		}
		_, err := resource.ConvertsTo(s.Published, made)
		if refusal, ok := errors.AsType[*boundary.RefusalError](err); ok {
			short = append(short, Shortfall{Field: field, Resource: made.GroupKind().String(), Reason: refusal.Reason, Message: refusal.Message})
		}
	}
	return short
}

// messageAbout returns why something is not to be had. Where the hub itself brings the definition, it knows best.
func (s Supply) messageAbout(unavailable sync.Unavailable) string {
	state, ok := s.Definitions[unavailable.Target]
	if ok && !state.Ready && unavailable.Reason == sync.ReasonNotServed {
		return state.Message
	}
	return strings.TrimSpace(unavailable.Message)
}

// meantBy returns the target's resources that an entry means by a published resource, none if it does not speak of it.
func (s Supply) meantBy(entry selection.Entry, resource sync.Resource, conversions []conversion.Conversion) []sync.TargetResource {
	switch {
	case entry.Up:
		// It is named as on the target; what no conversion makes is called there as the PublishedResource says.
		all, own := s.onTarget(resource, conversions), resource.OnTarget()
		return slices.DeleteFunc(append(all, own), func(target sync.TargetResource) bool {
			if target.GroupResource() == own.GroupResource() && slices.Contains(resource.TargetVersions(), entry.Version) {
				return !names(withoutVersion(entry), target)
			}
			return !names(entry, target)
		})
	case names(entry, own(resource)) || resource.Serves(entry.Version) && names(withoutVersion(entry), own(resource)):
		return s.onTarget(resource, conversions)
	default:
		return nil
	}
}

// own is what a published resource is in mailboxes.
func own(resource sync.Resource) sync.TargetResource {
	return sync.TargetResource{GroupVersionResource: resource.GroupVersionResource, Kind: resource.Kind}
}

// onTarget returns what the conversions make of a published resource.
func (s Supply) onTarget(resource sync.Resource, conversions []conversion.Conversion) (all []sync.TargetResource) {
	for _, conversion := range conversions {
		upstream := conversion.Upstream
		if upstream.Group != resource.Group || !isOrAny(upstream.Kind, resource.Kind) || !isOrAny(upstream.Version, resource.Version) {
			continue
		}
		all = append(all, s.converted(resource, conversion.Downstream))
		if isOrAny(upstream.Namespace, "") && isOrAny(upstream.Name, "") {
			// It speaks of every object, and so leaves none to the conversions that follow.
			return all
		}
	}
	return append(all, resource.OnTarget())
}

// withoutVersion returns an entry that leaves the version open.
func withoutVersion(entry selection.Entry) selection.Entry {
	entry.Version = ""
	return entry
}

func (s Supply) converted(resource sync.Resource, downstream conversion.Pattern) sync.TargetResource {
	made := own(resource)
	made.Group = downstream.Group
	if !isOrAny(downstream.Version, made.Version) {
		made.Version = downstream.Version
	}
	if isOrAny(downstream.Kind, made.Kind) {
		return made
	}
	made.Kind = downstream.Kind
	for _, target := range s.Targets[resource.GroupResource()] {
		if target.Group == made.Group && target.Kind == made.Kind {
			made.Resource, made.Allows = target.Resource, target.Allows
			return made
		}
	}
	// Nobody has asked the target yet; this guess is wrong for the oddest names only.
	guess, _ := meta.UnsafeGuessKindToResource(made.GroupVersion().WithKind(made.Kind))
	made.Resource = guess.Resource
	return made
}

// isOrAny tells whether a part of a pattern is the value or stands for any.
func isOrAny(pattern, value string) bool {
	return pattern == value || pattern == "" || pattern == edgev2alpha1.Wildcard
}

func names(entry selection.Entry, target sync.TargetResource) bool {
	named := isWildcard(entry) || entry.Resource != "" && entry.Resource == target.Resource || entry.Kind != "" && entry.Kind == target.Kind
	return named && entry.Group == target.Group && (entry.Version == "" || entry.Version == target.Version)
}

func isWildcard(entry selection.Entry) bool {
	return entry.Resource == selection.All || entry.Kind == selection.All
}

// nameOf returns what an entry names, as it stands there.
func nameOf(entry selection.Entry) string {
	return strings.TrimSpace(strings.Trim(entry.Group+"/"+entry.Version, "/") + " " + entry.Resource + entry.Kind)
}

// nameOnTarget returns what an entry names, and what that is on the target if it is called otherwise there.
func nameOnTarget(entry selection.Entry, unavailable sync.Unavailable) string {
	target := unavailable.Target
	// The target has no plural for a kind that it does not know.
	target.Resource = cmp.Or(target.Resource, unavailable.Kind)
	if entry.Group == target.Group && (entry.Resource != "" && entry.Resource == target.Resource || entry.Kind != "" && entry.Kind == unavailable.Kind) {
		return nameOf(entry)
	}
	return fmt.Sprintf("%s as %s", nameOf(entry), target)
}
