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

package status

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/utils/clock"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/overview"
	"github.com/synchub-dev/synchub/provider/wording"
)

// maxStatusRows is the maximum number of unhealthy clusters in the output. With the surrounding text they fit on a
// terminal.
const maxStatusRows = 18

const statusLong = `Show the SyncTargets of the current workspace on one screen, the worst first: SyncTargets that are not ready, then those with
failed objects, then those with the oldest pending changes. The command only counts healthy SyncTargets. Below the table it names
the failed objects, as of the hub's last heartbeat. The hub counts objects once a minute; the first line has the age of the oldest
count.`

// statusOptions are the flags of status.
type statusOptions struct {
	cli.ReadOptions
	output     cli.StructuredOutput
	all, watch bool
	clock      clock.WithTicker
}

// NewCommand returns the command status.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	options := &statusOptions{ReadOptions: cli.NewReadOptions(streams), clock: clock.RealClock{}}
	command := &cobra.Command{
		Use:     "status",
		Short:   "Show the fleet on one screen, the worst first",
		Long:    statusLong,
		Example: "  kubectl synchub status\n\n  # And each change\n  kubectl synchub status --watch\n\n  # For programs, all of them\n  kubectl synchub status -o json",
		Args:    cli.NoArguments,
		RunE:    func(command *cobra.Command, _ []string) error { return options.run(command.Context()) },
	}
	options.AddFlags(command)
	command.ValidArgsFunction = cobra.NoFileCompletions
	options.AddSelector(command)
	options.output.AddFlag(command)
	command.Flags().BoolVar(&options.all, "all", false, "show all SyncTargets, healthy ones too")
	command.Flags().BoolVarP(&options.watch, "watch", "w", false, "show the state again when it changes, and on a terminal every 10 seconds")
	command.MarkFlagsMutuallyExclusive("watch", "output")
	return command
}

func (o *statusOptions) run(ctx context.Context) error {
	workspace, err := o.Client()
	if err != nil {
		return err
	}
	list, err := o.List(ctx, workspace, nil)
	if err != nil {
		return err
	}
	if o.watch {
		return o.follow(ctx, workspace, list)
	}
	now := o.clock.Now()
	rows := rowsOf(list, now)
	if done, err := o.output.Print(o.Out, overview.DocumentOf(rows)); done || err != nil {
		return err
	}
	return Print(o.Out, rows, o.all, now)
}

// rowsOf returns the rows of the SyncTargets at a time, the worst first.
func rowsOf(list *edgev2alpha1.SyncTargetList, now time.Time) []overview.Row {
	rows := overview.RowsOf(list, now)
	overview.SortWorstFirst(rows)
	return rows
}

// Print prints rows for people, sorted as they are: all of them, or the first unhealthy ones.
func Print(out io.Writer, rows []overview.Row, all bool, now time.Time) error {
	fmt.Fprintln(out, overview.Summary(rows, now))
	shown, wellLeft, worseLeft := rows, 0, 0
	if !all {
		shown, wellLeft, worseLeft = worstRows(rows)
	}
	if len(shown) > 0 {
		fmt.Fprintln(out)
		if err := printers.NewTablePrinter(printers.PrintOptions{}).PrintObj(cli.SanitizeTable(overview.Table(shown, now)), out); err != nil {
			return err
		}
		if err := printReasons(out, shown); err != nil {
			return err
		}
		printFailures(out, shown)
	}
	if worseLeft > 0 {
		fmt.Fprintf(out, "\n%s attention; see them with --all.\n", wording.Count(worseLeft, "more needs", "more need"))
	}
	if wellLeft > 0 {
		fmt.Fprintf(out, "\n%s well.\n", wording.Count(wellLeft, "is", "are"))
	}
	return nil
}

// worstRows returns the first unhealthy rows. It also returns how many healthy and how many unhealthy rows it left
// out.
func worstRows(rows []overview.Row) (shown []overview.Row, wellLeft, worseLeft int) {
	for _, row := range rows {
		switch {
		case row.IsHealthy():
			wellLeft++
		case len(shown) < maxStatusRows:
			shown = append(shown, row)
		default:
			worseLeft++
		}
	}
	return shown, wellLeft, worseLeft
}

// printReasons prints, below the table, why clusters are not ready, which rights the hub lacks there, and which objects it
// does not sync because of limits.
func printReasons(out io.Writer, rows []overview.Row) error {
	columns := cli.NewColumns(out)
	first := true
	for _, row := range rows {
		reason := row.Problem()
		if reason == "" {
			continue
		}
		if first {
			columns.Line("")
			first = false
		}
		columns.Line("%s:\t%s", row.Name, reason)
	}
	return columns.Flush()
}

// printFailures prints the failed objects of each cluster.
func printFailures(out io.Writer, rows []overview.Row) {
	for _, row := range rows {
		lines := row.FailureLines()
		if len(lines) == 0 {
			continue
		}
		fmt.Fprintf(out, "\nFailed on %s:\n", row.Name)
		for _, line := range lines {
			fmt.Fprintln(out, "  "+cli.SanitizeLine(line))
		}
	}
}
