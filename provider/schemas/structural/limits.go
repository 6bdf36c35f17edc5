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

package structural

import (
	"fmt"
	"regexp/syntax"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Limits of a CRD. The administrator of a cluster writes its CRDs, and the hub reads the CRDs of all targets. Within
// these limits the hub needs about one second of one processor and 200 MB to validate any CRD.
const (
	// DefinitionBytes is the maximum size of a CRD in JSON. etcd accepts 1.5 MiB; managed fields, and defaults that a
	// server sets, enlarge it.
	DefinitionBytes = 4 << 20
	// DocumentBytes is the maximum size of an OpenAPI document, which describes all kinds of a group and version. The
	// document of the core group has 1.5 MB; the document of a provider with a hundred CRDs in one group has ten.
	DocumentBytes = 16 << 20
	// jsonDepth is the maximum nesting of JSON. A decoder passes over the content once for every level. The CRD of a
	// Deployment has about 50 levels.
	jsonDepth = 160
	// versionLimit is the maximum number of versions. Four are many.
	versionLimit = 16
	// nodeLimit is the maximum number of fields, items and alternatives in all versions. A Pod has 4,000.
	nodeLimit = 50_000
	// fieldDepth is the maximum nesting of fields. A Pod has 15 levels. Servers recurse over the fields, as the hub
	// does.
	fieldDepth = 64
	// ruleLimit is the maximum number of x-kubernetes-validations in all versions. For each rule CEL builds an
	// environment, which takes a millisecond and a hundred kilobytes. The Gateway API, which has many rules, has 60
	// in one CRD.
	ruleLimit = 1000
	// longestRule is the maximum length of one rule, and totalRulesLength the maximum length of all rules together. The hub
	// parses and checks each rule.
	longestRule      = 8 << 10
	totalRulesLength = 256 << 10
	// ruleDepth is the maximum nesting of brackets in a rule: CEL compares the types of lists in lists at every
	// level.
	ruleDepth = 24
	// ruleScope is the maximum number of fields that all rules together cover. CEL declares the types of all fields
	// below a rule, so rules on many levels of a large schema multiply.
	ruleScope = 500_000
	// enumLimit is the maximum number of values in all enums.
	enumLimit = 20_000
	// patternLength is the maximum length of one pattern, and patternSize the maximum size of the compiled programs of all
	// patterns. Three characters can express a repetition that the compiler unrolls a thousand times.
	patternLength = 4 << 10
	patternSize   = 200_000
)

// TooLargeError is returned for a CRD or document that exceeds a limit and would take too long to validate.
type TooLargeError struct {
	// Limit is the maximum number of the parts that What names in the plural, for example "rules".
	What  string
	Limit int
}

func (e *TooLargeError) Error() string { return fmt.Sprintf("it has more than %d %s", e.Limit, e.What) }

// CheckJSON returns a [*TooLargeError] for JSON that is larger than limit bytes or too deep to be decoded. CheckJSON
// only reads brackets and strings, so content that passes can still be malformed.
func CheckJSON(content []byte, limit int) error {
	if len(content) > limit {
		return &TooLargeError{"bytes", limit}
	}
	depth, inText := 0, false
	for i := 0; i < len(content); i++ {
		switch char := content[i]; {
		case inText && char == '\\':
			i++
		case char == '"':
			inText = !inText
		case inText:
		case char == '{' || char == '[':
			if depth++; depth > jsonDepth {
				return &TooLargeError{"levels of JSON", jsonDepth}
			}
		case char == '}' || char == ']':
			depth--
		}
	}
	return nil
}

// CheckDefinition returns a [*TooLargeError] for a CRD that exceeds a limit. It visits each part once.
func CheckDefinition(crd *apiextensionsv1.CustomResourceDefinition) error {
	if len(crd.Spec.Versions) > versionLimit {
		return &TooLargeError{"versions", versionLimit}
	}
	m := &sizeCounter{}
	for i := range crd.Spec.Versions {
		if schema := crd.Spec.Versions[i].Schema; schema != nil && schema.OpenAPIV3Schema != nil {
			m.node(schema.OpenAPIV3Schema, 0)
		}
	}
	return m.limitError
}

// CheckSchema returns a [*TooLargeError] for a schema that exceeds a limit.
func CheckSchema(root *apiextensionsv1.JSONSchemaProps) error {
	m := &sizeCounter{}
	m.node(root, 0)
	return m.limitError
}

// CountNodes returns the number of fields, items and alternatives of a schema, including the schema itself.
func CountNodes(s *apiextensionsv1.JSONSchemaProps) int {
	nodes := 1
	for _, child := range childProps(s) {
		nodes += CountNodes(child)
	}
	return nodes
}

// sizeCounter counts the parts of schemas. It stops at the first exceeded limit.
type sizeCounter struct {
	nodes, rules, ruleBytes, scope, enum, program int
	limitError                                    error
}

func (m *sizeCounter) add(count *int, more, limit int, what string) {
	if *count += more; *count > limit && m.limitError == nil {
		m.limitError = &TooLargeError{what, limit}
	}
}

// node counts a schema and everything in it, and returns the number of nodes.
func (m *sizeCounter) node(s *apiextensionsv1.JSONSchemaProps, depth int) (nodes int) {
	if m.add(&m.nodes, 1, nodeLimit, "fields"); depth > fieldDepth && m.limitError == nil {
		m.limitError = &TooLargeError{"levels of fields", fieldDepth}
	}
	m.add(&m.enum, len(s.Enum), enumLimit, "values in enums")
	m.pattern(s.Pattern)
	m.add(&m.rules, len(s.XValidations), ruleLimit, "rules")
	if m.limitError != nil {
		return 0
	}
	nodes = 1
	for _, child := range childProps(s) {
		if nodes += m.node(child, depth+1); m.limitError != nil {
			return 0
		}
	}
	if len(s.XValidations) > 0 {
		// All rules of one node share an environment.
		m.add(&m.scope, nodes, ruleScope, "fields that rules look at")
	}
	for i := range s.XValidations {
		rule := &s.XValidations[i]
		length := len(rule.Rule) + len(rule.MessageExpression)
		m.add(new(int), length, longestRule, "characters in one rule")
		m.add(new(int), max(depthOf(rule.Rule), depthOf(rule.MessageExpression)), ruleDepth, "brackets within each other in a rule")
		m.add(&m.ruleBytes, length, totalRulesLength, "characters in all rules")
	}
	return nodes
}

func (m *sizeCounter) pattern(pattern string) {
	if pattern == "" {
		return
	}
	if m.add(new(int), len(pattern), patternLength, "characters in one pattern"); m.limitError != nil {
		return
	}
	m.add(&m.program, PatternSize(pattern), patternSize, "steps in the patterns")
}

// depthOf returns the nesting of brackets in a rule, including brackets in its string literals.
func depthOf(rule string) (deepest int) {
	depth := 0
	for _, char := range rule {
		switch char {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		}
		deepest = max(deepest, depth)
	}
	return deepest
}

// PatternSize returns the approximate number of instructions that a pattern compiles to. It returns 0 for an invalid
// pattern.
func PatternSize(pattern string) int {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0
	}
	return sizeOf(parsed)
}

// sizeOf returns the approximate number of instructions of a pattern, with each repetition unrolled.
func sizeOf(pattern *syntax.Regexp) int {
	size := 1 + len(pattern.Rune)
	for _, part := range pattern.Sub {
		size = min(size+sizeOf(part), patternSize+1)
	}
	if pattern.Op == syntax.OpRepeat {
		size = min(size*max(pattern.Min, pattern.Max, 1), patternSize+1)
	}
	return size
}

// childProps lists the schemas directly within a schema.
func childProps(s *apiextensionsv1.JSONSchemaProps) (all []*apiextensionsv1.JSONSchemaProps) {
	for _, properties := range []map[string]apiextensionsv1.JSONSchemaProps{s.Properties, s.PatternProperties, s.Definitions} {
		for name := range properties {
			all = append(all, new(properties[name]))
		}
	}
	if s.Items != nil {
		all = appendSchemas(appendSchema(all, s.Items.Schema), s.Items.JSONSchemas)
	}
	for _, other := range []*apiextensionsv1.JSONSchemaPropsOrBool{s.AdditionalProperties, s.AdditionalItems} {
		if other != nil {
			all = appendSchema(all, other.Schema)
		}
	}
	for name := range s.Dependencies {
		all = appendSchema(all, s.Dependencies[name].Schema)
	}
	for _, branches := range [][]apiextensionsv1.JSONSchemaProps{s.AllOf, s.AnyOf, s.OneOf} {
		all = appendSchemas(all, branches)
	}
	return appendSchema(all, s.Not)
}

func appendSchema(all []*apiextensionsv1.JSONSchemaProps, one *apiextensionsv1.JSONSchemaProps) []*apiextensionsv1.JSONSchemaProps {
	if one != nil {
		all = append(all, one)
	}
	return all
}

func appendSchemas(all []*apiextensionsv1.JSONSchemaProps, more []apiextensionsv1.JSONSchemaProps) []*apiextensionsv1.JSONSchemaProps {
	for i := range more {
		all = append(all, &more[i])
	}
	return all
}
