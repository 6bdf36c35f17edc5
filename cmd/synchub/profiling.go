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
