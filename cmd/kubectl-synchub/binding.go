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
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/bindcompute"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/exportbinding"
)

// defaultProvider is the provider workspace that `synchub init` makes.
const defaultProvider = "root:synchub"

// bindingOptions are the flags of commands that change the APIBinding of a workspace.
type bindingOptions struct {
	*inventoryOptions
	// workspace and provider are paths. An empty workspace is that of the current context.
	workspace, provider string
	waitFlags
}

func newBindingOptions(streams genericiooptions.IOStreams) bindingOptions {
	return bindingOptions{inventoryOptions: newInventoryOptions(streams)}
}

func (o *bindingOptions) addFlags(command *cobra.Command) {
	o.inventoryOptions.addFlags(command)
	flags := command.Flags()
	flags.StringVar(&o.workspace, "workspace", "", "path of the workspace; the default is the workspace of the current context")
	flags.StringVar(&o.provider, "provider-workspace", defaultProvider, "path of the hub's provider workspace")
	for _, flag := range []string{"workspace", "provider-workspace"} {
		_ = command.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions)
	}
	command.ValidArgsFunction = cobra.NoFileCompletions
}

// check validates the flags. inventory is "" if the command has no such argument.
func (o *bindingOptions) check(inventory string) error {
	if err := o.complete(); err != nil {
		return err
	}
	for _, path := range []struct{ what, value string }{{"INVENTORY_WORKSPACE", inventory}, {"--workspace", o.workspace}, {"--provider-workspace", o.provider}} {
		if path.value == "" && path.what != "--provider-workspace" {
			continue
		}
		if err := bindcompute.ValidatePath(path.value); err != nil {
			return fmt.Errorf("%s: %w", path.what, err)
		}
	}
	return o.checkTimeout()
}

// workspaceConfig returns the client configuration for the workspace.
func (o *bindingOptions) workspaceConfig() (*rest.Config, error) {
	config, err := o.cluster.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	if o.workspace == "" {
		return config, nil
	}
	return inWorkspace(config, o.workspace)
}

// binder returns what binds an export in the workspace. It sends no requests.
func (o *bindingOptions) binder() (*exportbinding.Binder, error) {
	config, err := o.workspaceConfig()
	if err != nil {
		return nil, err
	}
	workspace, err := clientOf(config)
	if err != nil {
		return nil, err
	}
	inProvider, err := inWorkspace(config, o.provider)
	if err != nil {
		return nil, err
	}
	provider, err := client.New(inProvider, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	return &exportbinding.Binder{
		Client: workspace, DryRun: o.dryRun != dryRunNone,
		ProviderPath: o.provider, Provider: provider,
		Timeout: o.limit(), Report: o.report, Info: o.note,
	}, nil
}

// inWorkspace returns a copy of a client configuration for another workspace of the same kcp.
func inWorkspace(config *rest.Config, workspace string) (*rest.Config, error) {
	config = rest.CopyConfig(config)
	server, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	prefix, _, found := strings.Cut(server.Path, "/clusters/")
	if !found {
		return nil, fmt.Errorf("the current context is no workspace of kcp: its server %s has no /clusters/ in its path", config.Host)
	}
	server.Path = prefix + "/clusters/" + workspace
	config.Host = server.String()
	return config, nil
}
