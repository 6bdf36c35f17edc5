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
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// completePlacements completes a property of the EdgePlacements that bind compute made.
func (o *workloadOptions) completePlacements(property func(client.Object) string) cobra.CompletionFunc {
	return cli.Complete(o.Client, &edgev2alpha1.EdgePlacementList{}, func(placement client.Object) string {
		if bindcompute.InventoryOf(placement) == "" {
			return ""
		}
		return property(placement)
	})
}
