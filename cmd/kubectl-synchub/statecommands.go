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
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/registration"
)

// stateCommand is a command that only changes the spec of a SyncTarget.
type stateCommand struct {
	name, short, long string
	// done is the resulting state of the SyncTarget, in messages.
	done   string
	change func(*edgev2alpha1.SyncTargetSpec)
}

var stateCommands = []stateCommand{
	{
		name: "cordon", done: "cordoned", short: "Let nothing new be placed on a cluster",
		long:   "Let placement engines place nothing new on a cluster. Existing objects stay and are kept in sync.",
		change: func(spec *edgev2alpha1.SyncTargetSpec) { spec.Unschedulable = true },
	},
	{
		name: "uncordon", done: "uncordoned", short: "Let a cluster be used again after cordon or drain",
		long:   "Undo cordon and drain: the hub places the selected objects on the cluster again.",
		change: func(spec *edgev2alpha1.SyncTargetSpec) { spec.Unschedulable, spec.Drain = false, false },
	},
	{
		name: "suspend", done: "suspended", short: "Stop syncing with a cluster, and leave all as it is",
		long:   "Stop all writes to a cluster and all that comes up from it. Nothing is removed.",
		change: func(spec *edgev2alpha1.SyncTargetSpec) { spec.Suspend = true },
	},
	{
		name: "resume", done: "resumed", short: "Go on syncing with a cluster that was suspended",
		long:   "Undo suspend: the hub then syncs the changes that were made meanwhile.",
		change: func(spec *edgev2alpha1.SyncTargetSpec) { spec.Suspend = false },
	},
}

var drainCommand = stateCommand{
	name: "drain", done: "draining", short: "Remove the hub's objects from a cluster",
	long: `Remove the hub's objects from a cluster, and place none until it is uncordoned.

The mailbox keeps its objects. How far it is, and what stays, is in the SyncTarget's status.cleanup and its condition
Drained; --wait prints it.`,
	change: func(spec *edgev2alpha1.SyncTargetSpec) { spec.Drain, spec.Unschedulable = true, true },
}

func newStateCommands(streams genericiooptions.IOStreams) []*cobra.Command {
	var commands []*cobra.Command
	for _, state := range stateCommands {
		command, _ := newStateCommand(streams, state)
		commands = append(commands, command)
	}
	return append(commands, newDrainCommand(streams))
}

func newStateCommand(streams genericiooptions.IOStreams, state stateCommand) (*cobra.Command, *inventoryOptions) {
	options := newInventoryOptions(streams)
	command := &cobra.Command{
		Use:     state.name + " NAME",
		Short:   state.short,
		Long:    state.long,
		Example: fmt.Sprintf("  kubectl synchub %s florin", state.name),
		RunE: func(command *cobra.Command, args []string) error {
			_, err := options.setState(command.Context(), args[0], state)
			return err
		},
	}
	options.addFlags(command)
	return command, options
}

func newDrainCommand(streams genericiooptions.IOStreams) *cobra.Command {
	command, options := newStateCommand(streams, drainCommand)
	var wait bool
	var timeout time.Duration
	command.Flags().BoolVar(&wait, "wait", false, "wait until nothing is left that the hub may remove, and print what stays")
	command.Flags().DurationVar(&timeout, "timeout", 10*time.Minute, "how long to wait for that")
	command.Example += "\n\n  # And wait until it is empty\n  kubectl synchub drain florin --wait"
	command.RunE = func(command *cobra.Command, args []string) error {
		syncTarget, err := options.setState(command.Context(), args[0], drainCommand)
		if err != nil || !wait || options.dryRun != dryRunNone {
			return err
		}
		return options.awaitDrained(command.Context(), syncTarget, timeout)
	}
	return command
}

// setState changes a SyncTarget, unless it already is in the state.
func (o *inventoryOptions) setState(ctx context.Context, name string, state stateCommand) (*edgev2alpha1.SyncTarget, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	inventory, err := o.inventory()
	if err != nil {
		return nil, err
	}
	syncTarget, err := getSyncTarget(ctx, inventory, name)
	if err != nil {
		return nil, err
	}
	before := syncTarget.DeepCopy()
	state.change(&syncTarget.Spec)
	if apiequality.Semantic.DeepEqual(before.Spec, syncTarget.Spec) {
		return syncTarget, o.print(syncTarget, "already "+state.done)
	}
	if err := o.patchSyncTarget(ctx, inventory.Client, syncTarget, before); err != nil {
		return nil, err
	}
	return syncTarget, o.print(syncTarget, state.done)
}

// awaitDrained waits until the hub reports that nothing is left, and prints the objects that stay.
func (o *inventoryOptions) awaitDrained(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget, timeout time.Duration) error {
	workspace, err := o.client()
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var shown string
	last, err := registration.WatchSyncTarget(waiting, workspace, syncTarget, func(seen *edgev2alpha1.SyncTarget) bool {
		if seen == nil || isDrained(seen) {
			return true
		}
		if text := cleanupText(seen); text != shown {
			shown = text
			o.progress("%s", text)
		}
		return false
	})
	switch {
	case last != nil && isDrained(last):
		if report := last.Status.Cleanup; report != nil {
			for _, line := range remainingLines(report) {
				o.note(line)
			}
		}
		return o.print(last, "drained")
	case last == nil:
		return fmt.Errorf("the SyncTarget %s was deleted meanwhile", syncTarget.Name)
	case waiting.Err() == nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return fmt.Errorf("the SyncTarget %s was not drained after %s: %s", syncTarget.Name, timeout, notDrained(last))
}

// isDrained reports whether the hub has set Drained for the current generation of the SyncTarget.
func isDrained(syncTarget *edgev2alpha1.SyncTarget) bool {
	condition := meta.FindStatusCondition(syncTarget.Status.Conditions, edgev2alpha1.ConditionDrained)
	return condition != nil && condition.Status == "True" && condition.ObservedGeneration >= syncTarget.Generation
}

func notDrained(syncTarget *edgev2alpha1.SyncTarget) string {
	text := cleanupText(syncTarget)
	if condition := meta.FindStatusCondition(syncTarget.Status.Conditions, edgev2alpha1.ConditionDrained); condition != nil {
		text += "\n" + strings.TrimSpace(condition.Reason+": "+condition.Message)
	}
	return text
}
