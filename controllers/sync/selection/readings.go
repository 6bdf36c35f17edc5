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

package selection

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Reading is what one entry about what goes down makes of an object. It is for people who wonder.
type Reading struct {
	// Config is the config's id, Field the entry's path in it.
	Config, Field string
	// Why says what keeps the entry from selecting the object; empty if it selects it.
	Why string
	// near is how many of the entry's conditions the object meets, in the order in which they are looked at.
	near int
}

// Readings returns what each entry that speaks of the object's resource makes of it: those that select it first, then
// those that come nearest to that.
func (m *Matcher) Readings(mailbox Object) []Reading {
	if m == nil {
		return nil
	}
	best := map[[2]string]Reading{}
	for _, rules := range m.down.about(mailbox.Resource.GroupResource(), mailbox.Kind) {
		for _, rule := range rules.all {
			reading := rule.read(mailbox)
			key := [2]string{reading.Config, reading.Field}
			switch before, ok := best[key]; {
			case !ok || reading.near > before.near:
				best[key] = reading
			case reading.near == before.near && reading.Why != before.Why && len(before.Why) < enough:
				// The entry looks in several places.
				before.Why += ", and " + reading.Why
				best[key] = before
			}
		}
	}
	for _, entry := range m.entries {
		key := [2]string{entry.Config, entry.Field}
		if _, ok := best[key]; !ok && !entry.Up && entry.isAbout(mailbox) {
			best[key] = Reading{Config: entry.Config, Field: entry.Field, Why: m.whyNoRule(entry)}
		}
	}
	return slices.SortedFunc(maps.Values(best), func(a, b Reading) int {
		return cmp.Or(cmp.Compare(b.near, a.near), strings.Compare(a.Config, b.Config), strings.Compare(a.Field, b.Field))
	})
}

// read looks at the conditions in turn.
func (r *rule) read(object Object) Reading {
	reading := Reading{Config: r.config.id, Field: r.field}
	for _, condition := range []struct {
		met bool
		why func() string
	}{
		{r.hasVersion(object), func() string { return fmt.Sprintf("it asks for version %s, which mailboxes do not serve", r.version) }},
		{r.hasNamespace(object), func() string { return r.whyNamespace(object) }},
		{r.hasName(object), func() string { return r.whyName(object) }},
		{r.hasLabels(object), func() string { return fmt.Sprintf("its labelSelector %q does not match the object's labels", r.labels) }},
		{r.hasAnnotations(object), func() string { return "the object lacks " + r.lacking(object) }},
	} {
		if !condition.met {
			reading.Why = condition.why()
			break
		}
		reading.near++
	}
	return reading
}

func (r *rule) whyNamespace(object Object) string {
	switch {
	case object.Namespace == "":
		return "it speaks of objects in namespaces"
	case r.namespaces.has(""):
		return "it speaks of objects that are in no namespace"
	case r.namespaces.all:
		return fmt.Sprintf("%q does not include the system namespace %s", All, object.Namespace)
	default:
		return "it names the namespaces " + listed(r.namespaces.sorted())
	}
}

func (r *rule) whyName(object Object) string {
	if r.names.all {
		return fmt.Sprintf("%q does not include what Kubernetes itself makes, such as %s", All, object.Name)
	}
	return "it names the objects " + listed(r.names.sorted())
}

// lacking names the first annotation that the object does not have as it must.
func (r *rule) lacking(object Object) string {
	for _, key := range slices.Sorted(maps.Keys(r.annotations)) {
		if actual, ok := object.Annotations.Lookup(key); !ok || actual != r.annotations[key] {
			return fmt.Sprintf("the annotation %s with the value %q", key, r.annotations[key])
		}
	}
	return "an annotation"
}

// whyNoRule says why there is no rule of an entry.
func (m *Matcher) whyNoRule(entry Entry) string {
	for _, problem := range m.problems[entry.Config] {
		if problem.Field == entry.Field || strings.HasPrefix(problem.Field, entry.Field+".") {
			return "it cannot be understood: " + problem.Message
		}
	}
	return "a list of it is absent or empty, which selects nothing"
}

// isAbout tells whether an entry names the object's resource, its kind, or all of its group.
func (e Entry) isAbout(object Object) bool {
	return e.Group == object.Resource.Group &&
		(e.Resource != "" && (e.Resource == object.Resource.Resource || e.Resource == All) ||
			e.Resource == "" && (e.Kind == object.Kind || e.Kind == All))
}

const (
	// fewNames are how many names are listed.
	fewNames = 5
	// enough is when a message is long enough.
	enough = 200
)

func listed(names []string) string {
	if more := len(names) - fewNames; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:fewNames], ", "), more)
	}
	return strings.Join(names, ", ")
}
