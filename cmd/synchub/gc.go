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

package main

import (
	"math"
	"os"
	"runtime/debug"
)

// gcPercent is how much garbage may come up beside 100 bytes that are kept before it is collected. A hub reads much and keeps
// little of it: with Go's own 100 it collected garbage for a fifth of the processor time of a burst.
const gcPercent = 200

// configureGC has garbage collected seldom while there is memory, and more often near nine tenths of the limit, in bytes: the
// rest is for what Go does not count. What GOGC and GOMEMLIMIT say stays as it is; a limit of zero is none.
func configureGC(memoryLimit int64) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" && memoryLimit > 0 {
		debug.SetMemoryLimit(memoryLimit / 10 * 9)
	}
}

// defaultMemory is how much Go may take in the container of the chart's defaults.
const defaultMemory = 1 << 30 / 10 * 9

// defaultMailboxesBytes returns how much of the memory that Go may take is for objects of mailboxes, a fifth: what they cause besides takes
// as much once more, in the caches of targets and in queues, and while a list is read; the rest is for connections and garbage.
func defaultMailboxesBytes() int64 { return goMemoryLimit() / 5 }

// defaultTargetsBytes returns how much of it is for what is held of targets, a quarter: what goes down takes about as much there as in the
// mailboxes, and some is always kept free.
func defaultTargetsBytes() int64 { return goMemoryLimit() / 4 }

// goMemoryLimit returns how many bytes Go may take.
func goMemoryLimit() int64 {
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		return limit
	}
	return defaultMemory
}
