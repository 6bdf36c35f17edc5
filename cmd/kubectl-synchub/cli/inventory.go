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

package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/registration"
)

// Values of --dry-run.
const (
	DryRunNone   = "none"
	DryRunClient = "client"
	DryRunServer = "server"
)

// DryRunOption returns the option DryRun of a write.
func DryRunOption(dryRun string) []string {
	if dryRun == DryRunServer {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// AddDryRun adds the flag --dry-run to a command.
func AddDryRun(command *cobra.Command, dryRun *string, usage string) {
	flags := command.Flags()
	flags.StringVar(dryRun, "dry-run", DryRunNone, usage)
	flags.Lookup("dry-run").NoOptDefVal = DryRunClient
	_ = command.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{DryRunNone, DryRunClient, DryRunServer}, cobra.ShellCompDirectiveNoFileComp))
}

// CheckDryRun returns an error for an unknown value of --dry-run.
func CheckDryRun(dryRun string) error {
	switch dryRun {
	case DryRunNone, DryRunClient, DryRunServer:
		return nil
	default:
		return fmt.Errorf("--dry-run: %q is none of none, client and server", dryRun)
	}
}

// Scheme has the types that the commands read and write.
var Scheme = newScheme()

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

// WorkspaceOptions are the flags that select the inventory workspace. Its context is the current one by default.
type WorkspaceOptions struct {
	genericiooptions.IOStreams
	Cluster *genericclioptions.ConfigFlags
	// workspace is the path or the logical cluster of a workspace of the same kcp. It is empty for the workspace of the other flags.
	workspace string
}

// NewWorkspaceOptions returns the options with their defaults, without the flag --namespace.
func NewWorkspaceOptions(streams genericiooptions.IOStreams) WorkspaceOptions {
	options := WorkspaceOptions{IOStreams: streams, Cluster: NewClusterFlags(true)}
	options.Cluster.Namespace = nil
	return options
}

// WithNamespace offers the flag --namespace to a command that uses it. It must be called before the flags are added.
func (o *WorkspaceOptions) WithNamespace() { o.Cluster.Namespace = new("") }

// InWorkspace returns the options for another workspace of the same kcp.
func (o *WorkspaceOptions) InWorkspace(workspace string) WorkspaceOptions {
	other := *o
	other.workspace = workspace
	return other
}

// errNoKubeconfig means that neither a kubeconfig nor a flag names a server.
var errNoKubeconfig = errors.New("there is no kubeconfig: set KUBECONFIG, or give --kubeconfig")

// Config returns the client configuration for the workspace. Without a kubeconfig it returns an error, in place of the default server
// localhost:8080.
func (o *WorkspaceOptions) Config() (*rest.Config, error) {
	config, err := o.Cluster.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	merged, err := o.Cluster.ToRawKubeConfigLoader().RawConfig()
	if err == nil && len(merged.Clusters) == 0 && config.Host == defaultServer && *o.Cluster.APIServer == "" {
		return nil, errNoKubeconfig
	}
	if o.workspace == "" {
		return config, nil
	}
	return InWorkspace(config, o.workspace)
}

// defaultServer is the server of a client configuration without a kubeconfig.
const defaultServer = "http://localhost:8080"

// Client returns a client for the workspace. It sends no requests.
func (o *WorkspaceOptions) Client() (client.WithWatch, error) {
	config, err := o.Config()
	if err != nil {
		return nil, err
	}
	return ClientOf(config)
}

// Reader returns a reader of all kinds in the workspace. It sends no requests.
func (o *WorkspaceOptions) Reader() (*Reader, error) {
	config, err := o.Config()
	if err != nil {
		return nil, err
	}
	return NewReader(config)
}

// ReaderIn returns a reader of all kinds in another workspace of the same kcp.
func (o *WorkspaceOptions) ReaderIn(workspace string) (*Reader, error) {
	other := o.InWorkspace(workspace)
	return other.Reader()
}

// InventoryOptions are the flags of all commands that change SyncTargets.
type InventoryOptions struct {
	WorkspaceOptions
	Output *genericclioptions.PrintFlags
	DryRun string

	// Manifests prints whole objects. It is nil if the command only prints names.
	Manifests printers.ResourcePrinter
}

// NewInventoryOptions returns the options with their defaults.
func NewInventoryOptions(streams genericiooptions.IOStreams) *InventoryOptions {
	return &InventoryOptions{WorkspaceOptions: NewWorkspaceOptions(streams), Output: genericclioptions.NewPrintFlags("").WithTypeSetter(Scheme)}
}

// AddFlags adds the flags to a command, whose argument is the name of a SyncTarget.
func (o *InventoryOptions) AddFlags(command *cobra.Command) {
	o.WorkspaceOptions.AddFlags(command)
	o.AddWriteFlags(command)
	command.Args = OneSyncTarget
	command.ValidArgsFunction = o.CompleteName
}

// AddWriteFlags adds the flags of a command that writes, without the ones that select the workspace.
func (o *InventoryOptions) AddWriteFlags(command *cobra.Command) {
	o.Output.AddFlags(command)
	AddDryRun(command, &o.DryRun, "none, client or server: client sends no writes, server sends all writes and stores none")
	SetFormats(command, o.Output.AllowedFormats())
}

// OneSyncTarget refuses all arguments but one name.
func OneSyncTarget(command *cobra.Command, args []string) error {
	if len(args) == 1 && args[0] != "" {
		return nil
	}
	return WithAdvice(command, errors.New("give the name of one SyncTarget"))
}

// CompleteName completes the names of SyncTargets.
func (o *WorkspaceOptions) CompleteName(command *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return Complete(o.Client, &edgev2alpha1.SyncTargetList{}, client.Object.GetName)(command, args, prefix)
}

// CompletePlacement completes the names of EdgePlacements.
func (o *WorkspaceOptions) CompletePlacement(command *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return Complete(o.Client, &edgev2alpha1.EdgePlacementList{}, client.Object.GetName)(command, args, prefix)
}

// Complete completes the first argument with a value of each object of a list. The user waits for it, so on any problem it
// offers nothing.
func Complete(open func() (client.WithWatch, error), list client.ObjectList, value func(client.Object) string) cobra.CompletionFunc {
	return func(command *cobra.Command, args []string, prefix string) (found []cobra.Completion, _ cobra.ShellCompDirective) {
		workspace, err := open()
		if err != nil || len(args) > 0 || workspace.List(command.Context(), list) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			if text := value(item.(client.Object)); text != "" && strings.HasPrefix(text, prefix) {
				found = append(found, text)
			}
			return nil
		})
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// Complete validates the flags. Callers must call it before any other method.
func (o *InventoryOptions) Complete() error {
	if err := CheckDryRun(o.DryRun); err != nil {
		return err
	}
	printer, err := o.Output.ToPrinter()
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	if format := *o.Output.OutputFormat; format != "" && format != "name" {
		o.Manifests = printer
	}
	return nil
}

// ClientOf returns a client for a configuration. It sends no requests.
func ClientOf(config *rest.Config) (client.WithWatch, error) {
	return client.NewWithWatch(config, client.Options{Scheme: Scheme})
}

// Inventory returns a client for the inventory workspace, which writes nothing in a dry run.
func (o *InventoryOptions) Inventory() (*registration.Inventory, error) {
	workspace, err := o.Client()
	if err != nil {
		return nil, err
	}
	namespace, _, err := o.Cluster.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	return &registration.Inventory{Client: o.WithDryRun(workspace), DryRun: o.DryRun != DryRunNone, Namespace: namespace, Report: o.Report}, nil
}

// WithDryRun returns a client that writes nothing in a dry run.
func (o *InventoryOptions) WithDryRun(writes client.Client) client.Client {
	if o.DryRun == DryRunNone {
		return writes
	}
	return client.NewDryRunClient(writes)
}

// Report prints the change of an object.
func (o *InventoryOptions) Report(change registration.Change) {
	if err := o.Print(change.Object, string(change.Result)); err != nil {
		fmt.Fprintln(o.ErrOut, "error:", SanitizeLines(err.Error()))
	}
}

// Print prints an object, or its name and what was done with it. A client-side dry run prints the manifest of the object.
func (o *InventoryOptions) Print(object client.Object, done string) error {
	printer := o.Manifests
	switch {
	case printer == nil:
		if o.DryRun != DryRunNone {
			done += " (" + o.DryRun + " dry run)"
		}
		o.Output.NamePrintFlags.Operation = done
		var err error
		if printer, err = o.Output.ToPrinter(); err != nil {
			return err
		}
	case o.DryRun == DryRunClient:
		manifest, err := Manifest(object)
		if err != nil {
			return err
		}
		object = manifest
	}
	return PrintSafely(printer, object, o.Out)
}

// Note prints a message that is not a result, to standard error.
func (o *InventoryOptions) Note(text string) { fmt.Fprintln(o.ErrOut, SanitizeLines(text)) }

// ConfirmFunc returns a function that asks the operator to confirm. With confirmed, or in a dry run, the
// function only prints the question. Without a terminal it returns an error.
func (o *InventoryOptions) ConfirmFunc(confirmed bool) func(context.Context, string) error {
	return func(ctx context.Context, question string) error {
		o.Note(question)
		switch {
		case confirmed || o.DryRun != DryRunNone:
			return nil
		case !printers.IsTerminal(o.In):
			return errors.New("nothing was changed: give --yes to confirm")
		}
		fmt.Fprint(o.ErrOut, "Continue? [y/N] ")
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

// Progress prints one line of progress to standard error, for people and for logs.
func (o *InventoryOptions) Progress(format string, values ...any) {
	fmt.Fprintln(o.ErrOut, SanitizeLine(fmt.Sprintf(format, values...)))
}

// GetSyncTarget completes the options, and returns the inventory of the current workspace with one of its SyncTargets. It returns the first of
// the given errors of other options, if there is one.
func (o *InventoryOptions) GetSyncTarget(ctx context.Context, name string, errs ...error) (*registration.Inventory, *edgev2alpha1.SyncTarget, error) {
	if err := cmp.Or(o.Complete(), cmp.Or(errs...)); err != nil {
		return nil, nil, err
	}
	inventory, err := o.Inventory()
	if err != nil {
		return nil, nil, err
	}
	syncTarget, err := inventory.SyncTarget(ctx, name)
	if err == nil && syncTarget == nil {
		err = inventory.NotFound(ctx, name)
	}
	return inventory, syncTarget, err
}

// Change changes an object of the workspace and prints its new state, done. It writes nothing if the object is in that state.
func (o *InventoryOptions) Change(ctx context.Context, workspace client.Client, object client.Object, done string, change func()) error {
	before := object.DeepCopyObject().(client.Object)
	change()
	if apiequality.Semantic.DeepEqual(before, object) {
		return o.Print(object, "already "+done)
	}
	if err := o.Patch(ctx, workspace, object, before); err != nil {
		return err
	}
	return o.Print(object, done)
}

// Patch writes what changed in an object since before, except in a client-side dry run.
func (o *InventoryOptions) Patch(ctx context.Context, workspace client.Client, object, before client.Object) error {
	if o.DryRun == DryRunClient {
		return nil
	}
	if err := o.WithDryRun(workspace).Patch(ctx, object, client.MergeFrom(before)); err != nil {
		kind, _ := apiutil.GVKForObject(object, Scheme)
		return fmt.Errorf("cannot change the %s %s: %w", kind.Kind, object.GetName(), err)
	}
	return nil
}

// Manifest returns an object without its status and the metadata that servers set.
func Manifest(object client.Object) (client.Object, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object.DeepCopyObject())
	if err != nil {
		return nil, err
	}
	kind, err := apiutil.GVKForObject(object, Scheme)
	if err != nil {
		return nil, err
	}
	delete(content, "status")
	for _, field := range []string{"creationTimestamp", "finalizers", "generation", "managedFields", "resourceVersion", "uid"} {
		unstructured.RemoveNestedField(content, "metadata", field)
	}
	for _, field := range []string{"labels", "annotations"} {
		values, _, _ := unstructured.NestedStringMap(content, "metadata", field)
		maps.DeleteFunc(values, func(name, _ string) bool {
			return name == corev1.LastAppliedConfigAnnotation || strings.Contains(name, "kcp.io/")
		})
		unstructured.RemoveNestedField(content, "metadata", field)
		if len(values) > 0 {
			_ = unstructured.SetNestedStringMap(content, values, "metadata", field)
		}
	}
	manifest := &unstructured.Unstructured{Object: content}
	manifest.SetGroupVersionKind(kind)
	return manifest, nil
}
