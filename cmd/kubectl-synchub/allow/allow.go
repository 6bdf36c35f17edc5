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

package allow

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/suggest"
)

const allowLong = `Let other workspaces use a Location of the current inventory workspace, or forbid it with --remove.

The command adds or removes the given paths in spec.availableTo.workspaces of the Location, and leaves all other paths as they are. A
path that ends with ":*", such as "root:teams:*", names all children of a workspace.

Before that, it shows which objects of the workspaces come to which clusters or leave them, and asks; --yes is for scripts. The numbers
come from the EdgePlacements of the workspaces. If you may not read these, the command counts the copies in the mailboxes of the
clusters. It prints what it could not read.

The hub withdraws more than a few copies only after a while, a minute by default. Until then, the same command without --remove keeps
them: see the condition WithdrawalPending of the Location.`

const allowExample = `  # Let a team use the clusters of a Location
  kubectl synchub allow default --workspace root:shop

  # All children of a workspace
  kubectl synchub allow prod --workspace 'root:teams:*'

  # See what a team would lose, and take the Location from it
  kubectl synchub allow prod --workspace root:shop --remove --dry-run=server
  kubectl synchub allow prod --workspace root:shop --remove`

// workspacePath matches an entry of spec.availableTo.workspaces, as its schema does.
var workspacePath = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(:[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(:\*)?$`)

type allowOptions struct {
	*cli.InventoryOptions
	workspaces  []string
	remove, yes bool
}

// NewCommand returns the command allow.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	options := &allowOptions{InventoryOptions: cli.NewInventoryOptions(streams)}
	command := &cobra.Command{
		Use:     "allow LOCATION --workspace PATH [--remove]",
		Short:   "Let other workspaces use a Location",
		Long:    allowLong,
		Example: allowExample,
		RunE:    func(command *cobra.Command, args []string) error { return options.run(command.Context(), args[0]) },
	}
	options.Cluster.AddFlags(command.Flags())
	options.AddWriteFlags(command)
	flags := command.Flags()
	flags.StringArrayVar(&options.workspaces, "workspace", nil, "path of a workspace that may use the Location; repeat the flag for more (required)")
	flags.BoolVar(&options.remove, "remove", false, "forbid the workspaces to use the Location")
	flags.BoolVarP(&options.yes, "yes", "y", false, "do not ask before the Location is changed")
	_ = command.RegisterFlagCompletionFunc("workspace", options.completeWorkspace)
	command.ValidArgsFunction = cli.Complete(options.Client, &edgev2alpha1.LocationList{}, client.Object.GetName)
	command.Args = func(command *cobra.Command, args []string) error {
		switch {
		case len(args) != 1 || args[0] == "":
			return cli.WithAdvice(command, errors.New("give the name of one Location"))
		case len(options.workspaces) == 0:
			return cli.WithAdvice(command, errors.New("give the path of a workspace with --workspace"))
		}
		return nil
	}
	return command
}

// completeWorkspace completes the workspaces that may use the given Location, which --remove may name.
func (o *allowOptions) completeWorkspace(command *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	workspace, err := o.Client()
	if err != nil || len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	location := &edgev2alpha1.Location{}
	if workspace.Get(command.Context(), types.NamespacedName{Name: args[0]}, location) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	paths := slices.DeleteFunc(location.Spec.AvailableTo.Workspaces, func(path string) bool { return !strings.HasPrefix(path, prefix) })
	return paths, cobra.ShellCompDirectiveNoFileComp
}

func (o *allowOptions) run(ctx context.Context, name string) error {
	if err := o.Complete(); err != nil {
		return err
	}
	for _, path := range o.workspaces {
		if !workspacePath.MatchString(path) {
			return fmt.Errorf("--workspace: %q is not the path of a workspace, such as root:teams:web or root:teams:*", path)
		}
	}
	reader, err := o.Reader()
	if err != nil {
		return err
	}
	location, err := getLocation(ctx, reader.Client, name)
	if err != nil {
		return err
	}
	changed := o.changedPaths(location)
	if len(changed) == 0 {
		return o.Print(location, "already "+o.done(o.workspaces))
	}
	question, err := o.describe(ctx, reader, location, changed)
	if err != nil {
		return err
	}
	if err := o.ConfirmFunc(o.yes)(ctx, question); err != nil {
		return err
	}
	if err := o.write(ctx, reader.Client, location, changed); err != nil {
		return err
	}
	return o.Print(location, o.done(changed))
}

func getLocation(ctx context.Context, workspace client.Client, name string) (*edgev2alpha1.Location, error) {
	location := &edgev2alpha1.Location{}
	err := workspace.Get(ctx, types.NamespacedName{Name: name}, location)
	switch {
	case meta.IsNoMatchError(err):
		return nil, fmt.Errorf("the current workspace serves no Locations: choose an inventory workspace with --context, or make it one with `kubectl synchub bind inventory`: %w", err)
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no Location %s in the current workspace%s; `kubectl get locations` lists them: %w", name, suggest.Objects(ctx, workspace, &edgev2alpha1.LocationList{}, name), err)
	case err != nil:
		return nil, fmt.Errorf("cannot get the Location %s: %w", name, err)
	}
	return location, nil
}

// done describes the state of a Location after the change.
func (o *allowOptions) done(paths []string) string {
	state := "available to "
	if o.remove {
		state = "not " + state
	}
	return state + joinNames(paths)
}

// changedPaths returns the given paths that the Location lacks, or has if they are to be removed.
func (o *allowOptions) changedPaths(location *edgev2alpha1.Location) (changed []string) {
	for _, path := range o.workspaces {
		if slices.Contains(location.Spec.AvailableTo.Workspaces, path) == o.remove && !slices.Contains(changed, path) {
			changed = append(changed, path)
		}
	}
	return changed
}

// apply adds the paths to the Location, or removes them.
func (o *allowOptions) apply(location *edgev2alpha1.Location, paths []string) {
	present := &location.Spec.AvailableTo.Workspaces
	*present = slices.DeleteFunc(slices.Clone(*present), func(path string) bool { return slices.Contains(paths, path) })
	if !o.remove {
		*present = append(*present, paths...)
	}
}

// write changes the Location. Somebody else may change it at the same time, so each try is for the version that it read.
func (o *allowOptions) write(ctx context.Context, workspace client.Client, location *edgev2alpha1.Location, paths []string) error {
	if o.DryRun == cli.DryRunClient {
		o.apply(location, paths)
		return nil
	}
	isFirst := true
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if !isFirst {
			if err := workspace.Get(ctx, client.ObjectKeyFromObject(location), location); err != nil {
				return err
			}
		}
		isFirst = false
		before := location.DeepCopy()
		o.apply(location, paths)
		return o.WithDryRun(workspace).Patch(ctx, location, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	if err != nil {
		return fmt.Errorf("cannot change the Location %s: %w", location.Name, err)
	}
	return nil
}
