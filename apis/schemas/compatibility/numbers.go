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
)

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
