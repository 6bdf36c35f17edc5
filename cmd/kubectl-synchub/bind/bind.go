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
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/bindcompute"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/registration"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/rollout"
)

const bindComputeLong = `Make the current workspace a workload workspace, and place its objects on the clusters of an inventory workspace.

The command binds the hub's export workload.edge.kubestellar.io and accepts all claims of the export. Then it creates an
EdgePlacement that selects Locations of the inventory workspace. You need the right to bind the export, and no other right in
the provider workspace. A Location must be available to this workspace: the administrator of the inventory makes it so with
` + "`kubectl synchub allow`" + `. The command fails if the hub reports that none is; --wait=false does not wait for the hub. The EdgePlacement
stays, and takes effect as soon as a Location is available.

Without --location-selectors the EdgePlacement selects all Locations of the inventory workspace. A selector is written as for
kubectl get: env=prod,tier!=db matches a Location that meets both. Repeat the flag for alternatives.

With --namespace-selector the EdgePlacement selects the objects in the namespaces that match. Without it, the EdgePlacement
selects the objects in all namespaces, default among them, except ` + "`%s`" + `. The hub creates
the namespaces on the clusters. Cluster-scoped objects, such as ClusterRoles, are in no namespace: to place them, add a test to
spec.downsync of an EdgePlacement.

The objects get the status that they have on the clusters, with the numbers of all clusters summed up: commands such as kubectl
rollout status work as in a cluster. With --aggregate-status=false they get none.

The Pods of the clusters appear in the namespaces of this workspace, each with the name of its cluster at the end, and nobody can
change them here: kubectl get pods lists them. --upsync names further resources, such as replicasets.apps, and replaces the Pods.
On a cluster whose namespaces all workspaces share, the administrator of the inventory must allow upsync by the Location.

You can repeat the command: it changes nothing that is in place. It accepts new claims of the export, which the hub needs
for newly published APIs. A claim that you have rejected or limited in the APIBinding stays so. If there is an
EdgePlacement of the name with other settings, the command changes nothing and prints the differences.`

const bindComputeExample = `  # Run the objects of this workspace on all clusters of an inventory workspace
  kubectl synchub bind compute root:inventory

  # Only namespaces for workloads, on clusters of Locations for production
  kubectl synchub bind compute root:inventory --location-selectors env=prod --namespace-selector purpose=workload --name prod

  # Locations in one of two regions
  kubectl synchub bind compute root:inventory --location-selectors region=eu --location-selectors region=us

  # Print the objects, to apply them later
  kubectl synchub bind compute root:inventory --dry-run=client -o yaml`

// bindOptions are the flags of bind compute.
type bindOptions struct {
	workloadOptions
	locations       []string
	namespaces      string
	aggregateStatus bool
	upsync          []string
	// isStatusAsked is true if the flag of aggregateStatus is set, isUpsyncAsked if the one of upsync is, and isWaitSet if --wait is.
	isStatusAsked, isUpsyncAsked, isWaitSet bool
}

// NewComputeCommand returns the command bind compute.
func NewComputeCommand(streams genericiooptions.IOStreams) *cobra.Command {
	options := &bindOptions{workloadOptions: newWorkloadOptions(streams)}
	command := &cobra.Command{
		Use:     "compute INVENTORY_WORKSPACE",
		Short:   "Place the objects of a workspace on the clusters of an inventory workspace",
		Long:    fmt.Sprintf(bindComputeLong, strings.Join(bindcompute.SystemNamespaces, ", ")),
		Example: bindComputeExample,
		RunE: func(command *cobra.Command, args []string) error {
			options.isStatusAsked, options.isWaitSet = command.Flags().Changed("aggregate-status"), command.Flags().Changed("wait")
			options.isUpsyncAsked = command.Flags().Changed("upsync")
			return options.run(command.Context(), args[0])
		},
	}
	options.addFlags(command)
	flags := command.Flags()
	flags.StringArrayVar(&options.locations, "location-selectors", nil, "labels of Locations to select; repeat the flag for alternatives. The default is all Locations of the inventory workspace")
	flags.StringVar(&options.namespaces, "namespace-selector", "", "labels of the namespaces whose objects are placed; the default is all but system namespaces")
	flags.BoolVar(&options.aggregateStatus, "aggregate-status", true, "give the objects the status that they have on the clusters, summed up over all of them")
	flags.StringSliceVar(&options.upsync, "upsync", []string{"pods"}, "resources whose objects appear in this workspace as they are on the clusters; an empty text for none")
	flags.StringVar(&options.name, "name", "", "name of the EdgePlacement; the default is the path of the inventory workspace with dots for colons")
	options.AddWait(command, "the clusters have the objects; without it the command only waits until the hub reports whether a Location is available, and with --wait=false only for kcp, which binds the export", false, 2*time.Minute)
	for _, flag := range []string{"location-selectors", "namespace-selector", "name", "upsync"} {
		_ = command.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions)
	}
	command.Args = func(command *cobra.Command, args []string) error {
		if len(args) == 1 && args[0] != "" {
			return nil
		}
		return cli.WithAdvice(command, errors.New("give the path of one inventory workspace"))
	}
	return command
}

// placement returns the settings of the EdgePlacement from the flags.
func (o *bindOptions) placement(inventory string) (bindcompute.Placement, error) {
	placement := bindcompute.Placement{Name: o.name, Inventory: inventory}
	if o.isStatusAsked {
		placement.AggregateStatus = &o.aggregateStatus
	}
	if o.isUpsyncAsked {
		placement.Upsync = []schema.GroupResource{}
	}
	for _, text := range o.upsync {
		resource, err := bindcompute.ParseResource(text)
		if err != nil {
			return placement, fmt.Errorf("--upsync: %w", err)
		}
		if o.isUpsyncAsked {
			placement.Upsync = append(placement.Upsync, resource)
		}
	}
	if problems := validation.IsDNS1123Subdomain(o.name); o.name != "" && len(problems) > 0 {
		return placement, fmt.Errorf("--name: %q cannot be the name of an EdgePlacement: %s", o.name, problems[0])
	}
	for _, text := range o.locations {
		selector, err := bindcompute.ParseSelector(text)
		if err != nil {
			return placement, fmt.Errorf("--location-selectors: %w", err)
		}
		placement.Locations = append(placement.Locations, *selector)
	}
	if o.namespaces == "" {
		return placement, nil
	}
	var err error
	if placement.Namespaces, err = bindcompute.ParseSelector(o.namespaces); err != nil {
		return placement, fmt.Errorf("--namespace-selector: %w", err)
	}
	return placement, nil
}

func (o *bindOptions) run(ctx context.Context, inventory string) error {
	if err := o.check(inventory); err != nil {
		return err
	}
	placement, err := o.placement(inventory)
	if err != nil {
		return err
	}
	workspace, err := o.open()
	if err != nil {
		return err
	}
	if o.DryRun == cli.DryRunClient {
		return o.show(ctx, workspace, placement)
	}
	created, err := workspace.Bind(ctx, placement)
	if err != nil {
		return err
	}
	if o.DryRun != cli.DryRunNone {
		o.noteDefault(ctx, workspace, placement)
		return nil
	}
	name := placement.Object().Name
	if o.Wait || !o.isWaitSet {
		err = o.awaitLocation(ctx, workspace, name, inventory, created)
	}
	if err != nil || !workspace.HasOwnNamespaces(ctx, name) {
		o.noteDefault(ctx, workspace, placement)
	}
	if err != nil {
		return err
	}
	if !o.Wait {
		o.Note(fmt.Sprintf("See with `kubectl get edgeplacement %s` how many objects are placed, and with `kubectl get singleplacementslice %s -o yaml` on which clusters.", name, name))
		return nil
	}
	config, err := o.Config()
	if err != nil {
		return err
	}
	return rollout.Wait(ctx, config, o.ErrOut, name, o.WaitFlags)
}

// awaitLocation returns an error if the hub reports that no Location is available.
func (o *bindOptions) awaitLocation(ctx context.Context, workspace *bindcompute.Workspace, name, inventory string, created bool) error {
	reported, err := workspace.AwaitLocation(ctx, name, created)
	switch {
	case errors.Is(err, bindcompute.ErrNoLocation):
		return fmt.Errorf("%w: the administrator of %s allows it with `kubectl synchub allow LOCATION --workspace %s`. The EdgePlacement %s stays, and takes effect then", err, inventory, o.path(), name)
	case err == nil && !reported:
		o.Note(fmt.Sprintf("The hub has not reported yet whether a Location of %s is available to this workspace.", inventory))
	}
	return err
}

// path returns the path of the workspace, or its logical cluster if the current context has only that. It is empty without a kubeconfig.
func (o *bindOptions) path() string {
	config, err := o.Config()
	if err != nil {
		return ""
	}
	_, path, _ := strings.Cut(config.Host, "/clusters/")
	return path
}

// noteDefault prints a note if the EdgePlacement selects the namespace default, which all workspaces have.
func (o *bindOptions) noteDefault(ctx context.Context, workspace *bindcompute.Workspace, placement bindcompute.Placement) {
	if workspace.SelectsDefault(ctx, placement) {
		o.Note("The EdgePlacement also selects the objects in the namespace default. If the workspaces share the namespaces of a cluster, only one of them can have an object of a name there. Select namespaces of your own with --namespace-selector.")
	}
}

// show prints the objects that the command would create.
func (o *bindOptions) show(ctx context.Context, workspace *bindcompute.Workspace, placement bindcompute.Placement) error {
	objects, err := workspace.Objects(ctx, placement)
	if err != nil {
		return err
	}
	o.noteDefault(ctx, workspace, placement)
	for _, object := range objects {
		if err := o.Print(object, string(registration.Created)); err != nil {
			return err
		}
	}
	return nil
}
