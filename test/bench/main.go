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
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/synchub-dev/synchub/test/bench/baseline"
	"github.com/synchub-dev/synchub/test/bench/report"
	"github.com/synchub-dev/synchub/test/bench/scenario"
	"github.com/synchub-dev/synchub/test/framework"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if slices.Equal(args, []string{baseline.ProcessArgument}) {
		return baseline.Serve(ctx, os.Stdin, os.Stdout)
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	chosen := flags.String("scenario", "", "run only the scenarios that match this regular expression as a whole")
	quick := flags.Bool("quick", false, "use few targets, objects and rounds, and leave out the long run unless it is named")
	commit := flags.String("commit", "unknown", "what is measured, for the report")
	list := flags.Bool("list", false, "name the scenarios and end")
	if err := flags.Parse(args); err != nil {
		return err
	}
	pattern, err := regexp.Compile("^(?:" + *chosen + ")$")
	if err != nil {
		return fmt.Errorf("--scenario: %w", err)
	}
	wanted := func(one scenario.Scenario) bool {
		if *chosen == "" {
			return !*quick || !one.LongRunning
		}
		return pattern.MatchString(one.Name)
	}
	var scenarios []scenario.Scenario
	var names []string
	for _, one := range scenario.All {
		names = append(names, one.Name)
		if *list {
			fmt.Printf("%-16s %s\n", one.Name, one.About)
		}
		if wanted(one) {
			scenarios = append(scenarios, one)
		}
	}
	if *list {
		return nil
	}
	if len(scenarios) == 0 {
		return fmt.Errorf("--scenario: no scenario matches %q as a whole; there are %s", *chosen, strings.Join(names, ", "))
	}
	report := &report.Report{Commit: *commit, Machine: framework.Machine(), Date: time.Now().UTC(), Quick: *quick}
	// Measurements before a failure are valid, so the report is written in any case.
	return errors.Join(measure(ctx, scenarios, *quick, report), write(report))
}

// measure runs the scenarios in order, and adds their results to the report.
func measure(ctx context.Context, scenarios []scenario.Scenario, quick bool, report *report.Report) error {
	size := scenario.Full
	if quick {
		size = scenario.Quick
	}
	for _, together := range scenario.GroupByEnv(scenarios, quick) {
		if err := measureGroup(ctx, together, size, report); err != nil {
			return err
		}
	}
	return nil
}

// measureGroup runs scenarios in the same environment.
func measureGroup(ctx context.Context, scenarios []scenario.Scenario, size scenario.Size, report *report.Report) (err error) {
	progress := func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%s %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
	}
	world, err := scenario.NewEnv(ctx, scenarios, size, progress)
	defer func() {
		logs, closing := world.Close(ctx, err != nil)
		if logs != "" {
			progress("logs: %s", logs)
		}
		err = errors.Join(err, closing)
	}()
	if err != nil {
		return err
	}
	for _, one := range scenarios {
		progress("%s: %s", one.Name, one.About)
		rows, err := one.Run(ctx, world)
		report.Rows = append(report.Rows, rows...)
		if err != nil {
			return fmt.Errorf("%s: %w", one.Name, err)
		}
	}
	return nil
}

// write prints the table, and writes the table and JSON below logs.
func write(report *report.Report) error {
	root, err := framework.RepositoryRoot()
	if err != nil {
		return err
	}
	dir := filepath.Join(root, "logs")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	table, err := os.Create(filepath.Join(dir, "bench.md"))
	if err != nil {
		return err
	}
	numbers, err := os.Create(filepath.Join(dir, "bench.json"))
	if err != nil {
		return errors.Join(err, table.Close())
	}
	return errors.Join(report.WriteTable(os.Stdout), report.WriteTable(table), report.WriteJSON(numbers), table.Close(), numbers.Close())
}
