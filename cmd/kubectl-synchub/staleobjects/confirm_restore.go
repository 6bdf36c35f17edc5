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

package staleobjects

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/registration"
	"github.com/synchub-dev/synchub/controllers/plan/cleanup"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/provider/redact"
	"github.com/synchub-dev/synchub/provider/wording"
)

const confirmRestoreLong = `Confirm that kcp was restored from a backup, so that the hub removes and overwrites copies on clusters again.

When kcp shows older resourceVersions than the hub has seen, the hub removes nothing from clusters and overwrites nothing there:
that would delete the copies of objects that are newer than the backup. The SyncTarget then has the condition StoreWentBack. First
restore the missing objects in kcp, from Git or from the copies on the cluster. After the confirmation, the hub makes the cluster
equal to the present state of kcp.

With --target-kubeconfig, the command lists all copies that differ, instead of the first ones in the status. Only the hub can
verify marks, and the command does not.`

const confirmRestoreExample = `  # List the copies that the hub would remove from a cluster, or overwrite
  kubectl synchub confirm-restore florin --target-kubeconfig florin.kubeconfig --dry-run=client

  # Confirm for one cluster, and then for all clusters of the inventory workspace
  kubectl synchub confirm-restore florin
  kubectl synchub confirm-restore --all`

// confirmRestoreOptions are the flags of confirm-restore.
type confirmRestoreOptions struct {
	*cli.InventoryOptions
	target cli.TargetFlags
	wait   cli.WaitFlags
	all    bool
}

// NewConfirmRestoreCommand returns the command confirm-restore.
func NewConfirmRestoreCommand(streams genericiooptions.IOStreams) *cobra.Command {
	options := &confirmRestoreOptions{InventoryOptions: cli.NewInventoryOptions(streams)}
	command := &cobra.Command{
		Use:     "confirm-restore (NAME | --all)",
		Short:   "Confirm that kcp was restored, so that the hub removes and overwrites copies again",
		Long:    confirmRestoreLong,
		Example: confirmRestoreExample,
		RunE: func(command *cobra.Command, args []string) error {
			if options.all {
				return options.confirmAll(command.Context())
			}
			return options.confirmOne(command.Context(), args[0])
		},
	}
	options.AddFlags(command)
	options.target.AddFlags(command)
	command.Flags().BoolVar(&options.all, "all", false, "confirm for all SyncTargets of the workspace with the condition StoreWentBack")
	options.wait.AddWait(command, "the hub removes and overwrites copies again", false, 2*time.Minute)
	command.MarkFlagsMutuallyExclusive("all", "target-kubeconfig")
	command.MarkFlagsMutuallyExclusive("all", "wait")
	command.Args = func(command *cobra.Command, args []string) error {
		if !options.all {
			return cli.OneSyncTarget(command, args)
		}
		return cli.NoArguments(command, args)
	}
	return command
}

// confirmAll confirms the restore for all SyncTargets that are held.
func (o *confirmRestoreOptions) confirmAll(ctx context.Context) error {
	if err := o.Complete(); err != nil {
		return err
	}
	inventory, err := o.Inventory()
	if err != nil {
		return err
	}
	var list edgev2alpha1.SyncTargetList
	if err := inventory.Client.List(ctx, &list); err != nil {
		return fmt.Errorf("cannot list the SyncTargets of the current workspace: %w", err)
	}
	var errs []error
	confirmed := 0
	for i := range list.Items {
		if list.Items[i].Status.StoreWentBack != nil {
			errs = append(errs, o.confirm(ctx, inventory, &list.Items[i]))
			confirmed++
		}
	}
	if confirmed == 0 {
		return errors.New("there is nothing to confirm: the hub holds no SyncTarget of this workspace because of a restored kcp")
	}
	return errors.Join(errs...)
}

// confirmOne confirms the restore for one SyncTarget, and lists the copies that differ if it is given a kubeconfig of the cluster.
func (o *confirmRestoreOptions) confirmOne(ctx context.Context, name string) error {
	inventory, syncTarget, err := o.GetSyncTarget(ctx, name, o.wait.CheckTimeout())
	if err != nil {
		return err
	}
	if syncTarget.Status.StoreWentBack == nil {
		return fmt.Errorf("there is nothing to confirm: the hub does not hold the SyncTarget %s because of a restored kcp", name)
	}
	if o.target.Kubeconfig != "" {
		if err := o.listHeld(ctx, syncTarget); err != nil {
			return err
		}
	} else {
		o.noteHeld(syncTarget)
	}
	if err := o.confirm(ctx, inventory, syncTarget); err != nil {
		return err
	}
	waiting := &cli.SyncTargetWait{InventoryOptions: o.InventoryOptions, WaitFlags: o.wait, Result: "released", Describe: func(*edgev2alpha1.SyncTarget) string {
		return "the hub has not seen the confirmation yet"
	}}
	waiting.Done = func(seen *edgev2alpha1.SyncTarget) bool { return seen.Status.StoreWentBack == nil }
	return waiting.Run(ctx, syncTarget)
}

// confirm writes the ID that the status shows, so that it does not confirm a restore that the hub notices later.
func (o *confirmRestoreOptions) confirm(ctx context.Context, inventory *registration.Inventory, syncTarget *edgev2alpha1.SyncTarget) error {
	return o.Change(ctx, inventory.Client, syncTarget, "confirmed", func() {
		metav1.SetMetaDataAnnotation(&syncTarget.ObjectMeta, edgev2alpha1.AnnotationConfirmedRestore, syncTarget.Status.StoreWentBack.ID)
	})
}

// noteHeld prints what the status contains about the copies.
func (o *confirmRestoreOptions) noteHeld(syncTarget *edgev2alpha1.SyncTarget) {
	held := syncTarget.Status.StoreWentBack
	o.Note(fmt.Sprintf("kcp went back to an earlier state, noticed at %s. On the cluster of %s the hub would remove %s and overwrite %d.",
		held.DetectedAt.UTC().Format(time.RFC3339), syncTarget.Name, wording.Count(held.Removals, "copy", "copies"), held.Overwrites))
	for _, failure := range syncTarget.Status.Failures {
		if failure.Reason == edgev2alpha1.ConditionStoreWentBack {
			o.Note(fmt.Sprintf("  %s %s: %s", schema.GroupResource{Group: failure.Group, Resource: failure.Resource}, types.NamespacedName{Namespace: failure.Namespace, Name: failure.Name}, failure.Message))
		}
	}
}

// listHeld prints the copies on the cluster whose originals kcp lacks, or has in an older version.
func (o *confirmRestoreOptions) listHeld(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget) error {
	cluster, err := o.target.Reader()
	if err != nil {
		return err
	}
	if syncTarget.Status.Mailbox == nil {
		return fmt.Errorf("the SyncTarget %s has no mailbox", syncTarget.Name)
	}
	mailbox, err := o.ReaderIn(syncTarget.Status.Mailbox.Cluster)
	if err != nil {
		return err
	}
	found, err := Find(ctx, cluster, syncTarget.UID, cleanup.ModeDelete, nil)
	if err != nil {
		return err
	}
	table := cli.NewColumns(o.Out)
	table.Line("RESOURCE\tNAMESPACE\tNAME\tIN KCP")
	for _, copied := range found.Objects {
		if copied.Annotations[ownership.MarkAnnotation] == "" {
			// A namespace that the hub only ensured has no original.
			continue
		}
		state, err := stateOfSource(ctx, mailbox, copied.Annotations[ownership.MarkAnnotation])
		if err != nil {
			state = "unknown: " + redact.Error(err).Error()
		}
		if state != "" {
			table.Line("%s\t%s\t%s\t%s", copied.Resource, copied.Namespace, copied.Name, state)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, unseen := range found.unlisted {
		o.Note(unseen)
	}
	return found.complete()
}

// stateOfSource returns how the original of a copy differs from the version of the copy. It is empty if it is equal or newer.
func stateOfSource(ctx context.Context, r *cli.Reader, annotation string) (string, error) {
	mark, err := ownership.ParseMark(annotation)
	if err != nil {
		return "", err
	}
	resource, err := r.Find(schema.GroupResource{Group: mark.Source.Group, Resource: mark.Source.Resource}.String())
	if err != nil {
		return "", err
	}
	source, err := r.Metadata.Resource(resource).Namespace(mark.Source.Namespace).Get(ctx, mark.Source.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "missing", nil
	}
	if err != nil {
		return "", err
	}
	version, err := strconv.ParseUint(source.ResourceVersion, 10, 64)
	if err == nil && version < mark.SourceVersion {
		return "older", nil
	}
	return "", nil
}
