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
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/registration"
)

const confirmLong = `Confirm that another cluster takes the place of a SyncTarget's former cluster.

The hub stops when the kubeconfig or the tunnel of a SyncTarget leads to another cluster than before. So kubeconfigs that were
mixed up cannot put objects on the wrong cluster. After the confirmation, the hub syncs with the new cluster. The copies on the
former cluster stay there: status.formerClusters lists the cluster, and stale-objects removes the copies.`

const confirmExample = `  # Show the expected cluster, and the one that answers
  kubectl synchub confirm-cluster florin --dry-run=client

  # Confirm the one that answers
  kubectl synchub confirm-cluster florin`

// NewConfirmClusterCommand returns the command confirm-cluster.
func NewConfirmClusterCommand(streams genericiooptions.IOStreams) *cobra.Command {
	options := cli.NewInventoryOptions(streams)
	var wait cli.WaitFlags
	command := &cobra.Command{
		Use:     "confirm-cluster NAME",
		Short:   "Confirm that another cluster takes the place of the former one",
		Long:    confirmLong,
		Example: confirmExample,
		RunE: func(command *cobra.Command, args []string) error {
			return confirmCluster(command.Context(), options, args[0], wait)
		},
	}
	options.AddFlags(command)
	wait.AddWait(command, "the SyncTarget is ready with that cluster", false, 2*time.Minute)
	return command
}

// confirmCluster confirms the cluster that the hub has observed. It writes the observed ID, so that it does not
// confirm a cluster that the kubeconfig reaches later.
func confirmCluster(ctx context.Context, o *cli.InventoryOptions, name string, wait cli.WaitFlags) error {
	inventory, syncTarget, err := o.GetSyncTarget(ctx, name, wait.CheckTimeout())
	if err != nil {
		return err
	}
	observed := syncTarget.Status.ObservedClusterID
	if observed == "" {
		return fmt.Errorf("there is nothing to confirm: the hub has seen no other cluster behind the SyncTarget %s", name)
	}
	former := cmp.Or(syncTarget.Status.ClusterID, "of an unknown ID")
	o.Note(fmt.Sprintf("The SyncTarget stood for the cluster %s; the cluster %s answers now.", former, observed))
	err = o.Change(ctx, inventory.Client, syncTarget, "confirmed", func() {
		metav1.SetMetaDataAnnotation(&syncTarget.ObjectMeta, edgev2alpha1.AnnotationConfirmedCluster, observed)
	})
	if err != nil {
		return err
	}
	waiting := &cli.SyncTargetWait{InventoryOptions: o, WaitFlags: wait, Describe: cli.DescribeNotReady, Result: "ready"}
	waiting.Done = func(seen *edgev2alpha1.SyncTarget) bool {
		return seen.Status.ClusterID == observed && registration.IsReady(seen)
	}
	return waiting.Run(ctx, syncTarget)
}
