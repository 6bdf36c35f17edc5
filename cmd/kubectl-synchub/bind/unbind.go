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

package bind

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/bindcompute"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/registration"
)

const unbindComputeLong = `Delete an EdgePlacement that bind compute made, so that the hub withdraws its objects from the clusters.

The command finds the EdgePlacement by the path of the inventory workspace that bind compute was given, or by --name if several
EdgePlacements are for that. The objects stay in the workspace. Copies stay on a cluster if another EdgePlacement places them there, or
if spec.deletionPolicy of the EdgePlacement is Orphan.

With --all the command also deletes the APIBinding of the export workload.edge.kubestellar.io, once no EdgePlacement is left.
Without an inventory workspace and a name it deletes every EdgePlacement that bind compute made. kcp deletes all objects of the
export's APIs in the workspace with the APIBinding, such as Deployments. While other EdgePlacements remain, the command changes
nothing, because they would go too.

The command shows the consequences and asks; --yes is for scripts.`

const unbindComputeExample = `  # Withdraw the objects of this workspace from the clusters of an inventory workspace
  kubectl synchub unbind compute root:inventory

  # One of several EdgePlacements, without a question
  kubectl synchub unbind compute --name prod --yes

  # See the consequences of removing all that bind compute made, and of the APIBinding
  kubectl synchub unbind compute --all --dry-run=server`

// unbindOptions are the flags of unbind compute.
type unbindOptions struct {
	workloadOptions
	all, yes bool
}

// NewUnbindComputeCommand returns the command unbind compute.
func NewUnbindComputeCommand(streams genericiooptions.IOStreams) *cobra.Command {
	options := &unbindOptions{workloadOptions: newWorkloadOptions(streams)}
	command := &cobra.Command{
		Use:     "compute (INVENTORY_WORKSPACE | --name NAME | --all)",
		Short:   "Withdraw the objects of a workspace from the clusters of an inventory workspace",
		Long:    unbindComputeLong,
		Example: unbindComputeExample,
		RunE: func(command *cobra.Command, args []string) error {
			return options.run(command.Context(), strings.Join(args, ""))
		},
	}
	options.addFlags(command)
	flags := command.Flags()
	flags.StringVar(&options.name, "name", "", "name of the EdgePlacement, in place of the inventory workspace")
	flags.BoolVar(&options.all, "all", false, "also delete the APIBinding of the export, and with it all objects of its APIs in the workspace")
	flags.BoolVarP(&options.yes, "yes", "y", false, "do not ask before anything is deleted")
	options.AddWait(command, "the EdgePlacement is gone", true, 5*time.Minute)
	command.ValidArgsFunction = options.completePlacements(bindcompute.InventoryOf)
	_ = command.RegisterFlagCompletionFunc("name", options.completePlacements(client.Object.GetName))
	command.Args = func(command *cobra.Command, args []string) error {
		switch {
		case len(args) > 1 || len(args) == 1 && args[0] == "":
			return cli.WithAdvice(command, errors.New("give the path of one inventory workspace"))
		case len(args) == 1 && options.name != "":
			return cli.WithAdvice(command, errors.New("give either the path of an inventory workspace or --name"))
		case len(args) == 0 && options.name == "" && !options.all:
			return cli.WithAdvice(command, errors.New("give the path of an inventory workspace, --name or --all"))
		}
		return nil
	}
	return command
}

func (o *unbindOptions) run(ctx context.Context, inventory string) error {
	if err := o.check(inventory); err != nil {
		return err
	}
	if o.all && !o.Wait {
		return errors.New("--wait=false: the APIBinding can only be deleted once the EdgePlacements are gone; leave out --wait=false or --all")
	}
	workspace, err := o.open()
	if err != nil {
		return err
	}
	removal, err := workspace.PlanRemoval(ctx, bindcompute.Selection{Inventory: inventory, Name: o.name, All: o.all})
	if err != nil {
		return err
	}
	if err := o.ConfirmFunc(o.yes)(ctx, strings.Join(removal.Effects, "\n")); err != nil {
		return err
	}
	if o.DryRun == cli.DryRunClient {
		return o.show(removal)
	}
	return workspace.Unbind(ctx, removal, o.Wait)
}

// show prints the objects that the command would delete.
func (o *unbindOptions) show(removal *bindcompute.Removal) error {
	for i := range removal.Placements {
		if err := o.Print(&removal.Placements[i], string(registration.Deleted)); err != nil {
			return err
		}
	}
	if removal.Binding == nil {
		return nil
	}
	return o.Print(removal.Binding, string(registration.Deleted))
}
