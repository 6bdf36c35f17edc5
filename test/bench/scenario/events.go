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
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/synchub-dev/synchub/test/bench/figures"
	"github.com/synchub-dev/synchub/test/framework"
)

// routed is how a benchmark tells what an event costs with so many mailboxes.
var routed = regexp.MustCompile(`(?m)^BenchmarkEvents/fleet=(\d+)\S*\s+\d+\s+([\d.]+) ns/op`)

// turns is how often each of the two is measured in a round, in turn and for a short time only: an event takes less than a
// microsecond, and a machine that does something else for a second would be all that is seen.
const turns = 15

// events feeds events to the hub's router, which is reached from its own package only.
func events(ctx context.Context, w *World) ([]figures.Row, error) {
	row := figures.Row{What: "an event of a mailbox to its subscriber, with 1,000 mailboxes against 10", Unit: "ns", Limit: new(1.1)}
	folder, err := os.MkdirTemp("", "synchub-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // it is a temporary folder
	root, err := framework.RepositoryRoot()
	if err != nil {
		return nil, err
	}
	feeder := filepath.Join(folder, "feeder")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", feeder, "./provider/mailboxes")
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build what feeds the router: %w\n%s", err, bytes.TrimSpace(output))
	}
	for range w.Rounds {
		var many, few []float64
		for range turns {
			costs, err := feed(ctx, feeder)
			if err != nil {
				return nil, err
			}
			many, few = append(many, costs["1000"]), append(few, costs["10"])
		}
		row.Hub, row.Direct = append(row.Hub, figures.Median(many)), append(row.Direct, figures.Median(few))
	}
	return []figures.Row{row}, nil
}

// feed returns how many nanoseconds an event takes, by the number of mailboxes.
func feed(ctx context.Context, feeder string) (map[string]float64, error) {
	output, err := exec.CommandContext(ctx, feeder, "-test.run", "^$", "-test.bench", "^BenchmarkEvents$", "-test.benchtime", "100ms").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("feed the router: %w\n%s", err, bytes.TrimSpace(output))
	}
	costs := map[string]float64{}
	for _, match := range routed.FindAllSubmatch(output, -1) {
		if costs[string(match[1])], err = strconv.ParseFloat(string(match[2]), 64); err != nil {
			return nil, fmt.Errorf("read what the router takes: %w", err)
		}
	}
	if costs["10"] == 0 || costs["1000"] == 0 {
		return nil, fmt.Errorf("the benchmark of the router does not tell what it takes:\n%s", output)
	}
	return costs, nil
}
