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

package bind

import (
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/bindcompute"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
)

// workloadOptions are the flags of commands that change a workload workspace.
type workloadOptions struct {
	bindingOptions
	// name of the EdgePlacement.
	name string
}

func newWorkloadOptions(streams genericiooptions.IOStreams) workloadOptions {
	return workloadOptions{bindingOptions: newBindingOptions(streams)}
}

// open returns the workload workspace. It sends no requests.
func (o *workloadOptions) open() (*bindcompute.Workspace, error) {
	binder, err := o.binder()
	if err != nil {
		return nil, err
	}
	return bindcompute.NewWorkspace(*binder), nil
}

// madePlacements returns the EdgePlacements that bind compute made, for completion. On any problem it returns nothing.
func (o *workloadOptions) madePlacements(command *cobra.Command) (made []edgev2alpha1.EdgePlacement) {
	config, err := o.workspaceConfig()
	if err != nil {
		return nil
	}
	workspace, err := cli.ClientOf(config)
	if err != nil {
		return nil
	}
	var list edgev2alpha1.EdgePlacementList
	if err := workspace.List(command.Context(), &list); err != nil {
		return nil
	}
	for _, placement := range list.Items {
		if placement.Annotations[edgev2alpha1.AnnotationBindCompute] != "" {
			made = append(made, placement)
		}
	}
	return made
}

// completePlacements returns a completion function for a property of the EdgePlacements that bind compute made.
func (o *workloadOptions) completePlacements(property func(edgev2alpha1.EdgePlacement) string) cobra.CompletionFunc {
	return func(command *cobra.Command, args []string, prefix string) (found []cobra.Completion, _ cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		for _, placement := range o.madePlacements(command) {
			if value := property(placement); strings.HasPrefix(value, prefix) {
				found = append(found, value)
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}
