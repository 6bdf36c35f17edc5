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
	"math"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// tryLimit is the maximum number of enum values that Compare tries one by one.
const tryLimit = 256

// fewValues returns the values of an enum if the schema accepts no others and there are few enough to try one by one.
// Where the type is open, servers accept more values than the enum lists: 1.5 for 1, and 97 for "a".
func fewValues(s *schema) (values []any, few bool) {
	if len(s.Enum) > tryLimit || s.Type != "string" && s.Type != "boolean" && s.Type != "integer" {
		return nil, false
	}
	for _, raw := range s.Enum {
		var value any
		if err := json.Unmarshal(raw.Raw, &value); err != nil {
			return nil, false
		}
		if _, isText := value.(string); isText && s.Type == "integer" {
			return nil, false
		}
		values = append(values, value)
	}
	return values, len(values) > 0
}

// compareValues validates values of the mailbox against the target's schema.
func (c *comparison) compareValues(at location, values []any, mine, theirs *schema) {
	ours, err := newScalarValidator(mine)
	if err != nil {
		c.addFinding(at, ReasonTooLarge, "the mailbox's schema cannot be read: %v", err)
		return
	}
	target, err := newScalarValidator(theirs)
	if err != nil {
		c.addFinding(at, ReasonTooLarge, "the target's schema cannot be read: %v", err)
		return
	}
	for _, value := range values {
		if ours.accepts(value) && !target.accepts(value) {
			c.addFinding(at, ReasonEnum, "the target does not take the value %v", value)
		}
	}
}

// scalarValidator validates scalars as a server does.
type scalarValidator struct{ validator validation.SchemaValidator }

func newScalarValidator(s *schema) (scalarValidator, error) {
	scalar := *s
	scalar.Properties, scalar.AdditionalProperties, scalar.Items, scalar.Default = nil, nil, nil, nil
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&scalar, &internal, nil); err != nil {
		return scalarValidator{}, err
	}
	validator, _, err := validation.NewSchemaValidator(&internal)
	return scalarValidator{validator}, err
}

func (v scalarValidator) accepts(value any) bool {
	return len(validation.ValidateCustomResource(nil, value, v.validator)) == 0
}

// enum adds a finding if the mailbox accepts values that the target does not list.
func (c *comparison) enum(at location, mine, theirs *schema) {
	if len(theirs.Enum) == 0 {
		return
	}
	known := sets.New[string]()
	for _, value := range theirs.Enum {
		known.Insert(string(value.Raw))
	}
	isOther := func(value apiextensionsv1.JSON) bool { return !known.Has(string(value.Raw)) }
	if len(mine.Enum) == 0 || slices.ContainsFunc(mine.Enum, isOther) {
		c.addFinding(at, ReasonEnum, "the target takes only some values")
	}
}

// text compares the schemas of strings.
func (c *comparison) text(at location, mine, theirs *schema) {
	if !isRangeWithin(mine.MinLength, mine.MaxLength, theirs.MinLength, theirs.MaxLength) {
		c.addFinding(at, ReasonLength, "the target takes %s characters, the mailbox %s", formatRange(theirs.MinLength, theirs.MaxLength), formatRange(mine.MinLength, mine.MaxLength))
	}
	if theirs.Pattern != "" && theirs.Pattern != mine.Pattern {
		c.addFinding(at, ReasonPattern, "the mailbox does not have the target's pattern %q", shorten(theirs.Pattern))
	}
}

// latest is newer than any server, so that formats that older servers ignore are compared too.
var latest = version.MajorMinor(1, math.MaxInt32)

// formatOf returns the format of a schema in comparable form. It is empty if no server enforces the format.
func formatOf(s *schema) string {
	judged := &spec.Schema{SchemaProps: spec.SchemaProps{Format: s.Format}}
	switch {
	case s.XIntOrString:
		judged.Type = spec.StringOrArray{"integer", "string"}
	case s.Type != "":
		judged.Type = spec.StringOrArray{s.Type}
	}
	if err := validation.StripUnsupportedFormatsPostProcessorForVersion(latest)(judged); err != nil {
		return s.Format
	}
	return strings.ReplaceAll(judged.Format, "-", "")
}

// format compares the formats of strings and numbers.
func (c *comparison) format(at location, mine, theirs *schema) {
	format := formatOf(theirs)
	switch format {
	case "", formatOf(mine):
		// With a format but no type, a server refuses every value that is not a string.
		if format == "" || theirs.Type != "" || theirs.XIntOrString || mine.Type == "" && !mine.XIntOrString || mine.Type == "string" {
			return
		}
	case "int64", "double":
		return // JSON has no larger numbers
	case "int32":
		if isInteger(mine) && inRange(mine, math.MinInt32, math.MaxInt32) {
			return
		}
	case "float":
		if isInteger(mine) || inRange(mine, -math.MaxFloat32, math.MaxFloat32) {
			return
		}
	}
	c.addFinding(at, ReasonFormat, "the mailbox does not have the target's format %q", theirs.Format)
}

func isInteger(s *schema) bool { return s.Type == "integer" }

// inRange reports whether a schema's own bounds keep its numbers between low and high.
func inRange(s *schema, low, high float64) bool {
	return s.Minimum != nil && *s.Minimum >= low && s.Maximum != nil && *s.Maximum <= high
}
