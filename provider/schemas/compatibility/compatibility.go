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
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Reason is a constant for the reason why an object of the mailbox may not fit.
type Reason string

// Reasons of findings, each named after the keyword that is narrower on the target.
const (
	ReasonType         Reason = "Type"
	ReasonNull         Reason = "Null"
	ReasonFormat       Reason = "Format"
	ReasonEnum         Reason = "Enum"
	ReasonRange        Reason = "Range"
	ReasonMultipleOf   Reason = "MultipleOf"
	ReasonLength       Reason = "Length"
	ReasonPattern      Reason = "Pattern"
	ReasonItems        Reason = "Items"
	ReasonDuplicates   Reason = "Duplicates"
	ReasonProperties   Reason = "Properties"
	ReasonRequired     Reason = "Required"
	ReasonEmbedded     Reason = "EmbeddedResource"
	ReasonRule         Reason = "Rule"
	ReasonAlternatives Reason = "Alternatives"
	ReasonDefault      Reason = "Default"
	// ReasonFieldLost: the target's schema lacks the field. The target drops or refuses its content.
	ReasonFieldLost Reason = "FieldLost"
	// ReasonTooLarge: the schemas are too large to compare, or there are more findings than the list may have.
	ReasonTooLarge Reason = "TooLarge"
)

const (
	// findingLimit is the maximum number of findings. Readers repair the first ones and compare again.
	findingLimit = 50
	// stepLimit is the maximum number of compared fields, values, rules and alternatives. A Pod has 4,000. Where only
	// one side names fields, Compare compares each of them with the same schema.
	stepLimit = 200_000
	// depthLimit is the maximum nesting of fields.
	depthLimit = 200
)

// Finding is a difference that may keep an object of the mailbox from fitting into the target.
type Finding struct {
	// Field is the path in the object, for example spec.containers[].ports, with * for any name. It is empty for the
	// whole object.
	Field string
	// Reason is a constant. Message gives details, as the rest of a sentence about the field.
	Reason  Reason
	Message string
}

// String returns the finding on one line.
func (f Finding) String() string {
	if f.Field == "" {
		return f.Message
	}
	return f.Field + ": " + f.Message
}

// schema is an alias for the compared type. The zero value accepts only objects without fields, so a schema is never
// nil.
type schema = apiextensionsv1.JSONSchemaProps

// Compare returns the reasons why objects that the mailbox's schema accepts may not fit into the target's schema. It
// returns nothing if all objects fit. Both schemas describe whole objects; a nil schema accepts everything. When ctx
// ends, Compare stops and adds a finding with ReasonTooLarge.
func Compare(ctx context.Context, mailbox, target *apiextensionsv1.JSONSchemaProps) []Finding {
	c := &comparison{ctx: ctx}
	c.compare(location{}, resource(orAnyValue(mailbox)), resource(orAnyValue(target)))
	return c.findings
}

// comparison is the state of one call of Compare.
type comparison struct {
	ctx      context.Context
	findings []Finding
	steps    int
}

// location is the comparison's position in an object.
type location struct {
	path  string
	depth int
	// crossField is true if the target restricts several fields together: by a rule, an alternative, a number of
	// fields or a set. Fields that the target defaults or drops matter then.
	crossField bool
}

func (c *comparison) addFinding(at location, reason Reason, format string, args ...any) {
	switch {
	case len(c.findings) < findingLimit:
		c.findings = append(c.findings, Finding{Field: at.path, Reason: reason, Message: fmt.Sprintf(format, args...)})
	case len(c.findings) == findingLimit:
		c.findings = append(c.findings, Finding{Reason: ReasonTooLarge, Message: fmt.Sprintf("there are more than %d differences", findingLimit)})
	}
}

// spendSteps counts steps. It returns false when Compare should stop: at the limits, or when the context has ended.
func (c *comparison) spendSteps(steps int) bool {
	before := c.steps
	if c.steps += steps; before <= stepLimit && (c.steps > stepLimit || c.ctx.Err() != nil) {
		c.steps = stepLimit + 1
		c.findings = append(c.findings, Finding{Reason: ReasonTooLarge, Message: fmt.Sprintf("the schemas have more than %d fields to compare, or it took too long", stepLimit)})
	}
	return c.steps <= stepLimit && len(c.findings) <= findingLimit
}

// compare compares the schemas of one location. The caller compares null, which depends on the location.
func (c *comparison) compare(at location, mine, theirs *schema) {
	if !c.spendSteps(1) || theirs == anyValue {
		return
	}
	if theirs == prunedValue {
		if mine != prunedValue && kindsOf(mine)&(object|list) != 0 {
			c.addFinding(at, ReasonFieldLost, "the target drops the fields of objects there")
		}
		return
	}
	if at.depth++; at.depth > depthLimit {
		c.addFinding(at, ReasonTooLarge, "the schemas are nested more than %d times", depthLimit)
		return
	}
	if !c.spendSteps(weightOf(mine) + weightOf(theirs)) {
		return
	}
	at.crossField = at.crossField || hasCrossFieldRules(theirs)
	c.rules(at, mine, theirs)
	if values, few := fewValues(mine); few {
		c.compareValues(at, values, mine, theirs)
		return
	}
	kinds := kindsOf(mine)
	if more := kinds &^ kindsOf(theirs); more != 0 {
		c.addFinding(at, ReasonType, "the mailbox takes %s, the target %s", kinds, kindsOf(theirs))
		return
	}
	c.enum(at, mine, theirs)
	c.alternatives(at, mine, theirs)
	c.format(at, mine, theirs)
	if kinds&text != 0 {
		c.text(at, mine, theirs)
	}
	if kinds&(integer|fraction) != 0 {
		c.number(at, mine, theirs)
	}
	if kinds&list != 0 {
		c.list(at, mine, theirs)
	}
	if kinds&object != 0 {
		c.object(at, mine, theirs)
	}
}
