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
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/registration"
	"github.com/synchub-dev/synchub/controllers/plan/cleanup"
	"github.com/synchub-dev/synchub/provider/redact"
	"github.com/synchub-dev/synchub/provider/targets/clusterid"
)

const staleObjectsLong = `List the objects of a SyncTarget on its former cluster, and delete or release them with the flags.

The hub stops when another cluster takes the place of a SyncTarget's cluster, and never writes to the former one again. This
command uses your own kubeconfig of that cluster. It lists each object with the hub's label and a mark that names the SyncTarget
and this very object. Only the hub can verify marks, so read the list before you delete objects.

--delete acts like the deletion of a SyncTarget with the deletion policy Delete. It releases objects with the policy Orphan. It
also releases all Namespaces and CustomResourceDefinitions, since objects of other owners would be deleted with them. --release
removes label and marks, and keeps all objects on the cluster. If an object changes at the same time, the command reads it again.
It never touches another object of the same name.

The command refuses the present cluster of the SyncTarget: use drain there. To be sure, --delete and --release read the ID of the
cluster of the SyncTarget's own kubeconfig. For a deleted SyncTarget give its UID. Then make sure that no other workspace has
that SyncTarget, since this command only reads the current workspace.`

const staleObjectsExample = `  # List the objects that are left on a former cluster
  kubectl synchub stale-objects florin --target-kubeconfig former.kubeconfig

  # Show the effect of a deletion, then delete the objects
  kubectl synchub stale-objects florin --target-kubeconfig former.kubeconfig --delete --dry-run=server
  kubectl synchub stale-objects florin --target-kubeconfig former.kubeconfig --delete

  # Keep the ConfigMaps and Deployments there, without the hub's marks
  kubectl synchub stale-objects florin --target-kubeconfig former.kubeconfig --release --resources configmaps,deployments.apps

  # For a SyncTarget that was deleted by force
  kubectl synchub stale-objects --uid 5f0e8f6e-3a3b-4a63-9d6e-0d7a52f7c1b9 --target-kubeconfig former.kubeconfig`

// staleObjectsOptions are the flags of stale-objects.
type staleObjectsOptions struct {
	*cli.InventoryOptions
	target               cli.TargetFlags
	uid                  string
	resources            []string
	remove, release, yes bool
}

// NewCommand returns the command stale-objects.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	options := &staleObjectsOptions{InventoryOptions: cli.NewInventoryOptions(streams)}
	command := &cobra.Command{
		Use:     "stale-objects (NAME | --uid UID) --target-kubeconfig FILE [--delete | --release]",
		Short:   "List, delete or release objects on a former cluster of a SyncTarget",
		Long:    staleObjectsLong,
		Example: staleObjectsExample,
		RunE: func(command *cobra.Command, args []string) error {
			return options.run(command.Context(), strings.Join(args, ""))
		},
	}
	options.AddFlags(command)
	options.target.AddFlags(command)
	flags := command.Flags()
	flags.StringVar(&options.uid, "uid", "", "the UID of a deleted SyncTarget")
	flags.StringSliceVar(&options.resources, "resources", nil, "the resources to look for; by default all that the cluster serves")
	flags.BoolVar(&options.remove, "delete", false, "delete the objects with the deletion policy Delete, and release all other ones")
	flags.BoolVar(&options.release, "release", false, "remove label and marks from the objects, and keep them on the cluster")
	flags.BoolVarP(&options.yes, "yes", "y", false, "do not ask before objects are deleted or released")
	command.MarkFlagsMutuallyExclusive("delete", "release")
	command.Args = func(command *cobra.Command, args []string) error {
		if options.uid == "" {
			return cli.OneSyncTarget(command, args)
		}
		return cli.NoArguments(command, args)
	}
	return command
}

func (o *staleObjectsOptions) run(ctx context.Context, name string) error {
	if err := cmp.Or(o.Complete(), o.target.Required()); err != nil {
		return err
	}
	cluster, err := o.target.Reader()
	if err != nil {
		return err
	}
	clusterID, err := clusterid.Get(ctx, cluster.Metadata)
	if err != nil {
		return fmt.Errorf("cannot find out which cluster %s leads to: %w", o.target.Kubeconfig, redact.Error(err))
	}
	syncTarget, err := o.formerSyncTarget(ctx, name, clusterID)
	if err != nil {
		return err
	}
	uid := types.UID(o.uid)
	if syncTarget != nil {
		uid = syncTarget.UID
		if err := o.checkOtherCluster(ctx, syncTarget, clusterID); err != nil && o.mayChange() {
			return err
		} else if err != nil {
			o.Note("Before anything is deleted or released: " + err.Error() + ".")
		}
	}
	o.Note(describeCluster(syncTarget, clusterID))
	found, err := Find(ctx, cluster, uid, o.mode(), o.resources)
	if err != nil {
		return err
	}
	for _, unseen := range found.unlisted {
		o.Note(unseen)
	}
	if err := o.execute(ctx, cluster, found.Objects, func() error { return o.checkStillFormer(ctx, name, clusterID) }); err != nil {
		return err
	}
	return found.complete()
}

// mayChange reports whether the command does more than list.
func (o *staleObjectsOptions) mayChange() bool { return o.remove || o.release }

// mode returns the drain mode for the flags. A list shows the consequences of --delete.
func (o *staleObjectsOptions) mode() cleanup.Mode {
	if o.release {
		return cleanup.ModeOrphan
	}
	return cleanup.ModeDelete
}

// formerSyncTarget returns the SyncTarget, or nil if --uid names one that no longer exists. It returns an error if a
// name without --uid does not exist, or if the SyncTarget stands for the cluster.
func (o *staleObjectsOptions) formerSyncTarget(ctx context.Context, name, clusterID string) (*edgev2alpha1.SyncTarget, error) {
	if clusterID == "" {
		return nil, errors.New("the cluster does not report its ID, the UID of its namespace kube-system: it may be the cluster that the SyncTarget stands for")
	}
	workspace, err := o.Client()
	if err != nil {
		return nil, err
	}
	var list edgev2alpha1.SyncTargetList
	if err := workspace.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("cannot list the SyncTargets of the current workspace: %w", err)
	}
	index := slices.IndexFunc(list.Items, func(one edgev2alpha1.SyncTarget) bool {
		return o.uid == "" && one.Name == name || o.uid != "" && string(one.UID) == o.uid
	})
	switch {
	case index < 0 && o.uid != "":
		return nil, nil
	case index < 0:
		return nil, fmt.Errorf("%w; if it does not exist any more, give its UID with --uid", (&registration.Inventory{Client: workspace}).NotFound(ctx, name))
	}
	syncTarget := &list.Items[index]
	switch syncTarget.Status.ClusterID {
	case "":
		return nil, fmt.Errorf("the hub has not reported the cluster that the SyncTarget %s stands for: it may be this one", syncTarget.Name)
	case clusterID:
		return nil, fmt.Errorf("the SyncTarget %s stands for this cluster (%s): its objects are not stale; `kubectl synchub drain %s` removes them", syncTarget.Name, clusterID, syncTarget.Name)
	}
	return syncTarget, nil
}

// checkOtherCluster returns an error unless the kubeconfig of the SyncTarget reaches another cluster. The status
// alone is not enough: an attacker who can write it could make this command delete objects of the present cluster.
func (o *staleObjectsOptions) checkOtherCluster(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget, clusterID string) error {
	fail := func(err error) error {
		return fmt.Errorf("the cluster to which the kubeconfig of the SyncTarget %s leads cannot be asked whether it is this one, so run the command where it can: %w", syncTarget.Name, redact.Error(err))
	}
	workspace, err := o.Client()
	if err != nil {
		return fail(err)
	}
	present, err := cli.ReaderByCredentials(ctx, workspace, syncTarget)
	if err != nil {
		return fail(err)
	}
	switch presentID, err := clusterid.Get(ctx, present.Metadata); {
	case err != nil:
		return fail(err)
	case presentID == "":
		return fail(errors.New("it does not report its ID"))
	case presentID == clusterID:
		return fmt.Errorf("the kubeconfig of the SyncTarget %s leads to this cluster (%s): its objects are not stale; `kubectl synchub drain %s` removes them", syncTarget.Name, clusterID, syncTarget.Name)
	}
	return nil
}

// checkStillFormer returns an error if the SyncTarget now stands for the cluster.
func (o *staleObjectsOptions) checkStillFormer(ctx context.Context, name, clusterID string) error {
	syncTarget, err := o.formerSyncTarget(ctx, name, clusterID)
	if err != nil || syncTarget == nil {
		return err
	}
	return o.checkOtherCluster(ctx, syncTarget, clusterID)
}

// describeCluster describes the relation between the SyncTarget and the cluster.
func describeCluster(syncTarget *edgev2alpha1.SyncTarget, clusterID string) string {
	if syncTarget == nil {
		return fmt.Sprintf("No SyncTarget of this workspace has the UID. The cluster is %s.", clusterID)
	}
	text := fmt.Sprintf("By its status the SyncTarget %s stands for the cluster %s; this one is %s", syncTarget.Name, syncTarget.Status.ClusterID, clusterID)
	for _, former := range syncTarget.Status.FormerClusters {
		if former.ClusterID == clusterID {
			return text + ", which it stood for until " + former.Until.UTC().Format("2006-01-02 15:04 MST") + "."
		}
	}
	return text + ", which its status does not list as a former one."
}

// execute lists the stale objects, and deletes or releases them as requested. After the operator's confirmation it
// checks again that the SyncTarget does not stand for the cluster.
func (o *staleObjectsOptions) execute(ctx context.Context, cluster *cli.Reader, objects []StaleObject, stillFormer func() error) error {
	if !o.mayChange() {
		return o.list(objects)
	}
	if err := printObjects(o.ErrOut, objects); err != nil {
		return err
	}
	objects = slices.DeleteFunc(objects, func(one StaleObject) bool {
		return one.Action != cleanup.ActionDelete && one.Action != cleanup.ActionRelease
	})
	if len(objects) == 0 {
		o.Note("There is nothing to do.")
		return nil
	}
	if err := o.ConfirmFunc(o.yes)(ctx, confirmQuestion(objects)); err != nil {
		return err
	}
	if err := stillFormer(); err != nil {
		return err
	}
	var failed []error
	for _, one := range objects {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(failed, err)...)
		}
		err := DeleteOrRelease(ctx, cluster, one, o.DryRun)
		if err == nil {
			err = o.Print(one.PartialObjectMetadata, one.pastTense())
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s %s: %w", one.Resource, strings.TrimPrefix(one.Namespace+"/"+one.Name, "/"), redact.Error(err)))
		}
	}
	return errors.Join(failed...)
}

func confirmQuestion(objects []StaleObject) string {
	counts := map[cleanup.Action]int{}
	for _, one := range objects {
		counts[one.Action]++
	}
	return fmt.Sprintf("Of these objects %d would be deleted and %d released. Their marks are not verified.", counts[cleanup.ActionDelete], counts[cleanup.ActionRelease])
}

// list prints the stale objects.
func (o *staleObjectsOptions) list(objects []StaleObject) error {
	if *o.Output.OutputFormat != "" {
		for _, one := range objects {
			if err := o.Print(one.PartialObjectMetadata, ""); err != nil {
				return err
			}
		}
		return nil
	}
	if len(objects) == 0 {
		o.Note("No objects of the SyncTarget are there.")
		return nil
	}
	return printObjects(o.Out, objects)
}
