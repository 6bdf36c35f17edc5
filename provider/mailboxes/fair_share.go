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

// stepsPerDoubling is the number of steps from one fair share to its double. The fair share changes by whole steps, so that it
// does not change with each object.
const stepsPerDoubling = 4

// fairShare returns the highest bound for each mailbox with which all mailboxes fit into the room: mailboxes that want less
// get all they want, and each of the larger ones gets the fair share. It sorts wanted. If all fit without a bound, it returns
// [math.MaxInt64].
func fairShare(wanted []int64, room int64) int64 {
	slices.Sort(wanted)
	for i, bytes := range wanted {
		share := room / int64(len(wanted)-i)
		if bytes > share {
			return max(share, 1)
		}
		room -= bytes
	}
	return math.MaxInt64
}

// roundDownToStep returns the highest step that is not above a share.
func roundDownToStep(share int64) int64 {
	exponent := math.Ceil(math.Log2(float64(share)) * stepsPerDoubling)
	for ; ; exponent-- {
		if step := stepAt(exponent); step <= share {
			return step
		}
	}
}

func stepAt(exponent float64) int64 { return max(int64(math.Exp2(exponent/stepsPerDoubling)), 1) }

// nextFairShare returns the fair share after another one; zero means no bound. It falls as soon as necessary, and rises only
// if all mailboxes would also fit into a step less than the room.
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
	reduced := fairShare(wanted, stepBelow(room))
	if reduced == math.MaxInt64 {
		return 0
	}
	return max(before, roundDownToStep(reduced))
}

// stepBelow returns one step less than an amount.
func stepBelow(amount int64) int64 {
	return int64(float64(amount) * math.Exp2(-1.0/stepsPerDoubling))
}
