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
	"errors"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	cliflag "k8s.io/component-base/cli/flag"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/synchub-dev/synchub/apis/config/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/internal/initcommand"
	"github.com/synchub-dev/synchub/provider/kcp"
)

// initLimits suffice for the dozen requests of init.
var initLimits = kcp.Limits{QPS: 50, Burst: 100}

func newInitCommand() *cobra.Command {
	var kubeconfig string
	var options initcommand.Options
	command := &cobra.Command{
		Use:   "init",
		Short: initcommand.Short,
		Long:  initcommand.Long,
		Example: "  synchub init --kcp-kubeconfig admin.kubeconfig --hub-user synchub-hub\n\n" +
			"  # Operators may register clusters, and developers may place workloads\n" +
			"  synchub init --kcp-kubeconfig admin.kubeconfig --hub-user synchub-hub \\\n" +
			"    --inventory-group operators --workload-group developers\n\n" +
			"  # See what it would create\n" +
			"  synchub init --kcp-kubeconfig admin.kubeconfig --hub-user synchub-hub \\\n" +
			"    --dry-run --output yaml",
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if kubeconfig == "" {
				return errors.New("set --kcp-kubeconfig to the kubeconfig of an administrator of the provider workspace")
			}
			if err := options.Check(); err != nil {
				return err
			}
			ctrl.SetLogger(newLogger(v1alpha1.LogConfiguration{Level: "error", Format: "console"}, os.Stderr))
			access, err := kcp.Load(kubeconfig, initLimits)
			if err != nil {
				return err
			}
			options.Config = func(workspace string) *rest.Config { return access.WorkspaceConfig(workspace) }
			return options.Run(command.Context(), command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	groups := &cliflag.NamedFlagSets{}
	flags := groups.FlagSet("general")
	flags.StringVar(&kubeconfig, "kcp-kubeconfig", "", "kubeconfig of an administrator of the provider workspace (required)")
	options.AddWorkspace(flags)
	options.AddRights(groups.FlagSet("rights"))
	flags = groups.FlagSet("output")
	flags.BoolVar(&options.DryRun, "dry-run", false, "change nothing: kcp checks each write, and stores none")
	options.AddOutput(flags)
	addFlagGroups(command, groups)
	initcommand.CompleteOutput(command)
	return command
}
