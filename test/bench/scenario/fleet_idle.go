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

package scenario

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	gosync "sync"
	"time"

	"github.com/onsi/gomega"

	"github.com/synchub-dev/synchub/test/bench/report"
	"github.com/synchub-dev/synchub/test/scale"
)

const (
	// idleObjects is the number of objects of each target in an idle fleet.
	idleObjects = 10
	// idleFor is how long the idle fleet is measured.
	idleFor = time.Minute
)

// fleetIdle measures an idle fleet that is in sync. It runs the scale test, including its assertions.
func fleetIdle(ctx context.Context, w *Env) ([]report.Row, error) {
	subject := scale.Config{
		Installation: w.Installation, Hub: w.Hub, Inventory: w.Inventory, Fleet: w.Fleet,
		Targets: w.Idle, Objects: idleObjects, Resources: scale.MostResources, Quiet: idleFor, Progress: w.progress,
	}
	var measured scale.Measurements
	if err := asserted(func(g gomega.Gomega) {
		scale.Run(ctx, g, subject, func(figures scale.Measurements) { measured = figures })
	}); err != nil {
		return nil, err
	}
	what := fmt.Sprintf("%d targets with %d resources each, while nothing happens: ", measured.Targets, measured.Resources)
	return []report.Row{
		{What: what + "processor", Unit: "% of a core", Hub: []float64{100 * measured.IdleCPU}, Limit: new(5.0)},
		{What: what + "resident memory", Unit: "MiB", Hub: []float64{measured.ResidentBytes / (1 << 20)}, Limit: new(1024.0)},
		{What: what + "heap in use", Unit: "MiB", Hub: []float64{measured.HeapBytes / (1 << 20)}},
	}, nil
}

// asserted runs a function with assertions, and returns the first that fails. A failed assertion ends the goroutine of the
// function.
func asserted(run func(gomega.Gomega)) error {
	var first error
	var lock gosync.Mutex
	var running gosync.WaitGroup
	running.Go(func() {
		run(gomega.NewGomega(func(message string, _ ...int) {
			lock.Lock()
			first = cmp.Or(first, errors.New(message))
			lock.Unlock()
			runtime.Goexit()
		}))
	})
	running.Wait()
	return first
}
