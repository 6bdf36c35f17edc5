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
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/registration"
)

const rotateLong = `Give the hub a new token for a cluster. The hub uses it without a restart.

The hub renews its tokens by itself. Use this command if somebody else may know a token. A cluster cannot revoke a single token:
--revoke deletes the ServiceAccount, which ends all its tokens, and creates it again. Until the hub has the new token, a moment
later, the cluster refuses the hub.

For a cluster with a tunnel, the command replaces the token with which the cluster opens the tunnel, and prints the Secret to
apply to the cluster. The hub accepts the former token for another hour, unless you give --revoke.`

const rotateExample = `  # Create another token
  kubectl synchub rotate florin --target-kubeconfig florin.kubeconfig

  # Create a new token, and end all former ones
  kubectl synchub rotate florin --target-kubeconfig florin.kubeconfig --revoke

  # Create a new token for a tunnel
  kubectl synchub rotate florin -o yaml > florin-secret.yaml`

// NewRotateCommand returns the command rotate.
func NewRotateCommand(streams genericiooptions.IOStreams) *cobra.Command {
	options := &registerOptions{InventoryOptions: cli.NewInventoryOptions(streams)}
	var revoke bool
	command := &cobra.Command{
		Use:     "rotate NAME (--target-kubeconfig FILE | -o yaml)",
		Short:   "Give the hub a new token for a cluster",
		Long:    rotateLong,
		Example: rotateExample,
		RunE: func(command *cobra.Command, args []string) error {
			return options.rotate(command.Context(), args[0], revoke)
		},
	}
	options.addFlags(command)
	options.tunnel.addHubFlags(command)
	command.Flags().BoolVar(&revoke, "revoke", false, "end all existing tokens")
	addLifetime(command, &options.lifetime)
	options.AddWait(command, "the hub uses the new token, and the SyncTarget is ready", false, 2*time.Minute)
	return command
}

func (o *registerOptions) rotate(ctx context.Context, name string, revoke bool) error {
	_, syncTarget, err := o.GetSyncTarget(ctx, name, o.CheckTimeout())
	if err != nil {
		return err
	}
	if registration.IsTunnel(syncTarget) {
		return o.rotateTunnel(ctx, syncTarget, revoke)
	}
	if err := cmp.Or(o.target.Required(), o.checkLifetime()); err != nil {
		return err
	}
	plan, err := o.plan(name)
	if err != nil {
		return err
	}
	hash, err := plan.RotateToken(ctx, syncTarget, revoke)
	if err != nil {
		return err
	}
	waiting := &cli.SyncTargetWait{InventoryOptions: o.InventoryOptions, WaitFlags: o.WaitFlags, Result: "ready with the new token"}
	waiting.Done = func(seen *edgev2alpha1.SyncTarget) bool { return usesToken(seen, hash) && registration.IsReady(seen) }
	waiting.Describe = func(seen *edgev2alpha1.SyncTarget) string {
		if !usesToken(seen, hash) {
			return "the hub has not taken the new token yet"
		}
		return cli.DescribeNotReady(seen)
	}
	return waiting.Run(ctx, syncTarget)
}

// usesToken reports whether the hub uses the token of a hash. The time when a token expires does not show that: two tokens of one
// second expire at the same time.
func usesToken(syncTarget *edgev2alpha1.SyncTarget, hash string) bool {
	return syncTarget.Status.Credentials != nil && syncTarget.Status.Credentials.TokenHash == hash
}
