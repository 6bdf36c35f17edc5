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

package initcommand

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/synchub-dev/synchub/provider/bootstrap"
)

// Texts of the help.
const (
	Short = "Prepare the provider workspace"
	Long  = "Create or update, in the provider workspace, the exports for inventory\n" +
		"workspaces, mailboxes and workload workspaces with their schemas, the workspace\n" +
		"type of mailboxes, and the rights of the hub's kcp user. Safe to repeat; nothing\n" +
		"is taken away."
)

// DefaultWorkspace is the provider workspace unless a flag names another one.
const DefaultWorkspace = "root:synchub"

// Options are the flags that both commands have.
type Options struct {
	bootstrap.Options
	// Output is yaml to print the objects, or empty.
	Output string
}

// AddWorkspace adds the flag for the provider workspace.
func (o *Options) AddWorkspace(flags *pflag.FlagSet) {
	flags.StringVar(&o.Workspace, "provider-workspace", DefaultWorkspace, "path of the provider workspace; it is created if its parent allows")
}

// AddRights adds the flags for the rights of users.
func (o *Options) AddRights(flags *pflag.FlagSet) {
	flags.StringVar(&o.HubUser, "hub-user", "", "name of the hub's kcp user, which gets its rights (required)")
	flags.StringSliceVar(&o.InventoryGroups, "inventory-group", nil, "groups that may bind the inventory export")
	flags.StringSliceVar(&o.WorkloadGroups, "workload-group", nil, "groups that may bind the workload export")
}

// AddOutput adds the flag for the format.
func (o *Options) AddOutput(flags *pflag.FlagSet) {
	flags.StringVarP(&o.Output, "output", "o", "", "yaml prints the resulting objects, without the data of Secrets, and the progress goes to standard error")
}

// CompleteOutput completes the format.
func CompleteOutput(command *cobra.Command) {
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"yaml"}, cobra.ShellCompDirectiveNoFileComp))
}

// Check validates the flags.
func (o *Options) Check() error {
	switch {
	case o.Workspace == "":
		return errors.New("set --provider-workspace to the path of the provider workspace")
	case o.HubUser == "":
		return errors.New("set --hub-user to the name of the hub's kcp user, so that it gets its rights")
	case o.Output != "" && o.Output != "yaml":
		return fmt.Errorf("set --output to yaml, or leave it out: %q is not supported", o.Output)
	}
	return nil
}

// Run prepares the provider workspace, and reports each object.
func (o *Options) Run(ctx context.Context, out, errOut io.Writer) error {
	reports := out
	if o.Output != "" {
		reports = errOut
		o.Manifest = func(object client.Object) { printManifest(out, object) }
	}
	suffix := ""
	if o.DryRun {
		suffix = " (dry run)"
	}
	o.Report = func(object, result string) {
		_, _ = fmt.Fprintf(reports, "%-10s %s%s\n", result, object, suffix)
	}
	return bootstrap.Run(ctx, o.Options)
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
