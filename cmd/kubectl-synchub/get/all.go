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

package get

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/get"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
)

const getAllLong = `List SyncTargets, or objects of all mailboxes.

With --all-mailboxes, the command lists the objects of a RESOURCE in the mailboxes of all SyncTargets of a hub. It reads the
endpoints of the hub's export mailbox.edge.kubestellar.io with your own rights: one list request for each endpoint. kcp has one
endpoint for each shard. You need a role in the provider workspace; with it you can read every object of every mailbox. See "Read
all mailboxes at once" in docs/operations.md.

TARGET is the SyncTarget to which the mailbox belongs. The command reads this name from the Workspaces of the provider workspace and
from the SyncTargets of the current workspace. Without the right to read either, TARGET is the mailbox's logical cluster. If
SyncTargets of several inventory workspaces have one name, TARGET is the name, @, and the logical cluster.

Objects in -o json and -o yaml name their logical cluster in the annotation kcp.io/cluster.`

const getAllExample = `  kubectl synchub get targets

  # The Deployments in all namespaces of all mailboxes, and each change from now on
  kubectl synchub get deployments -A --all-mailboxes --watch

  # One Deployment, wherever it is
  kubectl synchub get deploy web -n shop --all-mailboxes -o yaml`

// getAllOptions are the flags of get with --all-mailboxes.
type getAllOptions struct {
	cli.WorkspaceOptions
	output *get.PrintFlags
	// provider is the path of the provider workspace.
	provider                string
	selector, fieldSelector string

	allMailboxes, allNamespaces, watch bool
}

// NewCommand returns the command get.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	options := &getAllOptions{WorkspaceOptions: cli.NewWorkspaceOptions(streams), output: get.NewGetPrintFlags()}
	options.WithNamespace()
	command := &cobra.Command{
		Use:     "get RESOURCE [NAME...] --all-mailboxes",
		Short:   "List SyncTargets, or objects of all mailboxes",
		Long:    getAllLong,
		Example: getAllExample,
		Args:    options.checkArguments,
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.Help()
			}
			return options.run(command.Context(), args[0], args[1:])
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	options.addFlags(command)
	command.AddCommand(newGetTargetsCommand(streams))
	return command
}

func (o *getAllOptions) addFlags(command *cobra.Command) {
	flags := command.Flags()
	o.AddFlags(command)
	o.output.AddFlags(command)
	cli.SetFormats(command, o.output.AllowedFormats())
	flags.BoolVar(&o.allMailboxes, "all-mailboxes", false, "list the objects of all mailboxes")
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "list the objects of all namespaces, as in kubectl get")
	flags.StringVarP(&o.selector, "selector", "l", "", "only objects with these labels, as in kubectl get")
	flags.StringVar(&o.fieldSelector, "field-selector", "", "only objects with these fields, as in kubectl get")
	flags.BoolVarP(&o.watch, "watch", "w", false, "after listing the objects, print each that changes")
	flags.StringVar(&o.provider, "provider-workspace", cli.DefaultProvider, "path of the hub's provider workspace")
	_ = command.RegisterFlagCompletionFunc("provider-workspace", cobra.NoFileCompletions)
}

// checkArguments validates the arguments. Without any, the command prints its help.
func (o *getAllOptions) checkArguments(command *cobra.Command, args []string) error {
	switch {
	case !o.allMailboxes && len(args) == 0:
		return nil
	case !o.allMailboxes:
		return cli.WithAdvice(command, fmt.Errorf("give --all-mailboxes to read %q in all mailboxes; to read the current workspace, run `kubectl get`", args[0]))
	case len(args) == 0 || slices.Contains(args, ""):
		return cli.WithAdvice(command, errors.New("give a resource, such as deployments, and names of objects if you want only these"))
	case strings.ContainsAny(args[0], ",/"):
		return cli.WithAdvice(command, fmt.Errorf("%q is not one resource: give the resource, then the names", args[0]))
	}
	return nil
}

// filter returns the objects to list. It includes the current namespace unless the user wants all namespaces.
func (o *getAllOptions) filter(names []string) (*objectFilter, error) {
	if _, err := labels.Parse(o.selector); err != nil {
		return nil, fmt.Errorf("--selector: %w", err)
	}
	selected, err := fields.ParseSelector(o.fieldSelector)
	if err != nil {
		return nil, fmt.Errorf("--field-selector: %w", err)
	}
	filter := newObjectFilter(o.selector, selected, names)
	if o.allNamespaces {
		return filter, nil
	}
	filter.namespace, _, err = o.Cluster.ToRawKubeConfigLoader().Namespace()
	return filter, err
}

// isHuman reports whether the output is a table for people.
func (o *getAllOptions) isHuman() bool {
	format, template := *o.output.OutputFormat, *o.output.TemplateFlags.TemplateArgument
	return format == wide || format == "" && template == ""
}

func (o *getAllOptions) run(ctx context.Context, resource string, names []string) error {
	if err := cli.ValidatePath(o.provider); err != nil {
		return fmt.Errorf("--provider-workspace: %w", err)
	}
	filter, err := o.filter(names)
	if err != nil {
		return err
	}
	// A wrong format is reported before any request.
	if _, err := o.output.ToPrinter(); err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	provider, err := o.ReaderIn(o.provider)
	if err != nil {
		return err
	}
	reader, err := o.mailboxesReader(ctx, provider, resource, filter)
	if err != nil {
		return err
	}
	list, err := reader.list(ctx)
	if err != nil {
		return err
	}
	printer, err := o.fleetPrinter(ctx, provider, reader)
	if err != nil {
		return err
	}
	if err := printer.printList(list); err != nil {
		return err
	}
	if o.watch {
		return reader.watch(ctx, list.versions, printer.printObject)
	}
	return missingNames(reader, list)
}

// missingNames returns an error with the requested names that no mailbox has.
func missingNames(reader *mailboxesReader, list *mailboxObjects) error {
	var missing []error
	for _, name := range reader.filter.names {
		if !slices.ContainsFunc(list.objects, func(object mailboxObject) bool { return object.content.GetName() == name }) {
			missing = append(missing, fmt.Errorf("%w in any mailbox", apierrors.NewNotFound(reader.resource.GroupResource(), name)))
		}
	}
	return errors.Join(missing...)
}
