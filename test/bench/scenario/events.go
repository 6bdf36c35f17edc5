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

	"github.com/synchub-dev/synchub/test/bench/report"
	"github.com/synchub-dev/synchub/test/framework"
)

// benchmarkLine matches the output of a benchmark of the cost per event, with the numbers of all and of real mailboxes.
var benchmarkLine = regexp.MustCompile(`(?m)^BenchmarkEvents/fleet=(\d+)/real=(\d+)\S*\s+\d+\s+([\d.]+) ns/op`)

// repetitions is how often each of the two is measured in a round, alternating and briefly. An event takes less than a
// microsecond, and one busy second of the machine would otherwise dominate the result.
const repetitions = 15

// events feeds events to the hub's router, which only its own package can reach. The mailboxes of the fleet are real and
// watched as the hub watches them; all other mailboxes are fake.
func events(ctx context.Context, w *Env) ([]report.Row, error) {
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
	row := report.Row{Unit: "ns", Limit: new(1.1)}
	for range w.Rounds {
		costs, err := feed(ctx, feeder, w.Installation.HubKubeconfig)
		if err != nil {
			return nil, err
		}
		many, few := costs["1000"], costs["10"]
		row.Hub, row.Direct = append(row.Hub, report.Median(many.nanoseconds)), append(row.Direct, report.Median(few.nanoseconds))
		row.What = fmt.Sprintf("an event of a mailbox to its subscriber, with 1,000 mailboxes (%s of them real), against 10", many.real)
	}
	return []report.Row{row}, nil
}

// eventCost holds the cost per event of each repetition, with the number of real mailboxes.
type eventCost struct {
	nanoseconds []float64
	real        string
}

// feed runs the benchmark and returns the costs by the number of mailboxes.
func feed(ctx context.Context, feeder, kubeconfig string) (map[string]eventCost, error) {
	output, err := exec.CommandContext(ctx, feeder, "-test.run", "^$", "-test.bench", "^BenchmarkEvents$", "-test.benchtime", "100ms",
		"-kcp-kubeconfig", kubeconfig, "-turns", strconv.Itoa(repetitions)).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("feed the router: %w\n%s", err, bytes.TrimSpace(output))
	}
	costs := map[string]eventCost{}
	for _, match := range benchmarkLine.FindAllSubmatch(output, -1) {
		nanoseconds, err := strconv.ParseFloat(string(match[3]), 64)
		if err != nil {
			return nil, fmt.Errorf("read what the router takes: %w", err)
		}
		fleet := string(match[1])
		costs[fleet] = eventCost{nanoseconds: append(costs[fleet].nanoseconds, nanoseconds), real: string(match[2])}
	}
	if len(costs["10"].nanoseconds) != repetitions || len(costs["1000"].nanoseconds) != repetitions {
		return nil, fmt.Errorf("the output of the router's benchmark has no result:\n%s", output)
	}
	return costs, nil
}
