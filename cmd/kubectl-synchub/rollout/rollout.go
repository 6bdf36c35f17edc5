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

package rollout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/provider/wording"
)

const rolloutStatusLong = `Show the progress of the rollout of an EdgePlacement of the current workspace, and wait for its end.

The rollout is complete when the clusters of all destinations have all objects as they are in the workspace, and these are
healthy. The command fails if the rollout is paused, if it has stopped because of failures, or after --timeout.`

// NewCommand returns the commands about the rollout of an EdgePlacement.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	return cli.NewParentCommand("rollout", "Follow, pause, resume or undo the rollout of an EdgePlacement", nil,
		newRolloutStatusCommand(streams),
		newPauseCommand(streams, pauseCommand{name: "pause", done: "paused", paused: true, short: "Let no change of an EdgePlacement's objects go to any cluster"}),
		newPauseCommand(streams, pauseCommand{name: "resume", done: "resumed", short: "Continue a paused rollout"}),
		newRolloutUndoCommand(streams),
		newRolloutHistoryCommand(streams),
	)
}

// defaultRolloutTimeout is how long commands that start a rollout wait for its end.
const defaultRolloutTimeout = 10 * time.Minute

// rolloutOptions are the flags of rollout status.
type rolloutOptions struct {
	cli.WorkspaceOptions
	watch bool
	cli.WaitFlags
}

func newRolloutStatusCommand(streams genericiooptions.IOStreams) *cobra.Command {
	options := &rolloutOptions{WorkspaceOptions: cli.NewWorkspaceOptions(streams)}
	command := &cobra.Command{
		Use:     "status PLACEMENT",
		Short:   "Show the progress of a rollout, and wait for its end",
		Long:    rolloutStatusLong,
		Example: "  kubectl synchub rollout status shop --timeout=10m",
		Args:    OneEdgePlacement,
		RunE: func(command *cobra.Command, args []string) error {
			return options.run(command.Context(), args[0])
		},
	}
	options.AddFlags(command)
	command.Flags().BoolVarP(&options.watch, "watch", "w", true, "wait until the rollout is complete")
	options.AddTimeout(command, 0)
	command.ValidArgsFunction = options.CompletePlacement
	return command
}

// OneEdgePlacement refuses all arguments but one name.
func OneEdgePlacement(command *cobra.Command, args []string) error {
	if len(args) == 1 && args[0] != "" {
		return nil
	}
	return cli.WithAdvice(command, errors.New("give the name of one EdgePlacement"))
}

func (o *rolloutOptions) run(ctx context.Context, name string) error {
	if err := o.CheckTimeout(); err != nil {
		return err
	}
	reader, err := o.Reader()
	if err != nil {
		return err
	}
	found, _, err := GetEdgePlacement(ctx, reader.Client, name)
	if err != nil {
		return err
	}
	follower := &follower{Reader: reader, out: o.Out}
	if !o.watch {
		_, err := follower.report(ctx, found)
		return err
	}
	return follower.wait(ctx, name, o.WaitFlags)
}

// Progress describes the progress of a rollout for the present objects: their number, and the text of their fingerprint. The
// error is the reason why the rollout cannot end by itself.
func Progress(of *edgev2alpha1.EdgePlacement, objects int, fingerprint string) (line string, done bool, err error) {
	status := &of.Status
	switch {
	case int64(status.SpecGeneration) == of.Generation && status.ObservedObjects == fingerprint:
	case status.Selected != int64(objects):
		return fmt.Sprintf("Waiting for the hub: %s selects %s, and the hub has counted %d...", of.Name, wording.Count(objects, "object", "objects"), status.Selected), false, nil
	default:
		return fmt.Sprintf("Waiting for the hub to see the objects of %s as they are now...", of.Name), false, nil
	}
	condition := meta.FindStatusCondition(status.Conditions, edgev2alpha1.ConditionRolledOut)
	if condition == nil {
		return progressOfAll(of)
	}
	switch {
	case condition.Status == metav1.ConditionTrue:
		return fmt.Sprintf("%s is rolled out: %s", of.Name, condition.Message), true, nil
	case condition.Reason == rules.ReasonProgressing:
		return "Waiting for the rollout: " + condition.Message, false, nil
	default:
		return fmt.Sprintf("%s is not rolled out.", of.Name), false, fmt.Errorf("%s: %s", condition.Reason, condition.Message)
	}
}

// progressOfAll describes the progress of a rollout to all destinations at once.
func progressOfAll(of *edgev2alpha1.EdgePlacement) (line string, done bool, err error) {
	for _, kind := range []string{edgev2alpha1.ConditionReady, edgev2alpha1.ConditionHealthy} {
		condition := meta.FindStatusCondition(of.Status.Conditions, kind)
		if condition == nil {
			return fmt.Sprintf("Waiting for the hub to report whether %s is %s...", of.Name, kind), false, nil
		}
		if condition.Status == metav1.ConditionTrue {
			continue
		}
		switch condition.Reason {
		case rules.ReasonPending, rules.ReasonSyncing, rules.ReasonInProgress, rules.ReasonWaitingForRollout:
			return "Waiting for the rollout: " + condition.Message, false, nil
		default:
			return fmt.Sprintf("%s is not rolled out.", of.Name), false, fmt.Errorf("%s: %s", condition.Reason, condition.Message)
		}
	}
	return fmt.Sprintf("%s is rolled out: all destinations (%d) have all objects (%d), and these are healthy.", of.Name, of.Status.Destinations, of.Status.Selected), true, nil
}

// pauseCommand is rollout pause, or rollout resume.
type pauseCommand struct {
	name, done, short string
	paused            bool
}

func newPauseCommand(streams genericiooptions.IOStreams, of pauseCommand) *cobra.Command {
	options := cli.NewInventoryOptions(streams)
	var wait cli.WaitFlags
	command := &cobra.Command{
		Use:     of.name + " PLACEMENT",
		Short:   of.short,
		Long:    of.short + ".\n\nIt sets spec.paused. Deletions and withdrawals do not wait.",
		Example: fmt.Sprintf("  kubectl synchub rollout %s shop", of.name),
		RunE: func(command *cobra.Command, args []string) error {
			if err := wait.CheckTimeout(); err != nil {
				return err
			}
			if err := setPaused(command.Context(), options, args[0], of); err != nil {
				return err
			}
			return awaitRollout(command.Context(), options, args[0], wait)
		},
	}
	options.AddFlags(command)
	if !of.paused {
		wait.AddWait(command, "the rollout is complete", false, defaultRolloutTimeout)
	}
	command.Args, command.ValidArgsFunction = OneEdgePlacement, options.CompletePlacement
	return command
}

// awaitRollout waits until a rollout is complete, unless nothing was changed or the user does not want to wait.
func awaitRollout(ctx context.Context, o *cli.InventoryOptions, name string, wait cli.WaitFlags) error {
	if !wait.Wait || o.DryRun != cli.DryRunNone {
		return nil
	}
	config, err := o.Config()
	if err != nil {
		return err
	}
	return Wait(ctx, config, o.ErrOut, name, wait)
}

// setPaused sets spec.paused of an EdgePlacement, unless it has the value.
func setPaused(ctx context.Context, o *cli.InventoryOptions, name string, to pauseCommand) error {
	if err := o.Complete(); err != nil {
		return err
	}
	workspace, err := o.Client()
	if err != nil {
		return err
	}
	found, _, err := GetEdgePlacement(ctx, workspace, name)
	if err != nil {
		return err
	}
	return o.Change(ctx, workspace, found, to.done, func() { found.Spec.Paused = to.paused })
}
