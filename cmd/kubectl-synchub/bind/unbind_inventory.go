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
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/exportbinding"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/registration"
	"github.com/synchub-dev/synchub/provider/wording"
)

const unbindInventoryLong = `Delete the APIBinding of the export edge.kubestellar.io, so that the workspace is no inventory workspace any more.

With the APIBinding, kcp deletes all Locations of the workspace. While a SyncTarget exists, the command changes nothing: remove each with
` + "`kubectl synchub unregister`" + ` first.

The command shows the consequences and asks; --yes is for scripts.`

const unbindInventoryExample = `  kubectl synchub unbind inventory

  # See the consequences
  kubectl synchub unbind inventory --dry-run=server`

// maxSyncTargetNames is the number of names that one message lists.
const maxSyncTargetNames = 10

// unbindInventoryOptions are the flags of unbind inventory.
type unbindInventoryOptions struct {
	bindingOptions
	yes bool
}

// NewUnbindInventoryCommand returns the command unbind inventory.
func NewUnbindInventoryCommand(streams genericiooptions.IOStreams) *cobra.Command {
	options := &unbindInventoryOptions{bindingOptions: newBindingOptions(streams)}
	command := &cobra.Command{
		Use:     "inventory",
		Short:   "Make an inventory workspace without SyncTargets an ordinary workspace",
		Long:    unbindInventoryLong,
		Example: unbindInventoryExample,
		RunE:    func(command *cobra.Command, _ []string) error { return options.run(command.Context()) },
	}
	options.addFlags(command)
	command.Flags().BoolVarP(&options.yes, "yes", "y", false, "do not ask before anything is deleted")
	options.AddWait(command, "the APIBinding is gone", true, 2*time.Minute)
	command.Args = cli.NoArguments
	return command
}

func (o *unbindInventoryOptions) run(ctx context.Context) error {
	if err := o.check(""); err != nil {
		return err
	}
	binder, err := o.binder()
	if err != nil {
		return err
	}
	binder.Export = exportbinding.Inventory()
	binding, err := binder.Find(ctx)
	if err != nil {
		return err
	}
	if binding == nil {
		return fmt.Errorf("there is nothing to undo: the workspace has no APIBinding of the export %s", binder.Name)
	}
	if err := checkNoSyncTargets(ctx, binder); err != nil {
		return err
	}
	if err := o.ConfirmFunc(o.yes)(ctx, describeUnbinding(ctx, binder, binding.Name)); err != nil {
		return err
	}
	if o.DryRun == cli.DryRunClient {
		return o.Print(binding, string(registration.Deleted))
	}
	// Somebody may have registered a cluster since the question.
	if err := checkNoSyncTargets(ctx, binder); err != nil {
		return err
	}
	return binder.Remove(ctx, "APIBinding", binding, o.Wait)
}

// checkNoSyncTargets returns an error if the workspace has SyncTargets: kcp would delete them with the APIBinding, and the hub could no longer
// remove its objects from their clusters.
func checkNoSyncTargets(ctx context.Context, binder *exportbinding.Binder) error {
	var list edgev2alpha1.SyncTargetList
	err := binder.Client.List(ctx, &list)
	switch {
	case meta.IsNoMatchError(err):
		return nil
	case err != nil:
		return fmt.Errorf("cannot list the SyncTargets of the workspace: %w", err)
	case len(list.Items) == 0:
		return nil
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return fmt.Errorf("nothing was changed: the workspace has SyncTargets (%s), which kcp would delete with the APIBinding; remove each with `kubectl synchub unregister` first",
		wording.First(maxSyncTargetNames, names))
}

// describeUnbinding describes the effect of deleting the APIBinding.
func describeUnbinding(ctx context.Context, binder *exportbinding.Binder, name string) string {
	effect := fmt.Sprintf("The APIBinding %s goes. With it, kcp deletes all Locations of the workspace", name)
	switch count, err := binder.Count(ctx, schema.GroupResource{Group: edgev2alpha1.GroupName, Resource: "locations"}); {
	case err != nil:
		return effect + "."
	case count == 0:
		return effect + "; there are none."
	default:
		return effect + ": " + wording.Count(count, "Location", "Locations") + "."
	}
}
