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

The command names the facts that it cannot read, and explains all other ones. It reads the cluster with the hub's kubeconfig if
you may read that Secret, or else with --target-kubeconfig. It reads the rules from the SyncRules that the hub keeps in the
workspace, unless you name the hosting cluster by --hosting-kubeconfig, or give the PublishedResources as files. It changes
nothing.`

const explainExample = `  kubectl synchub explain florin deployments shop/web

  # With the PublishedResources themselves, whose conditions name the reason if one is not ready
  kubectl synchub explain florin deploy shop/web --hosting-kubeconfig hosting.kubeconfig

  # A cluster-scoped object, for a program
  kubectl synchub explain florin clusterroles viewer -o json`

// explainOptions are the flags of explain.
type explainOptions struct {
	cli.ReadOptions
	output  cli.StructuredOutput
	files   []string
	target  cli.TargetFlags
	hosting cli.HostingFlags
	// workloadRules are the rules that the hub shows in the workload workspace, if the current workspace is one.
	workloadRules    *edgev2alpha1.SyncRulesStatus
	workloadRulesErr error
}

// NewCommand returns the command explain.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	options := &explainOptions{ReadOptions: cli.NewReadOptions(streams), workloadRulesErr: errors.New("they are in the hosting cluster, which was not named")}
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
	flags.Lookup("target-kubeconfig").Usage = "kubeconfig to read the cluster with; the default is the hub's"
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
	here, err := o.Reader()
	if err != nil {
		return err
	}
	inWorkload, err := o.placementFacts(ctx, here, target, resource, key)
	if err != nil {
		return err
	}
	if inWorkload != nil {
		explanation, err := o.explainFromWorkload(ctx, inWorkload, resource)
		if err != nil {
			return err
		}
		return o.print(explanation)
	}
	list, err := o.List(ctx, here.Client, []string{target})
	if err != nil {
		return err
	}
	facts, err := o.facts(ctx, here.Client, &list.Items[0], resource, key)
	if err != nil {
		return err
	}
	return o.print(Explain(facts))
}

func (o *explainOptions) print(explanation Explanation) error {
	if done, err := o.output.Print(o.Out, explanation); done || err != nil {
		return err
	}
	return explanation.Print(o.Out)
}

// Print prints the steps as a table, and then the result.
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
	if err := columns.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\n%s.\n", cli.SanitizeLine(e.Result.Text))
	return err
}
