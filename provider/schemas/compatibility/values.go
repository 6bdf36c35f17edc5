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
	"fmt"
	"math"
	"reflect"
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

// fewValues returns the values of an enum if the schema accepts no other values and there are few enough to try one by one.
// Where the type is open, servers accept more values than the enum lists: 1.5 for 1, and 97 for "a".
func fewValues(s *schema) (values []any, few bool) {
	enum := enumOf(s)
	if len(enum) > tryLimit || s.Type != "string" && s.Type != "boolean" && s.Type != "integer" {
		return nil, false
	}
	for _, raw := range enum {
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

// enumOf returns the enum of a schema. A nullable schema may have its enum in allOf, where it does not refuse null.
func enumOf(s *schema) []apiextensionsv1.JSON {
	if len(s.Enum) == 0 && hasEnumInAllOf(s) {
		return s.AllOf[0].Enum
	}
	return s.Enum
}

// hasEnumInAllOf reports whether allOf consists of an enum.
func hasEnumInAllOf(s *schema) bool {
	return len(s.AllOf) == 1 && reflect.DeepEqual(s.AllOf[0], schema{Enum: s.AllOf[0].Enum})
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
	mineEnum, theirEnum := enumOf(mine), enumOf(theirs)
	if len(theirEnum) == 0 {
		return
	}
	known := sets.New[string]()
	for _, value := range theirEnum {
		known.Insert(string(value.Raw))
	}
	isOther := func(value apiextensionsv1.JSON) bool { return !known.Has(string(value.Raw)) }
	if len(mineEnum) == 0 || slices.ContainsFunc(mineEnum, isOther) {
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

// number compares the schemas of numbers.
func (c *comparison) number(at location, mine, theirs *schema) {
	if !c.areBoundsUsable(mine, theirs) {
		c.addFinding(at, ReasonRange, "the target's bounds are no numbers of its type")
		return
	}
	lowest := theirs.Minimum == nil || mine.Minimum != nil &&
		isTighterBound(*mine.Minimum, mine.ExclusiveMinimum, *theirs.Minimum, theirs.ExclusiveMinimum)
	highest := theirs.Maximum == nil || mine.Maximum != nil &&
		isTighterBound(-*mine.Maximum, mine.ExclusiveMaximum, -*theirs.Maximum, theirs.ExclusiveMaximum)
	if !lowest || !highest {
		c.addFinding(at, ReasonRange, "the target takes numbers %s, the mailbox %s", formatInterval(theirs), formatInterval(mine))
	}
	if theirs.MultipleOf != nil && !isMultipleOf(mine, *theirs.MultipleOf) {
		c.addFinding(at, ReasonMultipleOf, "the target takes multiples of %v only", *theirs.MultipleOf)
	}
}

// isTighterBound reports whether every number above one lower bound is above the other too. Servers truncate the
// fraction of a bound for integer values, so a bound that is only slightly higher does not make up for an exclusive
// one.
func isTighterBound(mine float64, excluded bool, theirs float64, theyExclude bool) bool {
	switch {
	case mine == theirs:
		return excluded || !theyExclude
	case mine < theirs:
		return false
	default:
		return excluded || !theyExclude || math.Trunc(mine) > math.Trunc(theirs)
	}
}

// areBoundsUsable reports whether the target's bounds can be compared. For an integer field, a server refuses every
// value if the bound is not an integer or does not fit the format. A mailbox with the same bound then refuses every
// value too.
func (c *comparison) areBoundsUsable(mine, theirs *schema) bool {
	if !isInteger(theirs) {
		return true
	}
	for _, bound := range [][2]*float64{{mine.Minimum, theirs.Minimum}, {mine.Maximum, theirs.Maximum}, {mine.MultipleOf, theirs.MultipleOf}} {
		same := bound[0] != nil && bound[1] != nil && *bound[0] == *bound[1] && mine.Format == theirs.Format && isInteger(mine)
		if bound[1] != nil && !same && !isRepresentable(*bound[1], theirs.Format) {
			return false
		}
	}
	return true
}

func isRepresentable(bound float64, format string) bool {
	limit := math.Ldexp(1, 53)
	if format == "int32" {
		limit = math.MaxInt32
	}
	return bound == math.Trunc(bound) && math.Abs(bound) <= limit
}

// isMultipleOf reports whether all numbers of a schema are multiples of a factor.
func isMultipleOf(s *schema, factor float64) bool {
	switch {
	case factor == 1 && isInteger(s):
		return true
	case s.MultipleOf == nil:
		return false
	case *s.MultipleOf == factor:
		return true
	default:
		whole := *s.MultipleOf == math.Trunc(*s.MultipleOf) && factor == math.Trunc(factor)
		return whole && factor != 0 && math.Mod(*s.MultipleOf, factor) == 0
	}
}

func formatInterval(s *schema) string {
	low, high := "(…", "…)"
	if s.Minimum != nil {
		low = fmt.Sprintf("[%v", *s.Minimum)
		if s.ExclusiveMinimum {
			low = fmt.Sprintf("(%v", *s.Minimum)
		}
	}
	if s.Maximum != nil {
		high = fmt.Sprintf("%v]", *s.Maximum)
		if s.ExclusiveMaximum {
			high = fmt.Sprintf("%v)", *s.Maximum)
		}
	}
	return low + ", " + high
}

// isRangeWithin reports whether the range low to high is within the range theirLow to theirHigh. A nil limit is open.
func isRangeWithin(low, high, theirLow, theirHigh *int64) bool {
	return (theirLow == nil || *theirLow <= 0 || low != nil && *low >= *theirLow) && (theirHigh == nil || high != nil && *high <= *theirHigh)
}

func formatRange(low, high *int64) string {
	switch {
	case low == nil && high == nil:
		return "any number of"
	case low == nil:
		return fmt.Sprintf("up to %d", *high)
	case high == nil:
		return fmt.Sprintf("at least %d", *low)
	default:
		return fmt.Sprintf("%d to %d", *low, *high)
	}
}
