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
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	cliflag "k8s.io/component-base/cli/flag"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/synchub-dev/synchub/apis/config/v1alpha1"
	"github.com/synchub-dev/synchub/provider/bootstrap"
	"github.com/synchub-dev/synchub/provider/kcp"
)

// initLimits suffice for the dozen requests of init.
var initLimits = kcp.Limits{QPS: 50, Burst: 100}

func newInitCommand() *cobra.Command {
	var kubeconfig, output string
	var options bootstrap.Options
	command := &cobra.Command{
		Use:   "init",
		Short: "Prepare the provider workspace",
		Long: "Create or update, in the provider workspace, the exports for inventory\n" +
			"workspaces, mailboxes and workload workspaces with their schemas, the workspace\n" +
			"type of mailboxes, and the rights of the hub's kcp user. Safe to repeat; nothing\n" +
			"is taken away.",
		Example: "  synchub init --kcp-kubeconfig admin.kubeconfig --hub-user synchub-hub\n\n" +
			"  # Operators may register clusters, and developers may place workloads\n" +
			"  synchub init --kcp-kubeconfig admin.kubeconfig --hub-user synchub-hub \\\n" +
			"    --inventory-group operators --workload-group developers\n\n" +
			"  # See what it would create\n" +
			"  synchub init --kcp-kubeconfig admin.kubeconfig --hub-user synchub-hub \\\n" +
			"    --dry-run --output yaml",
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			switch {
			case kubeconfig == "":
				return errors.New("set --kcp-kubeconfig to the kubeconfig of an administrator of the provider workspace")
			case options.Workspace == "":
				return errors.New("set --provider-workspace to the path of the provider workspace")
			case options.HubUser == "":
				return errors.New("set --hub-user to the name of the hub's kcp user, so that it gets its rights")
			case output != "" && output != "yaml":
				return fmt.Errorf("set --output to yaml, or leave it out: %q is not supported", output)
			}
			ctrl.SetLogger(newLogger(v1alpha1.LogConfiguration{Level: "error", Format: "console"}, os.Stderr))
			access, err := kcp.Load(kubeconfig, initLimits)
			if err != nil {
				return err
			}
			options.Config = func(workspace string) *rest.Config { return access.WorkspaceConfig(workspace) }
			reports := command.OutOrStdout()
			if output != "" {
				reports = command.ErrOrStderr()
				options.Manifest = func(object client.Object) { printManifest(command.OutOrStdout(), object) }
			}
			suffix := ""
			if options.DryRun {
				suffix = " (dry run)"
			}
			options.Report = func(object, result string) {
				_, _ = fmt.Fprintf(reports, "%-10s %s%s\n", result, object, suffix)
			}
			return bootstrap.Run(command.Context(), options)
		},
	}
	groups := &cliflag.NamedFlagSets{}
	flags := groups.FlagSet("general")
	flags.StringVar(&kubeconfig, "kcp-kubeconfig", "", "kubeconfig of an administrator of the provider workspace (required)")
	flags.StringVar(&options.Workspace, "provider-workspace", "root:synchub", "path of the provider workspace; it is created if its parent allows")
	flags = groups.FlagSet("rights")
	flags.StringVar(&options.HubUser, "hub-user", "", "name of the hub's kcp user, which gets its rights (required)")
	flags.StringSliceVar(&options.InventoryGroups, "inventory-group", nil, "groups that may bind the inventory export")
	flags.StringSliceVar(&options.WorkloadGroups, "workload-group", nil, "groups that may bind the workload export")
	flags = groups.FlagSet("output")
	flags.BoolVar(&options.DryRun, "dry-run", false, "change nothing: kcp checks each write, and stores none")
	flags.StringVarP(&output, "output", "o", "", "yaml prints the resulting objects, without the data of Secrets, and the progress goes to standard error")
	addFlagGroups(command, groups)
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"yaml"}, cobra.ShellCompDirectiveNoFileComp))
	return command
}

// printManifest prints an object without the fields that users do not write.
func printManifest(out io.Writer, object client.Object) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err == nil {
		delete(content, "status")
		for _, field := range []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"} {
			unstructured.RemoveNestedField(content, "metadata", field)
		}
		var manifest []byte
		if manifest, err = yaml.Marshal(content); err == nil {
			_, err = fmt.Fprintf(out, "---\n%s", manifest)
		}
	}
	if err != nil {
		_, _ = fmt.Fprintf(out, "# %s %s cannot be printed: %v\n", object.GetObjectKind().GroupVersionKind().Kind, object.GetName(), err)
	}
}
