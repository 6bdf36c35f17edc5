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
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/exportbinding"
)

// bindingOptions are the flags of commands that change the APIBinding of a workspace.
type bindingOptions struct {
	*cli.InventoryOptions
	// provider is a path.
	provider string
	cli.WaitFlags
}

func newBindingOptions(streams genericiooptions.IOStreams) bindingOptions {
	return bindingOptions{InventoryOptions: cli.NewInventoryOptions(streams)}
}

func (o *bindingOptions) addFlags(command *cobra.Command) {
	o.AddFlags(command)
	flags := command.Flags()
	flags.StringVar(&o.provider, "provider-workspace", cli.DefaultProvider, "path of the hub's provider workspace")
	_ = command.RegisterFlagCompletionFunc("provider-workspace", cobra.NoFileCompletions)
	command.ValidArgsFunction = cobra.NoFileCompletions
}

// check validates the flags. inventory is "" if the command has no such argument.
func (o *bindingOptions) check(inventory string) error {
	if err := o.Complete(); err != nil {
		return err
	}
	for _, path := range []struct{ what, value string }{{"INVENTORY_WORKSPACE", inventory}, {"--provider-workspace", o.provider}} {
		if path.value == "" && path.what != "--provider-workspace" {
			continue
		}
		if err := cli.ValidatePath(path.value); err != nil {
			return fmt.Errorf("%s: %w", path.what, err)
		}
	}
	return o.CheckTimeout()
}

// binder returns what binds an export in the workspace. It sends no requests.
func (o *bindingOptions) binder() (*exportbinding.Binder, error) {
	workspace, err := o.Client()
	if err != nil {
		return nil, err
	}
	config, err := o.Config()
	if err != nil {
		return nil, err
	}
	inProvider, err := cli.InWorkspace(config, o.provider)
	if err != nil {
		return nil, err
	}
	provider, err := cli.ClientOf(inProvider)
	if err != nil {
		return nil, err
	}
	return &exportbinding.Binder{
		Client: workspace, DryRun: o.DryRun != cli.DryRunNone,
		ProviderPath: o.provider, Provider: provider,
		Timeout: o.Limit(), Report: o.Report, Info: o.Note,
	}, nil
}
