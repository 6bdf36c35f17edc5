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
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/exportbinding"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/registration"
)

const bindInventoryLong = `Make the current workspace an inventory workspace, in which clusters are registered.

The command binds the hub's export edge.kubestellar.io and accepts its claims. Of the Secrets of the workspace, the hub sees only those
with the label ` + edgev2alpha1.LabelCredential + `=` + edgev2alpha1.CredentialKubeconfig + `. You need the right to bind the export, and no other right in the provider workspace.

The command waits until kcp has bound the export and serves SyncTargets. You can repeat it: it changes nothing that is in place, and accepts new claims of the export. A claim that you have
rejected or limited in the APIBinding stays so.`

const bindInventoryExample = `  # Make the workspace of the current context an inventory workspace
  kubectl synchub bind inventory

  # Print the APIBinding, to apply it later
  kubectl synchub bind inventory --workspace root:inventory --dry-run=client -o yaml`

// NewInventoryCommand returns the command bind inventory.
func NewInventoryCommand(streams genericiooptions.IOStreams) *cobra.Command {
	options := newBindingOptions(streams)
	command := &cobra.Command{
		Use:     "inventory",
		Short:   "Make a workspace an inventory workspace",
		Long:    bindInventoryLong,
		Example: bindInventoryExample,
		RunE:    func(command *cobra.Command, _ []string) error { return runBindInventory(command.Context(), &options) },
	}
	options.addFlags(command)
	options.AddTimeout(command, 2*time.Minute)
	command.Args = cli.NoArguments
	return command
}

func runBindInventory(ctx context.Context, options *bindingOptions) error {
	if err := options.check(""); err != nil {
		return err
	}
	binder, err := options.binder()
	if err != nil {
		return err
	}
	binder.Export = exportbinding.Inventory()
	if options.DryRun == cli.DryRunClient {
		return showBinding(ctx, options, binder)
	}
	if _, err := binder.Ensure(ctx); err != nil {
		return err
	}
	if options.DryRun == cli.DryRunNone {
		options.Note("Register a cluster with `kubectl synchub register NAME --target-kubeconfig FILE`.")
	}
	return nil
}

// showBinding prints the APIBinding that the command would leave.
func showBinding(ctx context.Context, options *bindingOptions, binder *exportbinding.Binder) error {
	binding, err := binder.Manifest(ctx)
	if err != nil {
		return err
	}
	return options.Print(binding, string(registration.Created))
}
