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

package register

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/registration"
	"github.com/synchub-dev/synchub/provider/wording"
)

const unregisterLong = `Delete the SyncTarget of a cluster, and its mailbox, which kcp empties later.

The copies stay on the cluster without the hub's marks. If spec.deletionPolicy of the SyncTarget is Delete, the hub deletes them
first; --orphan keeps them in any case. If the cluster cannot be reached, the SyncTarget waits for it, and its status lists the
remaining objects; --force does not wait.

With --target-kubeconfig, the command then removes the hub's identity and its rights from the cluster. It does not remove the
tunnel of a cluster that dials the hub. Delete the tunnel when the SyncTarget is gone, not before: the hub needs it to clean up.

The command shows the consequences and asks for confirmation; --yes is for scripts.`

const unregisterExample = `  # Remove a cluster, and the hub's identity from it
  kubectl synchub unregister florin --target-kubeconfig florin.kubeconfig

  # Leave everything on the cluster as it is
  kubectl synchub unregister florin --orphan

  # The cluster does not exist any more
  kubectl synchub unregister florin --force`

type unregisterOptions struct {
	*cli.InventoryOptions
	target        cli.TargetFlags
	orphan, force bool
	yes           bool
	cli.WaitFlags
}

// NewUnregisterCommand returns the command unregister.
func NewUnregisterCommand(streams genericiooptions.IOStreams) *cobra.Command {
	options := &unregisterOptions{InventoryOptions: cli.NewInventoryOptions(streams)}
	command := &cobra.Command{
		Use:     "unregister NAME [--orphan | --force]",
		Short:   "Delete the SyncTarget of a cluster",
		Long:    unregisterLong,
		Example: unregisterExample,
		RunE:    func(command *cobra.Command, args []string) error { return options.run(command.Context(), args[0]) },
	}
	options.AddFlags(command)
	options.target.AddFlags(command)
	flags := command.Flags()
	flags.BoolVar(&options.orphan, "orphan", false, "keep the hub's objects on the cluster, regardless of spec.deletionPolicy")
	flags.BoolVar(&options.force, "force", false, "do not wait for a cluster that cannot be reached")
	flags.BoolVarP(&options.yes, "yes", "y", false, "do not ask before anything is deleted")
	options.AddWait(command, "the SyncTarget is gone", true, 5*time.Minute)
	command.MarkFlagsMutuallyExclusive("orphan", "force")
	return command
}

func (o *unregisterOptions) run(ctx context.Context, name string) error {
	if err := cmp.Or(o.Complete(), o.CheckTimeout()); err != nil {
		return err
	}
	if !o.Wait && o.target.Kubeconfig != "" {
		return errors.New("--wait=false: the command can remove the hub's identity from the cluster only after the SyncTarget is gone; leave out --wait=false or --target-kubeconfig")
	}
	var admin *registration.AdminConfig
	if o.target.Kubeconfig != "" {
		var err error
		if admin, err = registration.LoadAdminConfig(o.target.Kubeconfig, o.target.Context); err != nil {
			return err
		}
	}
	inventory, err := o.Inventory()
	if err != nil {
		return err
	}
	syncTarget, err := inventory.SyncTarget(ctx, name)
	switch {
	case err != nil:
		return err
	case registration.IsTunnel(syncTarget) && admin != nil:
		return fmt.Errorf("the cluster of the SyncTarget %s dials the hub, so it has no other identity of the hub: leave out --target-kubeconfig, and delete the tunnel from the cluster when the SyncTarget is gone", name)
	case registration.IsTunnel(syncTarget):
		if err := o.remove(ctx, inventory, syncTarget); err != nil {
			return err
		}
		o.Note("The tunnel and the hub's rights are still in the cluster. When the SyncTarget is gone, delete the objects of its manifest there, or the Helm release. They have the label app.kubernetes.io/name=synchub-tunnel.")
		return nil
	case syncTarget != nil:
		err = o.remove(ctx, inventory, syncTarget)
	case admin == nil:
		err = inventory.NotFound(ctx, name)
	}
	if err != nil {
		return err
	}
	return o.removeIdentity(ctx, inventory, admin, name)
}

// remove deletes the SyncTarget, and then its Secret. The hub needs the Secret until the SyncTarget is gone.
func (o *unregisterOptions) remove(ctx context.Context, inventory *registration.Inventory, syncTarget *edgev2alpha1.SyncTarget) error {
	if syncTarget.DeletionTimestamp == nil || o.force {
		if err := o.ConfirmFunc(o.yes)(ctx, o.describeEffect(syncTarget)); err != nil {
			return err
		}
	}
	if err := o.setDeletionOptions(ctx, inventory.Client, syncTarget); err != nil {
		return err
	}
	if o.DryRun != cli.DryRunClient {
		uid := syncTarget.UID
		if err := inventory.Client.Delete(ctx, syncTarget.DeepCopy(), client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("cannot delete the SyncTarget %s: %w", syncTarget.Name, err)
		}
	}
	if o.DryRun != cli.DryRunNone || !o.Wait {
		return o.Print(syncTarget, string(registration.Deleted))
	}
	wait := &cli.SyncTargetWait{
		InventoryOptions: o.InventoryOptions, WaitFlags: o.WaitFlags, Result: string(registration.Deleted), Notes: RemainingLines,
		Steps: func(seen *edgev2alpha1.SyncTarget) []string { return []string{waitMessage(seen)} },
		Describe: func(seen *edgev2alpha1.SyncTarget) string {
			return CleanupText(seen) + "\n" + registration.DescribeNotReady(seen) + "\nRun the command again to wait longer, or with --force to delete it although its cluster cannot be reached"
		},
	}
	if err := wait.Run(ctx, syncTarget); err != nil {
		return err
	}
	return inventory.DeleteSecret(ctx, syncTarget)
}

// describeEffect describes what goes with a SyncTarget, and what stays.
func (o *unregisterOptions) describeEffect(syncTarget *edgev2alpha1.SyncTarget) string {
	mailbox := "It has no mailbox."
	if status := syncTarget.Status.Mailbox; status != nil && status.Workspace != "" {
		mailbox = fmt.Sprintf("Its mailbox %s goes too, with all objects in it.", status.Workspace)
	}
	cluster := "The copies stay on the cluster, without the hub's marks."
	switch {
	case o.force:
		cluster = "If the cluster cannot be reached, the copies stay there as they are, with the hub's marks."
	case syncTarget.Spec.DeletionPolicy == edgev2alpha1.DeletionPolicyDelete && !o.orphan:
		cluster = "Before that, the hub deletes the copies from the cluster, since spec.deletionPolicy is Delete; --orphan keeps them."
	}
	return fmt.Sprintf("The SyncTarget %s goes. %s %s", syncTarget.Name, mailbox, cluster)
}

// setDeletionOptions sets on the SyncTarget how the hub must delete it.
func (o *unregisterOptions) setDeletionOptions(ctx context.Context, workspace client.Client, syncTarget *edgev2alpha1.SyncTarget) error {
	before := syncTarget.DeepCopy()
	if o.orphan {
		syncTarget.Spec.DeletionPolicy = edgev2alpha1.DeletionPolicyOrphan
	}
	if o.force {
		metav1.SetMetaDataAnnotation(&syncTarget.ObjectMeta, edgev2alpha1.AnnotationForceRemoval, "true")
	}
	if !o.orphan && !o.force {
		return nil
	}
	return o.Patch(ctx, workspace, syncTarget, before)
}

// removeIdentity removes the hub's identity from the cluster, or reports that it is still there.
func (o *unregisterOptions) removeIdentity(ctx context.Context, inventory *registration.Inventory, admin *registration.AdminConfig, name string) error {
	if admin == nil {
		o.Note(fmt.Sprintf("If the cluster was registered with --target-kubeconfig, the hub's ServiceAccount and its rights are still there. They go with `kubectl synchub unregister %s --target-kubeconfig FILE`.", name))
		return nil
	}
	if o.DryRun == cli.DryRunClient {
		return nil
	}
	writes, err := cli.ClientOf(admin.Config)
	if err != nil {
		return fmt.Errorf("cannot reach the target: %w", err)
	}
	plan := &registration.Registrar{Name: name, Inventory: inventory, TargetClient: o.WithDryRun(writes)}
	target, err := plan.Target(ctx)
	if err != nil {
		return err
	}
	return target.Remove(ctx)
}

// waitMessage describes why a SyncTarget that is being deleted still exists.
func waitMessage(syncTarget *edgev2alpha1.SyncTarget) string {
	report := syncTarget.Status.Cleanup
	switch {
	case report == nil || report.Remaining == nil:
		return "Waiting for the hub to list the objects on the cluster."
	case *report.Remaining == 0:
		return "The cluster is done: " + CleanupText(syncTarget) + ". Waiting for the hub to delete the mailbox."
	default:
		return "Waiting for the cluster: " + CleanupText(syncTarget)
	}
}

// CleanupText summarizes status.cleanup on one line.
func CleanupText(syncTarget *edgev2alpha1.SyncTarget) string {
	report := syncTarget.Status.Cleanup
	if report == nil {
		return "The hub has not reported anything yet."
	}
	var parts []string
	if report.Remaining != nil {
		parts = append(parts, wording.Count(*report.Remaining, "object", "objects")+" still to go")
	}
	parts = append(parts, fmt.Sprintf("%d gone", report.Removed))
	if stay := len(report.Left) + int(report.LeftMore); stay > 0 {
		parts = append(parts, wording.Count(stay, "stays", "stay"))
	}
	return strings.Join(parts, ", ")
}

// RemainingLines lists the objects of a SyncTarget's status.cleanup that stay on the cluster.
func RemainingLines(syncTarget *edgev2alpha1.SyncTarget) (lines []string) {
	report := syncTarget.Status.Cleanup
	if report == nil {
		return nil
	}
	for _, object := range report.Left {
		resource := metav1.GroupResource{Group: object.Group, Resource: object.Resource}
		lines = append(lines, fmt.Sprintf("%s %s stays: %s", resource.String(), strings.TrimPrefix(object.Namespace+"/"+object.Name, "/"), object.Reason))
	}
	if report.LeftMore > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", report.LeftMore))
	}
	return lines
}
