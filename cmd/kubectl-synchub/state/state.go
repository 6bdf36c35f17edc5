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

package state

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/register"
)

// stateCommand is a command that only changes the spec of a SyncTarget.
type stateCommand struct {
	name, short, long string
	// done is the resulting state of the SyncTarget, in messages.
	done   string
	change func(*edgev2alpha1.SyncTargetSpec)
	// until completes "wait until". It is empty for a command that starts nothing that takes time.
	until string
	// wait waits for what the command starts.
	wait    cli.SyncTargetWait
	timeout time.Duration
}

var stateCommands = []stateCommand{
	{
		name: "cordon", done: "cordoned", short: "Place no new objects on a cluster",
		long:   "Place no new objects on a cluster. The hub keeps existing objects in sync.",
		change: func(spec *edgev2alpha1.SyncTargetSpec) { spec.Unschedulable = true },
	},
	{
		name: "uncordon", done: "uncordoned", short: "Let a cluster be used again after cordon or drain",
		long:   "Undo cordon and drain: the hub places the selected objects on the cluster again.",
		change: func(spec *edgev2alpha1.SyncTargetSpec) { spec.Unschedulable, spec.Drain = false, false },
		until:  "the SyncTarget is ready", timeout: 2 * time.Minute,
		wait: cli.SyncTargetWait{Done: cli.IsReadyNow, Describe: cli.DescribeNotReady, Result: "ready"},
	},
	{
		name: "suspend", done: "suspended", short: "Stop the sync with a cluster, and keep all objects",
		long:   "Stop the sync with a cluster in both directions. The hub removes nothing.",
		change: func(spec *edgev2alpha1.SyncTargetSpec) { spec.Suspend = true },
		until:  "the hub has stopped the sync", timeout: 2 * time.Minute,
		wait: cli.SyncTargetWait{Done: cli.IsSuspendedNow, Result: "suspended by the hub", Describe: func(*edgev2alpha1.SyncTarget) string { return "the hub has not seen the change yet" }},
	},
	{
		name: "resume", done: "resumed", short: "Continue the sync with a suspended cluster",
		long:   "Undo suspend. The hub then syncs the changes of that time.",
		change: func(spec *edgev2alpha1.SyncTargetSpec) { spec.Suspend = false },
		until:  "the SyncTarget is ready", timeout: 2 * time.Minute,
		wait: cli.SyncTargetWait{Done: cli.IsReadyNow, Describe: cli.DescribeNotReady, Result: "ready"},
	},
}

var drainCommand = stateCommand{
	name: "drain", done: "draining", short: "Remove the hub's objects from a cluster",
	long: `Remove the hub's objects from a cluster, and place none until it is uncordoned.

The mailbox keeps its objects. The progress and the remaining objects are in status.cleanup of the SyncTarget and in its
condition Drained; --wait prints them.`,
	change: func(spec *edgev2alpha1.SyncTargetSpec) { spec.Drain, spec.Unschedulable = true, true },
	until:  "the hub has removed all objects that it may remove, and print the remaining ones", timeout: 10 * time.Minute,
	wait: cli.SyncTargetWait{Done: isDrained, Describe: notDrained, Result: "drained", Notes: register.RemainingLines},
}

// NewCommands returns the commands that change the state of a SyncTarget.
func NewCommands(streams genericiooptions.IOStreams) []*cobra.Command {
	var commands []*cobra.Command
	for _, state := range stateCommands {
		commands = append(commands, newStateCommand(streams, state))
	}
	drain := newStateCommand(streams, drainCommand)
	drain.Example += "\n\n  # And wait until it is empty\n  kubectl synchub drain florin --wait"
	return append(commands, drain)
}

func newStateCommand(streams genericiooptions.IOStreams, state stateCommand) *cobra.Command {
	options := cli.NewInventoryOptions(streams)
	var wait cli.WaitFlags
	command := &cobra.Command{
		Use:     state.name + " NAME",
		Short:   state.short,
		Long:    state.long,
		Example: fmt.Sprintf("  kubectl synchub %s florin", state.name),
		RunE: func(command *cobra.Command, args []string) error {
			if err := wait.CheckTimeout(); err != nil {
				return err
			}
			syncTarget, err := setState(command.Context(), options, args[0], state)
			if err != nil {
				return err
			}
			waiting := state.wait
			waiting.InventoryOptions, waiting.WaitFlags = options, wait
			return waiting.Run(command.Context(), syncTarget)
		},
	}
	options.AddFlags(command)
	if state.until != "" {
		wait.AddWait(command, state.until, false, state.timeout)
	}
	return command
}

// setState changes a SyncTarget, unless it already is in the state.
func setState(ctx context.Context, o *cli.InventoryOptions, name string, state stateCommand) (*edgev2alpha1.SyncTarget, error) {
	inventory, syncTarget, err := o.GetSyncTarget(ctx, name)
	if err != nil {
		return nil, err
	}
	return syncTarget, o.Change(ctx, inventory.Client, syncTarget, state.done, func() { state.change(&syncTarget.Spec) })
}

// isDrained reports whether the hub has set Drained for the current generation of the SyncTarget.
func isDrained(syncTarget *edgev2alpha1.SyncTarget) bool {
	condition := meta.FindStatusCondition(syncTarget.Status.Conditions, edgev2alpha1.ConditionDrained)
	return condition != nil && condition.Status == "True" && condition.ObservedGeneration >= syncTarget.Generation
}

func notDrained(syncTarget *edgev2alpha1.SyncTarget) string {
	text := register.CleanupText(syncTarget)
	if condition := meta.FindStatusCondition(syncTarget.Status.Conditions, edgev2alpha1.ConditionDrained); condition != nil {
		text += "\n" + strings.TrimSpace(condition.Reason+": "+condition.Message)
	}
	return text
}
