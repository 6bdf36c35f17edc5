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
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/provider/wording"
)

const checkLong = `Inspect an installation and report problems: the version of kcp, the provider workspace, and the APIBindings and SyncTargets of
the current workspace. With the kubeconfig of the hosting cluster, the command also checks the hub and the published APIs.

The command changes nothing. It reports as skipped the parts that your rights do not let it read. It checks the provider
workspace by a dry run of kubectl synchub init, which needs the rights of its administrator. The command fails if it finds a problem.

With --pre, the command checks before the installation whether kcp and the hosting cluster have what the hub needs, and whether you
have the rights to install it.

With --dump, the command also writes what a bug report needs into a directory: the report, the SyncTargets, Locations, EdgePlacements
and configs with their events and, with the kubeconfig of the hosting cluster, the PublishedResources, the Pods and the logs of the hub.
It writes no Secret, no ConfigMap and no workload, and at most 40 MiB. It hides the values of drifted fields, aggregations,
annotations and environment variables, and masks credentials in messages and logs. Read the files before you send them: they have
the names of your workspaces, clusters, objects and users, and the expressions in your configs.`

const checkExample = `  # Check as a user of an inventory workspace
  kubectl synchub check

  # Check before the installation
  kubectl synchub check --pre --hosting-kubeconfig hosting.kubeconfig

  # Collect the files for a bug report
  kubectl synchub check --dump synchub-report --hosting-kubeconfig hosting.kubeconfig

  # Check everything, as an administrator
  kubectl synchub check --hub-user synchub-hub --hosting-kubeconfig hosting.kubeconfig`

// checkOptions are the flags of check.
type checkOptions struct {
	cli.WorkspaceOptions
	hosting                         cli.HostingFlags
	output                          cli.StructuredOutput
	provider, hubUser, hubNamespace string
	pre                             bool
	dump                            string
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
	options.AddFlags(command)
	options.output.AddFlag(command)
	flags.StringVar(&options.provider, "provider-workspace", cli.DefaultProvider, "path of the hub's provider workspace")
	flags.StringVar(&options.hubUser, "hub-user", "", "name of the hub's kcp user, to check its rights")
	options.hosting.AddFlags(command, "kubeconfig of the cluster that hosts the hub")
	flags.StringVar(&options.hubNamespace, "hub-namespace", "synchub", "namespace of the hub in the hosting cluster")
	flags.BoolVar(&options.pre, "pre", false, "check before the installation")
	flags.StringVar(&options.dump, "dump", "", "write the files for a bug report into this new directory")
	command.MarkFlagsMutuallyExclusive("pre", "dump")
	_ = command.MarkFlagDirname("dump")
	command.ValidArgsFunction = cobra.NoFileCompletions
	return command
}

func (o *checkOptions) run(ctx context.Context) error {
	if err := cli.ValidatePath(o.provider); err != nil {
		return fmt.Errorf("--provider-workspace: %w", err)
	}
	config, err := o.Config()
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
	if o.dump != "" {
		if err := o.writeDump(ctx, report, config); err != nil {
			return fmt.Errorf("--dump: %w", err)
		}
	}
	done, err := o.output.Print(o.Out, report)
	if err != nil {
		return err
	}
	if !done {
		report.Print(o.Out)
	}
	if problems := report.Problems(); problems > 0 {
		return fmt.Errorf("%s found", wording.Count(problems, "problem", "problems"))
	}
	return nil
}

func (o *checkOptions) checkKCP(ctx context.Context, report *Report, config *rest.Config) error {
	if o.pre {
		return report.preProvider(ctx, config, o.provider, o.hubUser)
	}
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
	hosting, err := o.hostingCluster()
	if err != nil {
		return err
	}
	if o.pre {
		report.preHosting(ctx, hosting.Client, hosting.discovery, o.hubNamespace)
		return nil
	}
	report.hosting(ctx, hosting.Client, hosting.discovery, o.hubNamespace)
	return nil
}

// hostingCluster has the clients of the hosting cluster: for objects, and for its version and logs. A clientset would add 10 MB to the
// program, for all kinds of Kubernetes.
type hostingCluster struct {
	client.Client
	discovery discovery.DiscoveryInterface
}

func (o *checkOptions) hostingCluster() (hosting hostingCluster, err error) {
	config, err := o.hosting.Config(o.Cluster)
	if err != nil {
		return hosting, err
	}
	if hosting.Client, err = cli.ClientOf(config); err != nil {
		return hosting, err
	}
	hosting.discovery, err = discovery.NewDiscoveryClientForConfig(config)
	return hosting, err
}
