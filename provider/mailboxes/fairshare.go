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

package mailboxes

import (
	"math"
	"slices"
)

// stepsPerDoubling is how many levels there are between one and twice as much. The level moves by whole steps, so that it does not
// change with each object.
const stepsPerDoubling = 4

// fairShare returns how much each mailbox may have so that all together have no more than the room: those that want less have
// all they want, and the others as much as each other. wanted says what each wants, and is sorted. If there is room for all, the
// level is the highest there is.
func fairShare(wanted []int64, room int64) int64 {
	slices.Sort(wanted)
	for i, one := range wanted {
		share := room / int64(len(wanted)-i)
		if one > share {
			return max(share, 1)
		}
		room -= one
	}
	return math.MaxInt64
}

// roundDownToStep returns the highest step that is not above a level.
func roundDownToStep(level int64) int64 {
	exponent := math.Ceil(math.Log2(float64(level)) * stepsPerDoubling)
	for ; ; exponent-- {
		if step := stepAt(exponent); step <= level {
			return step
		}
	}
}

func stepAt(exponent float64) int64 { return max(int64(math.Exp2(exponent/stepsPerDoubling)), 1) }

// nextFairShare returns the level that takes the place of another; zero stands for none. It falls as soon as it must, and rises only
// if it can stay a step below what there is room for.
func nextFairShare(before int64, wanted []int64, room int64) int64 {
	exact := fairShare(wanted, room)
	if before == 0 {
		if exact == math.MaxInt64 {
			return 0
		}
		return roundDownToStep(exact)
	}
	if exact < before {
		return roundDownToStep(exact)
	}
	// What there is room for when everybody wants a step more.
	reduced := fairShare(wanted, stepBelow(room))
	if reduced == math.MaxInt64 {
		return 0
	}
	return max(before, roundDownToStep(reduced))
}

// stepBelow returns a step less than an amount.
func stepBelow(amount int64) int64 {
	return int64(float64(amount) * math.Exp2(-1.0/stepsPerDoubling))
}
