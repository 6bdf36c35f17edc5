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
	"runtime"
	"time"
)

const (
	// mutexProfileFraction and blockedEach are how much of what goroutines wait for is in the profiles: one of so many contended locks, and
	// one wait for so long that was waited in all. A hub of which profiles are taken is to be as fast as one of which none are.
	mutexProfileFraction = 100
	blockProfileRate     = 100 * time.Millisecond
)

// enableContentionProfiles fills the profiles "mutex" and "block", which Go leaves empty unless it is asked.
func enableContentionProfiles() {
	runtime.SetMutexProfileFraction(mutexProfileFraction)
	runtime.SetBlockProfileRate(int(blockProfileRate.Nanoseconds()))
}
