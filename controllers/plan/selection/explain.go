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

	"github.com/synchub-dev/synchub/provider/wording"
)

// Explanation is the result of one entry for downsync for an object, for `kubectl synchub explain`.
type Explanation struct {
	// Config is the config's id, and Field is the entry's path in it.
	Config, Field string
	// Why is the reason why the entry does not select the object; empty if it does.
	Why string
	// conditionsMet is the number of the entry's conditions that the object meets, in the order of their evaluation.
	conditionsMet int
}

// Explain returns an explanation for each entry that names the object's resource: first the entries that select the object, then
// the other entries, ordered by the number of conditions that the object meets.
func (m *Matcher) Explain(mailbox Object) []Explanation {
	if m == nil {
		return nil
	}
	best := map[[2]string]Explanation{}
	for _, rules := range m.down.rulesFor(mailbox.Resource.GroupResource(), mailbox.Kind) {
		for _, rule := range rules.all {
			reading := rule.explain(mailbox)
			key := [2]string{reading.Config, reading.Field}
			switch before, ok := best[key]; {
			case !ok || reading.conditionsMet > before.conditionsMet:
				best[key] = reading
			case reading.conditionsMet == before.conditionsMet && reading.Why != before.Why && len(before.Why) < maxExplanationLength:
				// An entry with several scopes has several reasons.
				before.Why += ", and " + reading.Why
				best[key] = before
			}
		}
	}
	for _, entry := range m.entries {
		key := [2]string{entry.Config, entry.Field}
		if _, ok := best[key]; !ok && !entry.Up && entry.concerns(mailbox) {
			best[key] = Explanation{Config: entry.Config, Field: entry.Field, Why: m.explainNoRule(entry)}
		}
	}
	return slices.SortedFunc(maps.Values(best), func(a, b Explanation) int {
		return cmp.Or(cmp.Compare(b.conditionsMet, a.conditionsMet), strings.Compare(a.Config, b.Config), strings.Compare(a.Field, b.Field))
	})
}

// explain evaluates the conditions in turn.
func (r *rule) explain(object Object) Explanation {
	reading := Explanation{Config: r.config.id, Field: r.field}
	for _, condition := range []struct {
		met bool
		why func() string
	}{
		{r.hasVersion(object), func() string { return fmt.Sprintf("it asks for version %s, which mailboxes do not serve", r.version) }},
		{r.hasNamespace(object), func() string { return r.explainNamespace(object) }},
		{r.hasName(object), func() string { return r.explainName(object) }},
		{r.hasLabels(object), func() string { return fmt.Sprintf("its labelSelector %q does not match the object's labels", r.labels) }},
		{r.hasAnnotations(object), func() string { return "the object lacks " + r.missingAnnotation(object) }},
		{!r.config.invalidConversions.mayConvertDown(object), func() string { return "a conversion of the config is invalid, so the copy stays as it is" }},
	} {
		if !condition.met {
			reading.Why = condition.why()
			break
		}
		reading.conditionsMet++
	}
	return reading
}

func (r *rule) explainNamespace(object Object) string {
	switch {
	case object.Namespace == "":
		return "it speaks of objects in namespaces"
	case r.namespaces.has(""):
		return "it speaks of objects that are in no namespace"
	case r.namespaces.all:
		return fmt.Sprintf("%q does not include the system namespace %s", All, object.Namespace)
	default:
		return "it names the namespaces " + wording.First(maxListedNames, r.namespaces.sorted())
	}
}

func (r *rule) explainName(object Object) string {
	if r.names.all {
		return fmt.Sprintf("%q does not include what Kubernetes itself makes, such as %s", All, object.Name)
	}
	return "it names the objects " + wording.First(maxListedNames, r.names.sorted())
}

// missingAnnotation returns the first annotation that the object lacks.
func (r *rule) missingAnnotation(object Object) string {
	for _, key := range slices.Sorted(maps.Keys(r.annotations)) {
		if actual, ok := object.Annotations.Lookup(key); !ok || actual != r.annotations[key] {
			return fmt.Sprintf("the annotation %s with the value %q", key, r.annotations[key])
		}
	}
	return "an annotation"
}

// explainNoRule returns why an entry has no rule.
func (m *Matcher) explainNoRule(entry Entry) string {
	for _, problem := range m.problems[entry.Config] {
		if problem.Field == entry.Field || strings.HasPrefix(problem.Field, entry.Field+".") {
			return "it cannot be understood: " + problem.Message
		}
	}
	return "a list of it is absent or empty, which selects nothing"
}

// concerns reports whether an entry names the object's resource, its kind, or all of its group.
func (e Entry) concerns(object Object) bool {
	return e.Group == object.Resource.Group &&
		(e.Resource != "" && (e.Resource == object.Resource.Resource || e.Resource == All) ||
			e.Resource == "" && (e.Kind == object.Kind || e.Kind == All))
}

const (
	// maxListedNames bounds the names in a message.
	maxListedNames = 5
	// maxExplanationLength bounds the length of a message.
	maxExplanationLength = 200
)
