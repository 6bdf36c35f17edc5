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
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/registration"
)

// Values of --dry-run.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

var scheme = newScheme()

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, coordinationv1.AddToScheme, rbacv1.AddToScheme, authorizationv1.AddToScheme, authenticationv1.AddToScheme,
		apisv1alpha2.AddToScheme, edgev2alpha1.AddToScheme, synchubv1alpha1.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}

// workspaceOptions are the flags that select the inventory workspace. Its context is the current one by default.
type workspaceOptions struct {
	genericiooptions.IOStreams
	cluster *genericclioptions.ConfigFlags
}

func newWorkspaceOptions(streams genericiooptions.IOStreams) workspaceOptions {
	return workspaceOptions{IOStreams: streams, cluster: newClusterFlags(true)}
}

func (o *workspaceOptions) client() (client.WithWatch, error) {
	config, err := o.cluster.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	return clientOf(config)
}

// clients returns a client for the workspace, and a reader of all kinds in it. It sends no requests.
func (o *workspaceOptions) clients() (client.WithWatch, *reader, error) {
	config, err := o.cluster.ToRESTConfig()
	if err != nil {
		return nil, nil, err
	}
	workspace, err := clientOf(config)
	if err != nil {
		return nil, nil, err
	}
	reader, err := newReader(config)
	return workspace, reader, err
}

// readerIn returns a reader of all kinds in another workspace of the same kcp.
func (o *workspaceOptions) readerIn(workspace string) (*reader, error) {
	config, err := o.cluster.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	if config, err = inWorkspace(config, workspace); err != nil {
		return nil, err
	}
	return newReader(config)
}

// inventoryOptions are the flags of all commands that change SyncTargets.
type inventoryOptions struct {
	workspaceOptions
	output *genericclioptions.PrintFlags
	dryRun string

	// manifests prints whole objects. It is nil if the command only prints names.
	manifests printers.ResourcePrinter
}

func newInventoryOptions(streams genericiooptions.IOStreams) *inventoryOptions {
	return &inventoryOptions{workspaceOptions: newWorkspaceOptions(streams), output: genericclioptions.NewPrintFlags("").WithTypeSetter(scheme)}
}

func (o *inventoryOptions) addFlags(command *cobra.Command) {
	flags := command.Flags()
	o.cluster.AddFlags(flags)
	o.output.AddFlags(command)
	flags.StringVar(&o.dryRun, "dry-run", dryRunNone, "none, client or server: with client nothing is sent but questions, with server all is sent and nothing stored")
	flags.Lookup("dry-run").NoOptDefVal = dryRunClient
	_ = command.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{dryRunNone, dryRunClient, dryRunServer}, cobra.ShellCompDirectiveNoFileComp))
	setFormats(command, o.output.AllowedFormats())
	command.Args = oneSyncTarget
	command.ValidArgsFunction = o.completeName
}

func oneSyncTarget(command *cobra.Command, args []string) error {
	if len(args) == 1 && args[0] != "" {
		return nil
	}
	return withAdvice(command, errors.New("give the name of one SyncTarget"))
}

// completeName completes the names of SyncTargets. The user waits for it, so on any problem it returns nothing.
func (o *workspaceOptions) completeName(command *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	workspace, err := o.client()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var list edgev2alpha1.SyncTargetList
	if err := workspace.List(command.Context(), &list); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []cobra.Completion
	for _, syncTarget := range list.Items {
		if strings.HasPrefix(syncTarget.Name, prefix) {
			names = append(names, syncTarget.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// complete validates the flags. Callers must call it before any other method.
func (o *inventoryOptions) complete() error {
	switch o.dryRun {
	case dryRunNone, dryRunClient, dryRunServer:
	default:
		return fmt.Errorf("--dry-run: %q is none of none, client and server", o.dryRun)
	}
	printer, err := o.output.ToPrinter()
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	if format := *o.output.OutputFormat; format != "" && format != "name" {
		o.manifests = printer
	}
	return nil
}

func clientOf(config *rest.Config) (client.WithWatch, error) {
	return client.NewWithWatch(config, client.Options{Scheme: scheme})
}

// inventory returns a client for the inventory workspace, which writes nothing in a dry run.
func (o *inventoryOptions) inventory() (*registration.Inventory, error) {
	workspace, err := o.client()
	if err != nil {
		return nil, err
	}
	namespace, _, err := o.cluster.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	return &registration.Inventory{Client: o.withDryRun(workspace), DryRun: o.dryRun != dryRunNone, Namespace: namespace, Report: o.report}, nil
}

// withDryRun returns a client that writes nothing in a dry run.
func (o *inventoryOptions) withDryRun(writes client.Client) client.Client {
	if o.dryRun == dryRunNone {
		return writes
	}
	return client.NewDryRunClient(writes)
}

// report prints the change of an object.
func (o *inventoryOptions) report(change registration.Change) {
	if err := o.print(change.Object, string(change.Result)); err != nil {
		fmt.Fprintln(o.ErrOut, "error:", sanitizeLines(err.Error()))
	}
}

func (o *inventoryOptions) print(object client.Object, done string) error {
	if o.manifests != nil {
		return printSafely(o.manifests, object, o.Out)
	}
	if o.dryRun != dryRunNone {
		done += " (" + o.dryRun + " dry run)"
	}
	o.output.NamePrintFlags.Operation = done
	printer, err := o.output.ToPrinter()
	if err != nil {
		return err
	}
	return printSafely(printer, object, o.Out)
}

// note prints a message that is not a result, to standard error.
func (o *inventoryOptions) note(text string) { fmt.Fprintln(o.ErrOut, sanitizeLines(text)) }

// confirmFunc returns a function that asks the operator to confirm. With confirmed, or in a dry run, the
// function only prints the question. Without a terminal it returns an error.
func (o *inventoryOptions) confirmFunc(confirmed bool) func(context.Context, string) error {
	return func(ctx context.Context, question string) error {
		o.note(question)
		switch {
		case confirmed || o.dryRun != dryRunNone:
			return nil
		case !printers.IsTerminal(o.In):
			return errors.New("nothing was changed: say --yes if that is to be so")
		}
		fmt.Fprint(o.ErrOut, "Is that to be so? [y/N] ")
		answer := make(chan string, 1)
		go func() {
			line, _ := bufio.NewReader(o.In).ReadString('\n')
			answer <- strings.ToLower(strings.TrimSpace(line))
		}()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case line := <-answer:
			if line == "y" || line == "yes" {
				return nil
			}
			return errors.New("nothing was changed")
		}
	}
}

// progress prints one line of progress to standard error, for people and for logs.
func (o *inventoryOptions) progress(format string, values ...any) {
	fmt.Fprintln(o.ErrOut, sanitizeLine(fmt.Sprintf(format, values...)))
}

// getSyncTarget completes the options, and returns the inventory of the current workspace with one of its SyncTargets. It returns the first of
// the given errors of other options, if there is one.
func (o *inventoryOptions) getSyncTarget(ctx context.Context, name string, others ...error) (*registration.Inventory, *edgev2alpha1.SyncTarget, error) {
	if err := cmp.Or(o.complete(), cmp.Or(others...)); err != nil {
		return nil, nil, err
	}
	inventory, err := o.inventory()
	if err != nil {
		return nil, nil, err
	}
	syncTarget, err := inventory.SyncTarget(ctx, name)
	if err == nil && syncTarget == nil {
		err = registration.NotFound(name)
	}
	return inventory, syncTarget, err
}

// patchSyncTarget writes what changed in a SyncTarget since before, except in a client-side dry run.
func (o *inventoryOptions) patchSyncTarget(ctx context.Context, workspace client.Client, syncTarget, before *edgev2alpha1.SyncTarget) error {
	if o.dryRun == dryRunClient {
		return nil
	}
	// The printers need the kind, which the client removes.
	kind := syncTarget.GroupVersionKind()
	defer syncTarget.SetGroupVersionKind(kind)
	if err := workspace.Patch(ctx, syncTarget, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("cannot change the SyncTarget %s: %w", syncTarget.Name, err)
	}
	return nil
}
