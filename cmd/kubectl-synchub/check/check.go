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

package check

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/bindcompute"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
)

const checkLong = `Inspect an installation and report problems: the version of kcp, the provider workspace, and the APIBindings and SyncTargets of
the current workspace. With the kubeconfig of the hosting cluster, the command also checks the hub and the published APIs.

The command changes nothing. It reports as skipped the parts that your rights do not let it read. It checks the provider
workspace by a dry run of synchub init, which needs the rights of its administrator. The command fails if it finds a problem.`

const checkExample = `  # Check as a user of an inventory workspace
  kubectl synchub check

  # Check everything, as an administrator
  kubectl synchub check --hub-user synchub-hub --hosting-kubeconfig hosting.kubeconfig`

// checkOptions are the flags of check.
type checkOptions struct {
	cli.WorkspaceOptions
	hosting                         cli.HostingFlags
	output                          cli.StructuredOutput
	provider, hubUser, hubNamespace string
}

// NewCommand returns the command check.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	options := &checkOptions{WorkspaceOptions: cli.NewWorkspaceOptions(streams)}
	command := &cobra.Command{
		Use:     "check",
		Short:   "Inspect an installation and report problems",
		Long:    checkLong,
		Example: checkExample,
		Args:    cli.NoArguments,
		RunE:    func(command *cobra.Command, _ []string) error { return options.run(command.Context()) },
	}
	flags := command.Flags()
	options.Cluster.AddFlags(flags)
	options.output.AddFlag(command)
	flags.StringVar(&options.provider, "provider-workspace", cli.DefaultProvider, "path of the hub's provider workspace")
	flags.StringVar(&options.hubUser, "hub-user", "", "name of the hub's kcp user, to check its rights")
	options.hosting.AddFlags(command, "kubeconfig of the cluster that hosts the hub")
	flags.StringVar(&options.hubNamespace, "hub-namespace", "synchub", "namespace of the hub in the hosting cluster")
	command.ValidArgsFunction = cobra.NoFileCompletions
	return command
}

func (o *checkOptions) run(ctx context.Context) error {
	if err := bindcompute.ValidatePath(o.provider); err != nil {
		return fmt.Errorf("--provider-workspace: %w", err)
	}
	config, err := o.Cluster.ToRESTConfig()
	if err != nil {
		return err
	}
	report := &Report{}
	if report.kcp(config) {
		if err := o.checkKCP(ctx, report, config); err != nil {
			return err
		}
	}
	if err := o.checkHosting(ctx, report); err != nil {
		return err
	}
	done, err := o.output.Print(o.Out, report)
	if err != nil {
		return err
	}
	if !done {
		report.Print(o.Out)
	}
	if problems := report.Problems(); problems > 0 {
		return fmt.Errorf("%d problems were found", problems)
	}
	return nil
}

func (o *checkOptions) checkKCP(ctx context.Context, report *Report, config *rest.Config) error {
	if err := report.provider(ctx, config, o.provider, o.hubUser); err != nil {
		return err
	}
	workspace, err := cli.ClientOf(config)
	if err != nil {
		return err
	}
	report.bindings(ctx, workspace, o.provider)
	var syncTargets edgev2alpha1.SyncTargetList
	switch err := workspace.List(ctx, &syncTargets); {
	case err == nil:
		report.targets(syncTargets.Items, time.Now())
	case !meta.IsNoMatchError(err):
		report.add("targets", Skipped, "the SyncTargets of the workspace cannot be listed: %v", err)
	}
	return nil
}

func (o *checkOptions) checkHosting(ctx context.Context, report *Report) error {
	if !o.hosting.IsSet() {
		report.add(hostingArea, Skipped, "name the hosting cluster by --hosting-kubeconfig or --hosting-context to check the hub itself")
		return nil
	}
	config, err := o.hosting.Config(o.Cluster)
	if err != nil {
		return err
	}
	hosting, err := cli.ClientOf(config)
	if err != nil {
		return err
	}
	versions, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	report.hosting(ctx, hosting, versions, o.hubNamespace)
	return nil
}
