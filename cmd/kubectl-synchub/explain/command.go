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

package explain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
)

const explainLong = `Explain why an object is on a cluster, or why it is not. The steps lead from the workspace of the object, over the configs that
select it, to the copy on the cluster. The first step that stops the object is the answer.

In a workload workspace, the object is in that workspace, and TARGET is the name of a SyncTarget that an EdgePlacement selects.
If you may read that SyncTarget, the steps in its mailbox follow. In an inventory workspace, the object is in a mailbox, and
TARGET is a SyncTarget of the workspace. RESOURCE is written as for kubectl get: deployments, deploy, deployments.apps. For a
cluster-scoped object give its NAME only.

Below the steps are the related objects, which the hub syncs together with the object. The command names the facts that it cannot
read, and explains all other ones. It reads the cluster with the hub's kubeconfig if
you may read that Secret, or else with --target-kubeconfig. It reads the rules from the SyncRules that the hub keeps in the
workspace, unless you name the hosting cluster by --hosting-kubeconfig, or give the PublishedResources as files. It changes
nothing.`

const explainExample = `  kubectl synchub explain florin deployments shop/web

  # With the PublishedResources themselves, whose conditions name the reason if one is not ready
  kubectl synchub explain florin deploy shop/web --hosting-kubeconfig hosting.kubeconfig

  # For a script: fail unless the object is in sync, as far as that can be seen
  kubectl synchub explain florin deploy shop/web --exit-code

  # A cluster-scoped object, for a program
  kubectl synchub explain florin clusterroles viewer -o json`

// explainOptions are the flags of explain.
type explainOptions struct {
	cli.ReadOptions
	output   cli.StructuredOutput
	exitCode bool
	files    []string
	target   cli.TargetFlags
	hosting  cli.HostingFlags
	// workloadRules are the rules that the hub shows in the workload workspace, if the current workspace is one.
	workloadRules    *edgev2alpha1.SyncRulesStatus
	workloadRulesErr error
}

func newOptions(read cli.ReadOptions) *explainOptions {
	return &explainOptions{ReadOptions: read, workloadRulesErr: errors.New("they are in the hosting cluster, which was not named")}
}

// NewCommand returns the command explain.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	options := newOptions(cli.NewReadOptions(streams))
	options.WithNamespace()
	command := &cobra.Command{
		Use:     "explain TARGET RESOURCE [NAMESPACE/]NAME",
		Short:   "Explain why an object is on a cluster or is not",
		Long:    explainLong,
		Example: explainExample,
		Args:    targetResourceAndName,
		RunE: func(command *cobra.Command, args []string) error {
			return options.run(command.Context(), args[0], args[1], args[2])
		},
	}
	options.AddFlags(command)
	command.ValidArgsFunction = options.completeArgument
	flags := command.Flags()
	options.output.AddFlag(command)
	flags.StringArrayVarP(&options.files, "filename", "f", nil, "files with the PublishedResources; - is standard input (repeatable)")
	options.hosting.AddFlags(command, "kubeconfig of the hub's hosting cluster, where the PublishedResources are")
	options.target.AddFlags(command)
	flags.Lookup("namespace").Usage = "namespace of the object, if NAME has none"
	flags.Lookup("target-kubeconfig").Usage = "kubeconfig to read the cluster with; the default is the hub's"
	flags.BoolVar(&options.exitCode, "exit-code", false, "fail if a step stops the object, or if it waits")
	command.MarkFlagsMutuallyExclusive("filename", "hosting-kubeconfig")
	command.MarkFlagsMutuallyExclusive("filename", "hosting-context")
	return command
}

func targetResourceAndName(command *cobra.Command, args []string) error {
	if len(args) == 3 && !slices.Contains(args, "") {
		return nil
	}
	return cli.WithAdvice(command, errors.New("give the name of a SyncTarget, a resource, and the name of an object"))
}

// completeArgument completes SyncTargets, then the resources that are synced with the chosen SyncTarget.
func (o *explainOptions) completeArgument(command *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return o.CompleteName(command, args, prefix)
	}
	workspace, err := o.Client()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list, err := o.List(command.Context(), workspace, args)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []cobra.Completion
	for _, resource := range list.Items[0].Status.SyncedResources {
		name := metav1.GroupResource{Group: resource.Group, Resource: resource.Resource}
		if strings.HasPrefix(name.String(), prefix) {
			names = append(names, name.String())
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// readKey parses [NAMESPACE/]NAME.
func readKey(name string) (types.NamespacedName, error) {
	namespace, short, hasNamespace := strings.Cut(name, "/")
	if !hasNamespace {
		return types.NamespacedName{Name: name}, nil
	}
	if namespace == "" || short == "" || strings.Contains(short, "/") {
		return types.NamespacedName{}, fmt.Errorf("%q is not of the form NAMESPACE/NAME", name)
	}
	return types.NamespacedName{Namespace: namespace, Name: short}, nil
}

func (o *explainOptions) run(ctx context.Context, target, resource, name string) error {
	key, err := readKey(name)
	if err != nil {
		return err
	}
	explanation, err := o.explain(ctx, target, resource, key)
	if err != nil {
		return err
	}
	return o.print(explanation)
}

// Object explains an object of a workspace, or of the mailbox of a SyncTarget in it, as the command explain does without flags.
func Object(ctx context.Context, workspace cli.WorkspaceOptions, target, resource string, key types.NamespacedName) (Explanation, error) {
	return newOptions(cli.ReadOptions{WorkspaceOptions: workspace}).explain(ctx, target, resource, key)
}

func (o *explainOptions) explain(ctx context.Context, target, resource string, key types.NamespacedName) (none Explanation, err error) {
	here, err := o.Reader()
	if err != nil {
		return none, err
	}
	inWorkload, err := o.placementFacts(ctx, here, target, resource, key)
	if err != nil {
		return none, err
	}
	if inWorkload != nil {
		return o.explainFromWorkload(ctx, inWorkload, resource)
	}
	list, err := o.List(ctx, here.Client, []string{target})
	if err != nil {
		return none, err
	}
	facts, err := o.facts(ctx, here.Client, &list.Items[0], resource, key)
	if err != nil {
		return none, err
	}
	return Explain(facts), nil
}

func (o *explainOptions) print(explanation Explanation) error {
	done, err := o.output.Print(o.Out, explanation)
	if !done && err == nil {
		err = explanation.Print(o.Out)
	}
	if err == nil && o.exitCode {
		err = explanation.Result.Err()
	}
	return err
}

// Err returns an error if a step stops the object, or if it waits.
func (r Result) Err() error {
	if r.State == Stopped || r.State == Waiting {
		return fmt.Errorf("the object is %s at the step %s", r.State, r.Step)
	}
	return nil
}

// Print prints the steps and the related objects as tables, and then the result.
func (e Explanation) Print(out io.Writer) error {
	columns := cli.NewColumns(out)
	columns.Line("STEP\tSTATE\tWHAT")
	for _, step := range e.Steps {
		what := step.What
		if step.Reason != "" {
			what = step.Reason + ": " + what
		}
		if step.Do != "" {
			what += "; " + step.Do
		}
		columns.Line("%s\t%s\t%s", step.Step, step.State, what)
	}
	e.printRelated(columns)
	if err := columns.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\n%s.\n", cli.SanitizeLine(e.Result.Text))
	return err
}
