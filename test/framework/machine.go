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

package framework

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Machine describes the number of processors, the memory and the Go version.
func Machine() string {
	memory := "unknown memory"
	if content, err := os.ReadFile("/proc/meminfo"); err == nil {
		var kibi float64
		if _, err := fmt.Sscanf(strings.TrimSpace(string(content)), "MemTotal: %f kB", &kibi); err == nil {
			memory = fmt.Sprintf("%.0f GiB", kibi/(1<<20))
		}
	}
	return fmt.Sprintf("%d cores, %s, %s %s/%s", runtime.NumCPU(), memory, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
