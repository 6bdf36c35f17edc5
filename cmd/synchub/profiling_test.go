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
	"runtime/pprof"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestEnableContentionProfiles(t *testing.T) {
	g := NewWithT(t)
	fraction := runtime.SetMutexProfileFraction(-1)
	t.Cleanup(func() {
		runtime.SetMutexProfileFraction(fraction)
		runtime.SetBlockProfileRate(0)
	})
	enableContentionProfiles()
	g.Expect(runtime.SetMutexProfileFraction(-1)).To(Equal(mutexProfileFraction))
	// Waiting for the profile is a blocking event itself.
	g.Eventually(pprof.Lookup("block").Count).WithTimeout(time.Minute).Should(BeNumerically(">", 0))
}
