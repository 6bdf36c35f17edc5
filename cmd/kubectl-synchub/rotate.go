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

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/synchub-dev/synchub/provider/registration"
)

const rotateLong = `Give the hub a new token for a cluster. The hub takes it without a restart.

It renews its tokens by itself; this is for when one may have become known to others. Tokens cannot be taken back one by one:
--revoke makes the ServiceAccount anew, which ends all its tokens at once. Until the hub has the new one, a moment later, the
cluster refuses it.`

const rotateExample = `  # A new token beside the one that there is
  kubectl synchub rotate florin --target-kubeconfig florin.kubeconfig

  # A new token, and the end of all others
  kubectl synchub rotate florin --target-kubeconfig florin.kubeconfig --revoke`

func newRotateCommand(streams genericiooptions.IOStreams) *cobra.Command {
	options := &registerOptions{inventoryOptions: newInventoryOptions(streams)}
	var revoke bool
	command := &cobra.Command{
		Use:     "rotate NAME --target-kubeconfig FILE",
		Short:   "Give the hub a new token for a cluster",
		Long:    rotateLong,
		Example: rotateExample,
		RunE: func(command *cobra.Command, args []string) error {
			return options.rotate(command.Context(), args[0], revoke)
		},
	}
	options.addFlags(command)
	options.target.addFlags(command)
	command.Flags().BoolVar(&revoke, "revoke", false, "end all tokens that there are")
	addLifetime(command, &options.lifetime)
	return command
}

func (o *registerOptions) rotate(ctx context.Context, name string, revoke bool) error {
	if err := o.complete(); err != nil {
		return err
	}
	if err := o.target.required(); err != nil {
		return err
	}
	if err := o.checkLifetime(); err != nil {
		return err
	}
	plan, err := o.plan(name)
	if err != nil {
		return err
	}
	if o.dryRun == dryRunClient {
		syncTarget, err := getSyncTarget(ctx, plan.Inventory, name)
		if err != nil {
			return err
		}
		secret, _ := registration.NewSecret(syncTarget)
		return o.print(secret, string(registration.Changed))
	}
	return plan.RotateToken(ctx, revoke)
}
