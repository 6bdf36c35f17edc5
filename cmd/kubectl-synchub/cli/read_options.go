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
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/registration"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/suggest"
)

// ReadOptions are the flags of all commands that only read SyncTargets.
type ReadOptions struct {
	WorkspaceOptions
	selector string
}

// NewReadOptions returns the options with their defaults.
func NewReadOptions(streams genericiooptions.IOStreams) ReadOptions {
	return ReadOptions{WorkspaceOptions: NewWorkspaceOptions(streams)}
}

// AddFlags adds the flags to a command, and completes the names of SyncTargets.
func (o *ReadOptions) AddFlags(command *cobra.Command) {
	o.WorkspaceOptions.AddFlags(command)
	command.ValidArgsFunction = o.CompleteName
}

// AddSelector adds the flag that selects SyncTargets by labels.
func (o *ReadOptions) AddSelector(command *cobra.Command) {
	command.Flags().StringVarP(&o.selector, "selector", "l", "", "only SyncTargets with these labels, as in kubectl get")
}

// RejectSelector returns an error if the flag that selects SyncTargets is given, in a workspace that has none.
func (o *ReadOptions) RejectSelector() error {
	if o.selector == "" {
		return nil
	}
	return errors.New("--selector is for inventory workspaces, and the workspace is none")
}

// ListOptions returns the list options for the requested SyncTargets.
func (o *ReadOptions) ListOptions() (*client.ListOptions, error) {
	selector, err := labels.Parse(o.selector)
	if err != nil {
		return nil, fmt.Errorf("--selector: %w", err)
	}
	return &client.ListOptions{LabelSelector: selector}, nil
}

// List returns the SyncTargets of the given names, or all SyncTargets. It returns an error if a name does not exist.
func (o *ReadOptions) List(ctx context.Context, from client.Client, names []string) (*edgev2alpha1.SyncTargetList, error) {
	options, err := o.ListOptions()
	if err != nil {
		return nil, err
	}
	list := &edgev2alpha1.SyncTargetList{}
	if err := from.List(ctx, list, options); err != nil {
		return nil, registration.DescribeInventoryError(err)
	}
	if len(names) == 0 {
		return list, nil
	}
	all := make([]string, 0, len(list.Items))
	for i := range list.Items {
		all = append(all, list.Items[i].Name)
	}
	list.Items = slices.DeleteFunc(list.Items, func(one edgev2alpha1.SyncTarget) bool { return !slices.Contains(names, one.Name) })
	for _, name := range names {
		if !slices.ContainsFunc(list.Items, func(one edgev2alpha1.SyncTarget) bool { return one.Name == name }) {
			return nil, fmt.Errorf("%w%s", apierrors.NewNotFound(edgev2alpha1.SchemeGroupVersion.WithResource("synctargets").GroupResource(), name), suggest.Names(name, all))
		}
	}
	return list, nil
}
