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
	"runtime"
	"runtime/debug"
	"time"
)

// gcPercent is the GOGC value of the hub. The hub reads much and keeps little of it: with Go's default of 100,
// garbage collection took a fifth of the processor time of a burst.
const gcPercent = 200

// configureGC makes the garbage collector run rarely while memory is free, and more often near nine tenths of the
// limit, in bytes. The remaining tenth is for memory that Go does not count. configureGC leaves values from GOGC and
// GOMEMLIMIT unchanged. A limit of zero means no limit.
func configureGC(memoryLimit int64) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" && memoryLimit > 0 {
		debug.SetMemoryLimit(memoryLimit / 10 * 9)
	}
}

// defaultMemory is the memory, in bytes, that Go may use in a container with the chart's defaults.
const defaultMemory = 1 << 30 / 10 * 9

// defaultMailboxesBytes returns the default memory for objects of mailboxes: a fifth of the memory that Go may use.
// These objects cause the same amount again in the caches of targets and in queues, and while the hub reads a list.
// The rest is for connections and garbage.
func defaultMailboxesBytes() int64 { return goMemoryLimit() / 5 }

// defaultTargetsBytes returns the default memory for the caches of targets: a quarter of the memory that Go may use.
// Downsynced objects take about as much there as in the mailboxes, and some memory always stays free.
func defaultTargetsBytes() int64 { return goMemoryLimit() / 4 }

// goMemoryLimit returns the number of bytes that Go may use.
func goMemoryLimit() int64 {
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		return limit
	}
	return defaultMemory
}

const (
	// mutexProfileFraction and blockProfileRate are the sampling rates of the profiles: one of so many contended
	// locks, and one sample per so much waiting time. Both are low, so that profiling does not slow down the hub.
	mutexProfileFraction = 100
	blockProfileRate     = 100 * time.Millisecond
)

// enableContentionProfiles enables the profiles "mutex" and "block", which Go leaves empty by default.
func enableContentionProfiles() {
	runtime.SetMutexProfileFraction(mutexProfileFraction)
	runtime.SetBlockProfileRate(int(blockProfileRate.Nanoseconds()))
}
