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
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/overview"
)

// wide is the output format with all columns.
const wide = "wide"

const getLong = `List the SyncTargets of the current workspace: whether each is ready, the number of objects in sync with the cluster and of
failed ones, the age of the oldest pending change, the cluster's version, and when it last answered.

READY is Unknown if the hub has not connected to the cluster yet, or if no hub has written a status for minutes.`

// getOptions are the flags of get.
type getOptions struct {
	cli.ReadOptions
	output    *genericclioptions.PrintFlags
	watch     bool
	noHeaders bool
}

func newGetTargetsCommand(streams genericiooptions.IOStreams) *cobra.Command {
	options := &getOptions{ReadOptions: cli.NewReadOptions(streams), output: genericclioptions.NewPrintFlags("").WithTypeSetter(cli.Scheme)}
	command := &cobra.Command{
		Use:     "targets [NAME...]",
		Aliases: []string{"target", "synctargets", "synctarget"},
		Short:   "List SyncTargets and their states",
		Long:    getLong,
		Example: `  kubectl synchub get targets

  # With mailbox and reason, and each change from now on
  kubectl synchub get targets -o wide --watch

  # The names of the SyncTargets in one zone
  kubectl synchub get targets -l zone=a -o name`,
		RunE: func(command *cobra.Command, args []string) error { return options.run(command.Context(), args) },
	}
	options.AddFlags(command)
	options.AddSelector(command)
	options.output.AddFlags(command)
	cli.SetFormats(command, append(options.output.AllowedFormats(), wide))
	command.Flags().BoolVarP(&options.watch, "watch", "w", false, "after listing them, print each that changes")
	command.Flags().BoolVar(&options.noHeaders, "no-headers", false, "print no headers")
	return command
}

func (o *getOptions) run(ctx context.Context, names []string) error {
	show, err := o.printer()
	if err != nil {
		return err
	}
	workspace, err := o.Client()
	if err != nil {
		return err
	}
	list, err := o.List(ctx, workspace, names)
	if err != nil {
		return err
	}
	if len(list.Items) == 0 && !o.watch && (*o.output.OutputFormat == "" || *o.output.OutputFormat == wide) {
		fmt.Fprintln(o.ErrOut, "No SyncTargets found in this workspace.")
		return nil
	}
	if err := show(list); err != nil || !o.watch {
		return err
	}
	return o.follow(ctx, workspace, names, list, show)
}

// follow prints each SyncTarget that changes, until the context ends.
func (o *getOptions) follow(ctx context.Context, workspace client.WithWatch, names []string, list *edgev2alpha1.SyncTargetList, show func(*edgev2alpha1.SyncTargetList) error) error {
	options, err := o.ListOptions()
	if err != nil {
		return err
	}
	return cli.Follow(ctx, workspace, list, func(_ watch.EventType, object client.Object) error {
		changed, ok := object.(*edgev2alpha1.SyncTarget)
		if !ok || len(names) > 0 && !slices.Contains(names, changed.Name) {
			return nil
		}
		return show(&edgev2alpha1.SyncTargetList{Items: []edgev2alpha1.SyncTarget{*changed}})
	}, options)
}

// printer returns a function that prints SyncTargets in the requested format.
func (o *getOptions) printer() (func(*edgev2alpha1.SyncTargetList) error, error) {
	format := *o.output.OutputFormat
	if format != "" && format != wide {
		printer, err := o.output.ToPrinter()
		if err != nil {
			return nil, fmt.Errorf("--output: %w", err)
		}
		return func(list *edgev2alpha1.SyncTargetList) error { return o.printObjects(printer, list) }, nil
	}
	table := printers.NewTablePrinter(printers.PrintOptions{Wide: format == wide, NoHeaders: o.noHeaders})
	return func(list *edgev2alpha1.SyncTargetList) error {
		now := time.Now()
		return table.PrintObj(cli.SanitizeTable(overview.Table(overview.RowsOf(list, now), now)), o.Out)
	}, nil
}

// printObjects prints names one by one, and manifests as a list unless the user asked for a single one.
func (o *getOptions) printObjects(printer printers.ResourcePrinter, list *edgev2alpha1.SyncTargetList) error {
	gvk := edgev2alpha1.SchemeGroupVersion.WithKind("SyncTarget")
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(gvk)
		list.Items[i].SetManagedFields(nil)
	}
	if *o.output.OutputFormat == "name" || o.watch {
		for i := range list.Items {
			if err := cli.PrintSafely(printer, &list.Items[i], o.Out); err != nil {
				return err
			}
		}
		return nil
	}
	var printed runtime.Object = list
	list.SetGroupVersionKind(edgev2alpha1.SchemeGroupVersion.WithKind("SyncTargetList"))
	if len(list.Items) == 1 {
		printed = &list.Items[0]
	}
	return cli.PrintSafely(printer, printed, o.Out)
}
