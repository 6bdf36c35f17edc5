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

package compatibility

import (
	"encoding/json"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/synchub-dev/synchub/provider/schemas/structural"
)

// hasCrossFieldRules reports whether a schema has a keyword that restricts several fields or items together.
func hasCrossFieldRules(s *schema) bool {
	return len(s.XValidations)+len(s.AllOf)+len(s.AnyOf)+len(s.OneOf) > 0 || s.Not != nil || s.MinProperties != nil || s.MaxProperties != nil ||
		s.UniqueItems || len(s.Enum) > 0 || listTypeOf(s) == listSet
}

// rules adds a finding for each rule of the target that the mailbox does not have at the same location. The
// comparison ignores the meaning of rules.
func (c *comparison) rules(at location, mine, theirs *schema) {
	own := sets.New[ruleMeaning]()
	for _, rule := range mine.XValidations {
		own.Insert(meaningOf(rule))
	}
	for _, rule := range theirs.XValidations {
		if !own.Has(meaningOf(rule)) {
			c.addFinding(at, ReasonRule, "the mailbox does not have the target's rule %q", shorten(rule.Rule))
		}
	}
}

// ruleMeaning contains the parts of a rule that decide about an object.
type ruleMeaning struct {
	rule            string
	optionalOldSelf bool
}

func meaningOf(rule apiextensionsv1.ValidationRule) ruleMeaning {
	return ruleMeaning{rule.Rule, rule.OptionalOldSelf != nil && *rule.OptionalOldSelf}
}

// alternatives adds findings for allOf, anyOf, oneOf and not of the target that the mailbox does not have. It
// compares them literally and ignores their combined meaning.
func (c *comparison) alternatives(at location, mine, theirs *schema) {
	mineAllOf, mineAnyOf := withoutIntOrString(mine)
	theirAllOf, theirAnyOf := withoutIntOrString(theirs)
	if !isSubset(theirAllOf, mineAllOf) {
		c.addFinding(at, ReasonAlternatives, "the mailbox does not have all of the target's allOf")
	}
	if len(theirAnyOf) > 0 && (len(mineAnyOf) == 0 || !isSubset(mineAnyOf, theirAnyOf)) {
		c.addFinding(at, ReasonAlternatives, "the mailbox's anyOf has alternatives that the target's anyOf lacks")
	}
	if len(theirs.OneOf) > 0 && !reflect.DeepEqual(mine.OneOf, theirs.OneOf) {
		c.addFinding(at, ReasonAlternatives, "the mailbox's oneOf differs from the target's oneOf")
	}
	if theirs.Not != nil && !reflect.DeepEqual(mine.Not, theirs.Not) {
		c.addFinding(at, ReasonAlternatives, "the mailbox does not have the target's not")
	}
}

// isSubset reports whether all contains each schema in some.
func isSubset(some, all []schema) bool {
	known := sets.New[string]()
	for i := range all {
		if text, err := json.Marshal(&all[i]); err == nil {
			known.Insert(string(text))
		}
	}
	return !slices.ContainsFunc(some, func(branch schema) bool {
		text, err := json.Marshal(&branch)
		return err != nil || !known.Has(string(text))
	})
}

// weightOf returns the cost of comparing one node, counted in fields. Where only one side names fields, Compare
// compares the other side's schema with each of them, so it repeats this work.
func weightOf(s *schema) int {
	weight := len(s.XValidations) + len(s.Required)
	if len(s.Enum) > 0 {
		weight += len(s.Enum) + validatorWeight + structural.PatternSize(s.Pattern)/patternWeight
	}
	for _, branches := range [][]schema{s.AllOf, s.AnyOf, s.OneOf} {
		for i := range branches {
			weight += structural.CountNodes(&branches[i])
		}
	}
	if s.Not != nil {
		weight += structural.CountNodes(s.Not)
	}
	return weight
}

const (
	// validatorWeight is the cost of one scalarValidator, counted in fields. patternWeight divides the steps of the
	// schema's pattern: each group of that many steps costs one more field.
	validatorWeight = 20
	patternWeight   = 4
)

// intOrString is the redundant anyOf of an int-or-string schema. Schemas state it in one of two ways, without further
// meaning.
var intOrString = []schema{{Type: "integer"}, {Type: "string"}}

// withoutIntOrString returns the allOf and anyOf of a schema without an enum, and without the parts that only repeat that the
// value is an integer or a string.
func withoutIntOrString(s *schema) (allOf, anyOf []schema) {
	allOf, anyOf = s.AllOf, s.AnyOf
	if hasEnumInAllOf(s) {
		allOf = nil // compared as an enum
	}
	if !s.XIntOrString {
		return allOf, anyOf
	}
	if reflect.DeepEqual(anyOf, intOrString) {
		anyOf = nil
	}
	if len(allOf) > 0 && reflect.DeepEqual(allOf[0], schema{AnyOf: intOrString}) {
		allOf = allOf[1:]
	}
	return allOf, anyOf
}

// shorten cuts a text for a message.
func shorten(text string) string {
	const limit = 80
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit]) + "…"
	}
	return text
}
