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

package drift

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/suggest"
)

const driftLong = `List the objects that differ on clusters now, where drift is Report: the field, the manager that changed it, and the value that the
hub would set beside the value on the cluster. Objects that the hub would take over are listed with the fields that would change.

In a workload workspace the command reads the EdgePlacements, in an inventory workspace the SyncTargets and the configs in their
mailboxes, and in a mailbox its configs. It asks no cluster. The hub lists the first failed objects, and the first ten fields of each.
Values of Secrets are never shown, and no values on the cluster of objects that the hub would take over: kubectl synchub diff
shows these to those who may read the cluster.`

const driftExample = `  # What differs on the clusters of this workspace
  kubectl synchub drift

  # Of another workspace, for one EdgePlacement
  kubectl synchub drift --workspace root:shop --placement shop

  # On some clusters of an inventory, for a program: fail if something differs
  kubectl synchub drift -l region=north --exit-code -o json`

// options are the flags of the command.
type options struct {
	cli.ReadOptions
	output      cli.StructuredOutput
	syncTargets []string
	placement   string
	exitCode    bool
}

const outputWide = "wide"

// NewCommand returns the command drift.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	options := &options{ReadOptions: cli.NewReadOptions(streams)}
	command := &cobra.Command{
		Use:     "drift",
		Short:   "List the objects that differ on clusters where drift is Report",
		Long:    driftLong,
		Example: driftExample,
		Args:    cli.NoArguments,
		RunE:    func(command *cobra.Command, _ []string) error { return options.run(command.Context()) },
	}
	options.AddFlags(command)
	command.ValidArgsFunction = cobra.NoFileCompletions
	options.AddSelector(command)
	options.output.AddFlag(command, outputWide)
	flags := command.Flags()
	flags.StringSliceVar(&options.syncTargets, "sync-targets", nil, "only the clusters of these SyncTargets")
	flags.StringVar(&options.placement, "placement", "", "only objects of this EdgePlacement")
	flags.BoolVar(&options.exitCode, "exit-code", false, "exit with 1 if something differs, and with 2 after an error")
	_ = command.RegisterFlagCompletionFunc("placement", options.CompletePlacement)
	command.MarkFlagsMutuallyExclusive("placement", "selector")
	return command
}

func (o *options) run(ctx context.Context) error {
	report, err := o.report(ctx)
	if err == nil {
		err = o.print(report)
	}
	switch {
	case err != nil && o.exitCode:
		return &cli.ExitError{Status: 2, Err: err}
	case err == nil && o.exitCode && len(report.Objects) > 0:
		return &cli.ExitError{Status: 1}
	default:
		return err
	}
}

func (o *options) print(report *Report) error {
	done, err := o.output.Print(o.Out, report)
	switch {
	case done || err != nil:
		return err
	case len(report.Objects) == 0 && report.Unlisted == 0:
		_, err = fmt.Fprintln(o.ErrOut, "Nothing differs where drift is Report, as far as the hub has reported.")
		return err
	default:
		return report.print(o.Out, o.output == outputWide)
	}
}

// report reads what the hub has reported in the workspace.
func (o *options) report(ctx context.Context) (*Report, error) {
	here, err := o.Reader()
	if err != nil {
		return nil, err
	}
	if _, err := here.APIs.ServerGroups(); err != nil {
		return nil, fmt.Errorf("cannot read the APIs of the workspace: %w", err)
	}
	isWorkload := here.Serves("edgeplacements")
	isInventory := !isWorkload && here.Serves("synctargets")
	if !isInventory {
		if err := o.RejectSelector(); err != nil {
			return nil, err
		}
	}
	report := &Report{Objects: []Object{}}
	switch {
	case isWorkload:
		err = o.addPlacements(ctx, here, report)
	case o.placement != "":
		err = errors.New("--placement is for workload workspaces, and the workspace is none")
	case isInventory:
		err = o.addSyncTargets(ctx, here, report)
	case here.Serves("syncerconfigs"):
		err = o.addMailbox(ctx, here, report)
	default:
		err = errors.New("the workspace is no workload workspace, no inventory workspace and no mailbox")
	}
	report.sort()
	return report, err
}

// addMailbox adds the objects of the mailbox.
func (o *options) addMailbox(ctx context.Context, here *cli.Reader, report *Report) error {
	if len(o.syncTargets) > 0 {
		return errors.New("--sync-targets is not for a mailbox, which has one SyncTarget")
	}
	configs, err := statusesOfConfigs(ctx, here)
	if err != nil {
		return err
	}
	report.addSyncTarget(&edgev2alpha1.SyncTarget{}, configs)
	return nil
}

func (o *options) addPlacements(ctx context.Context, here *cli.Reader, report *Report) error {
	var list edgev2alpha1.EdgePlacementList
	if err := here.Client.List(ctx, &list); err != nil {
		return err
	}
	list.Items = slices.DeleteFunc(list.Items, func(one edgev2alpha1.EdgePlacement) bool { return o.placement != "" && o.placement != one.Name })
	if o.placement != "" && len(list.Items) == 0 {
		return fmt.Errorf("there is no EdgePlacement %s", o.placement)
	}
	for i := range list.Items {
		report.addPlacement(&list.Items[i])
	}
	if len(o.syncTargets) == 0 {
		return nil
	}
	if err := o.rejectOtherSyncTargets(ctx, here, report); err != nil {
		return err
	}
	report.Objects = slices.DeleteFunc(report.Objects, func(one Object) bool { return !slices.Contains(o.syncTargets, one.SyncTarget) })
	return nil
}

// rejectOtherSyncTargets returns an error if a SyncTarget that a flag names is neither a destination nor in the report: a mistyped name would
// look like a cluster where nothing differs.
func (o *options) rejectOtherSyncTargets(ctx context.Context, here *cli.Reader, report *Report) error {
	var placements edgev2alpha1.SinglePlacementSliceList
	if err := here.Client.List(ctx, &placements); err != nil {
		return err
	}
	var all []string
	for i := range placements.Items {
		if o.placement != "" && o.placement != placements.Items[i].Name {
			continue
		}
		for _, destination := range placements.Items[i].Destinations {
			all = append(all, destination.SyncTargetName)
		}
	}
	for _, object := range report.Objects {
		all = append(all, object.SyncTarget)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	for _, name := range o.syncTargets {
		if !slices.Contains(all, name) {
			return fmt.Errorf("--sync-targets: no EdgePlacement here has the cluster %s%s", name, suggest.Names(name, all))
		}
	}
	return nil
}

func (o *options) addSyncTargets(ctx context.Context, here *cli.Reader, report *Report) error {
	list, err := o.List(ctx, here.Client, o.syncTargets)
	if err != nil {
		return err
	}
	for i := range list.Items {
		syncTarget := &list.Items[i]
		if err := report.readSyncTarget(ctx, o.WorkspaceOptions, syncTarget); err != nil {
			fmt.Fprintf(o.ErrOut, "The values on %s cannot be shown, since its mailbox cannot be read: %s\n", cli.SanitizeLine(syncTarget.Name), cli.SanitizeLine(err.Error()))
		}
	}
	return nil
}

// readSyncTarget adds the objects of a SyncTarget, with the values that the configs in its mailbox have if something differs. The objects
// have no values if there is an error.
func (r *Report) readSyncTarget(ctx context.Context, options cli.WorkspaceOptions, of *edgev2alpha1.SyncTarget) error {
	var configs []edgev2alpha1.SyncerConfigStatus
	var err error
	hasDrift := slices.ContainsFunc(of.Status.Failures, func(one edgev2alpha1.ObjectFailure) bool { return isDrift(&one) })
	if mailbox := of.Status.Mailbox; hasDrift && mailbox != nil && mailbox.Cluster != "" {
		var reader *cli.Reader
		if reader, err = options.ReaderIn(mailbox.Cluster); err == nil {
			configs, err = statusesOfConfigs(ctx, reader)
		}
	}
	r.addSyncTarget(of, configs)
	return err
}

// statusesOfConfigs returns the statuses of the configs in a mailbox.
func statusesOfConfigs(ctx context.Context, mailbox *cli.Reader) (statuses []edgev2alpha1.SyncerConfigStatus, err error) {
	var syncerConfigs edgev2alpha1.SyncerConfigList
	var edgeSyncConfigs edgev2alpha1.EdgeSyncConfigList
	if err := errors.Join(mailbox.Client.List(ctx, &syncerConfigs), mailbox.Client.List(ctx, &edgeSyncConfigs)); err != nil {
		return nil, err
	}
	for i := range syncerConfigs.Items {
		statuses = append(statuses, syncerConfigs.Items[i].Status)
	}
	for i := range edgeSyncConfigs.Items {
		statuses = append(statuses, edgeSyncConfigs.Items[i].Status)
	}
	return statuses, nil
}
