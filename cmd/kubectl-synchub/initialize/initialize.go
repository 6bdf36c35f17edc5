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

package initialize

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/cmd/internal/initcommand"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
)

const initLong = initcommand.Long + `

The current context leads to any workspace of the kcp. You must be an administrator of the provider workspace. Afterwards install the
hub with the chart, and see ` + "`kubectl synchub check --pre`" + ` for what it needs.`

const initExample = `  kubectl synchub init --hub-user synchub-hub

  # Operators may register clusters, and developers may place workloads
  kubectl synchub init --hub-user synchub-hub --inventory-group operators --workload-group developers

  # Print the objects that the command would create
  kubectl synchub init --hub-user synchub-hub --dry-run=server -o yaml`

// initOptions are the flags of init.
type initOptions struct {
	cli.WorkspaceOptions
	initcommand.Options
	dryRun string
}

// NewCommand returns the command init.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	options := &initOptions{WorkspaceOptions: cli.NewWorkspaceOptions(streams)}
	command := &cobra.Command{
		Use:     "init",
		Short:   initcommand.Short,
		Long:    initLong,
		Example: initExample,
		Args:    cli.NoArguments,
		RunE:    func(command *cobra.Command, _ []string) error { return options.run(command.Context()) },
	}
	flags := command.Flags()
	options.Cluster.AddFlags(flags)
	options.AddWorkspace(flags)
	options.AddRights(flags)
	options.AddOutput(flags)
	cli.AddDryRun(command, &options.dryRun, "none, client or server: with client and server, kcp checks all writes and stores none")
	cli.SetFormats(command, []string{"yaml"})
	command.ValidArgsFunction = cobra.NoFileCompletions
	return command
}

func (o *initOptions) run(ctx context.Context) error {
	if err := o.Check(); err != nil {
		return err
	}
	if err := cli.CheckDryRun(o.dryRun); err != nil {
		return err
	}
	if err := cli.ValidatePath(o.Workspace); err != nil {
		return fmt.Errorf("--provider-workspace: %w", err)
	}
	config, err := o.Config()
	if err != nil {
		return err
	}
	if _, err := cli.InWorkspace(config, o.Workspace); err != nil {
		return err
	}
	o.Options.Config = func(workspace string) *rest.Config {
		// The call above has shown that this works.
		in, _ := cli.InWorkspace(config, workspace)
		return in
	}
	o.DryRun = o.dryRun != cli.DryRunNone
	return o.Run(ctx, o.Out, o.ErrOut)
}
