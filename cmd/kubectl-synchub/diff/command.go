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

package diff

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/manifests"
)

const diffLong = `Show what each cluster would hold if the manifests were applied, with defaults and admission of the cluster. Nothing is written.

In a workload workspace the EdgePlacements decide which clusters get the objects. In an inventory workspace the manifests count as
applied to the mailbox of each SyncTarget, and in a mailbox to that mailbox. The manifests are applied as by
kubectl apply --server-side --force-conflicts, in a dry run.

The output looks like the output of kubectl diff, once for SyncTargets with equal changes; KUBECTL_EXTERNAL_DIFF names another program than diff.
The hub's marks are left out, and values of Secrets are masked. Objects that leave a cluster are shown as deleted. A rollout brings the
changes step by step; the command shows its end.

The command reads each cluster with the hub's kubeconfig if you may read that Secret, or else with --target-kubeconfig. A cluster
that opens a tunnel to the hub needs --target-kubeconfig. Standard error names all that could not be asked.

Exit status: 0 if nothing would change, 1 if something would, 2 or more if an object would be refused or something could not be asked.`

const diffExample = `  # What would change on the clusters of this workspace
  kubectl synchub diff -f web.yaml

  # On two of them, for a program
  kubectl synchub diff -f web.yaml --sync-targets florin,guilder -o json

  # With a kubeconfig that has a context for each cluster
  kubectl synchub diff -f web.yaml --target-kubeconfig clusters.kubeconfig`

// options are the flags of the commands.
type options struct {
	cli.ReadOptions
	output       cli.StructuredOutput
	target       targetAccess
	files        []string
	syncTargets  []string
	placement    string
	fieldManager string
	concurrency  int

	namespace        string
	enforceNamespace bool
}

// NewCommand returns the command diff.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	options := &options{ReadOptions: cli.NewReadOptions(streams)}
	options.WithNamespace()
	command := options.newCommand(&cobra.Command{Use: "diff -f FILE", Short: "Show what a change would do to each cluster", Long: diffLong, Example: diffExample}, "manifests", diffManifests)
	options.addFieldManager(command)
	flags := command.Flags()
	flags.StringVar(&options.placement, "placement", "", "only clusters of this EdgePlacement")
	_ = command.RegisterFlagCompletionFunc("placement", options.CompletePlacement)
	command.MarkFlagsMutuallyExclusive("placement", "sync-targets")
	command.AddCommand(newPlacementCommand(streams), newLocationCommand(streams), newPublishedResourceCommand(streams))
	return command
}

// question finds the items of a change.
type question func(ctx context.Context, o *options, here *cli.Reader, objects []*unstructured.Unstructured) (*scope, error)

// scope is everything to ask about.
type scope struct {
	clusters []*cluster
	items    []*item
	// notes and problems were found before any cluster is asked.
	notes, problems []Remark
}

// newCommand completes a command that asks a question about files with a content, and returns its options.
func newCommand(streams genericiooptions.IOStreams, command *cobra.Command, content string, ask question) (*cobra.Command, *options) {
	options := &options{ReadOptions: cli.NewReadOptions(streams)}
	return options.newCommand(command, content, ask), options
}

// newCommand completes a command with these options.
func (o *options) newCommand(command *cobra.Command, content string, ask question) *cobra.Command {
	o.AddFlags(command)
	command.ValidArgsFunction = cobra.NoFileCompletions
	command.Args = func(command *cobra.Command, args []string) error { return failed(cli.NoArguments(command, args)) }
	command.RunE = func(command *cobra.Command, _ []string) error {
		if len(o.files) == 0 {
			return failed(cli.WithAdvice(command, errors.New("give the files with -f")))
		}
		return o.run(command.Context(), ask)
	}
	// 1 means that something would change.
	command.SetFlagErrorFunc(func(command *cobra.Command, err error) error { return failed(cli.WithAdvice(command, err)) })
	o.output.AddFlag(command)
	o.target.AddFlags(command)
	flags := command.Flags()
	flags.Lookup("target-kubeconfig").Usage = "kubeconfig to ask the clusters with, by contexts of the SyncTargets' names; the default is the hub's"
	flags.Lookup("target-context").Usage = "context of a single cluster in --target-kubeconfig"
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "files with the "+content+"; - is standard input (repeatable)")
	flags.StringSliceVar(&o.syncTargets, "sync-targets", nil, "only the clusters of these SyncTargets")
	flags.IntVar(&o.concurrency, "concurrency", 32, "the number of requests in flight")
	return command
}

// addFieldManager adds the flag of the commands that ask the workspace for a dry run.
func (o *options) addFieldManager(command *cobra.Command) {
	command.Flags().StringVar(&o.fieldManager, "field-manager", "kubectl", "the field manager that applies the files to the workspace")
}

// failed returns an error with the exit status for errors.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return &cli.ExitError{Status: 2, Err: err}
}

// run asks a question, and prints the answer.
func (o *options) run(ctx context.Context, ask question) error {
	report, err := o.report(ctx, ask)
	if err != nil {
		return failed(err)
	}
	done, err := o.output.Print(o.Out, report)
	if err == nil && !done {
		err = report.print(o.IOStreams)
	}
	switch {
	case err != nil:
		return failed(err)
	case len(report.Problems) > 0:
		return failed(errors.New("not everything would be as desired, or could be asked: see the problems"))
	case len(report.Changes) > 0:
		return &cli.ExitError{Status: 1}
	default:
		return nil
	}
}

func (o *options) report(ctx context.Context, ask question) (*Report, error) {
	if o.concurrency < 1 {
		return nil, errors.New("--concurrency must be at least 1")
	}
	var err error
	if o.namespace, o.enforceNamespace, err = o.Cluster.ToRawKubeConfigLoader().Namespace(); err != nil {
		return nil, err
	}
	here, err := o.Reader()
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	err = manifests.Each(o.In, o.files, func(object *unstructured.Unstructured) error {
		objects = append(objects, object)
		return nil
	})
	if err != nil {
		return nil, err
	}
	found, err := ask(ctx, o, here, objects)
	if err != nil {
		return nil, err
	}
	return o.answer(ctx, found)
}

// answer asks the clusters, and returns what they answer.
func (o *options) answer(ctx context.Context, found *scope) (*Report, error) {
	outcomes, err := askAll(ctx, found.items, o.concurrency)
	if err != nil {
		return nil, err
	}
	return newReport(found, outcomes)
}

// isAsked reports whether the user asks about a SyncTarget.
func (o *options) isAsked(syncTarget string) bool {
	return len(o.syncTargets) == 0 || slices.Contains(o.syncTargets, syncTarget)
}

// diffManifests finds the items of manifests that are applied to the current workspace.
func diffManifests(ctx context.Context, o *options, here *cli.Reader, objects []*unstructured.Unstructured) (*scope, error) {
	for _, object := range objects {
		if err := checkKind(object); err != nil {
			return nil, err
		}
	}
	if _, err := here.APIs.ServerGroups(); err != nil {
		return nil, fmt.Errorf("cannot read the APIs of the current workspace: %w", err)
	}
	if here.Serves("edgeplacements") {
		w, err := newWorkload(ctx, o, here)
		if err != nil {
			return nil, err
		}
		return w.ofManifests(ctx, objects)
	}
	if o.placement != "" {
		return nil, errors.New("--placement is for workload workspaces, and the current workspace is none")
	}
	boxes, err := o.mailboxes(ctx, here)
	if err != nil {
		return nil, err
	}
	return boxes.ofManifests(ctx, objects)
}

// checkKind refuses objects that have a command of their own, or that change rules for many objects.
func checkKind(object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	var advice string
	switch {
	case kind.Group == edgev2alpha1.SchemeGroupVersion.Group && kind.Kind == "EdgePlacement":
		advice = "`kubectl synchub diff placement -f FILE`"
	case kind.Group == edgev2alpha1.SchemeGroupVersion.Group && kind.Kind == "Location":
		advice = "`kubectl synchub diff location -f FILE`"
	case kind.Group == synchubv1alpha1.GroupVersion.Group && kind.Kind == "PublishedResource":
		advice = "`kubectl synchub diff published-resource -f FILE`"
	case kind.Group == edgev2alpha1.SchemeGroupVersion.Group && kind.Kind != "Customizer":
		return fmt.Errorf("%s %s: the objects that a change of this kind concerns are not among the files, so it cannot be asked about", kind.Kind, object.GetName())
	default:
		return nil
	}
	return fmt.Errorf("%s %s: give such a file to %s", kind.Kind, object.GetName(), advice)
}
