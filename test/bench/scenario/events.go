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
	"os/exec"
	"regexp"
	"strconv"

	"github.com/synchub-dev/synchub/test/bench/figures"
	"github.com/synchub-dev/synchub/test/framework"
)

// routed is how a benchmark tells what an event costs with so many mailboxes.
var routed = regexp.MustCompile(`(?m)^BenchmarkEvents/fleet=(\d+)\S*\s+\d+\s+([\d.]+) ns/op`)

// events feeds events to the hub's router, which is reached from its own package only.
func events(ctx context.Context, w *World) ([]figures.Row, error) {
	row := figures.Row{What: "an event of a mailbox to its subscriber, with 1,000 mailboxes against 10", Unit: "ns", Limit: new(1.1)}
	root, err := framework.RepositoryRoot()
	if err != nil {
		return nil, err
	}
	for range w.Rounds {
		command := exec.CommandContext(ctx, "go", "test", "./provider/mailboxes", "-run", "^$", "-bench", "^BenchmarkEvents$", "-benchtime", "1s")
		command.Dir = root
		output, err := command.CombinedOutput()
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
		row.Hub, row.Direct = append(row.Hub, costs["1000"]), append(row.Direct, costs["10"])
	}
	return []figures.Row{row}, nil
}
