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
	"strings"

	"github.com/kcp-dev/logicalcluster/v3"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
)

const locationLong = `Show which objects of workload workspaces would come to clusters, and which would go, if the Locations of the current inventory workspace
were as in the files. Nothing is written.

The command reads the workspaces that spec.availableTo of a Location names, before or after the change. It names those that you may
not read.

Output, access to clusters and exit status are as with kubectl synchub diff.`

const locationExample = `  kubectl synchub diff location -f location.yaml`

func newLocationCommand(streams genericiooptions.IOStreams) *cobra.Command {
	command, options := newCommand(streams, &cobra.Command{
		Use: "location -f FILE", Aliases: []string{"loc"},
		Short: "Show what a change of Locations would do to each cluster", Long: locationLong, Example: locationExample,
	}, "Locations", diffLocations)
	options.addFieldManager(command)
	return command
}

// diffLocations finds the items of other Locations: the objects of all workspaces that may use them, before or after the change, and that
// come to a cluster, or go.
func diffLocations(ctx context.Context, o *options, here *cli.Reader, objects []*unstructured.Unstructured) (*scope, error) {
	if !here.Serves("locations") {
		return nil, errors.New("the current workspace is no inventory workspace")
	}
	for _, object := range objects {
		if object.GroupVersionKind() != edgev2alpha1.SchemeGroupVersion.WithKind("Location") {
			return nil, fmt.Errorf("%s %s is no Location", object.GetKind(), object.GetName())
		}
	}
	found, err := o.changesIn(ctx, here, objects)
	if err != nil {
		return nil, err
	}
	var next []edgev2alpha1.Location
	var paths []string
	all := &scope{problems: found.problems}
	for _, one := range found.changes {
		for _, object := range []*unstructured.Unstructured{one.before, one.after} {
			if object == nil {
				continue
			}
			var location edgev2alpha1.Location
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &location); err != nil {
				return nil, fmt.Errorf("the Location %s: %w", one.key.Name, err)
			}
			if object == one.after {
				next = append(next, location)
			}
			paths = append(paths, location.Spec.AvailableTo.Workspaces...)
		}
	}
	if len(next) == 0 {
		return all, nil
	}
	self := logicalcluster.From(&next[0])
	if here.Serves("edgeplacements") {
		paths = append(paths, self.String())
	}
	paths, unread := o.expand(ctx, paths)
	all.problems = append(all.problems, unread...)
	known := syncTargetNames{}
	known.addInventory(self)
	for _, path := range paths {
		if err := o.addWorkspace(ctx, all, known, path, self, next); err != nil {
			all.problems = append(all.problems, Remark{Message: fmt.Sprintf("the workspace %s cannot be asked: %v", path, err)})
		}
	}
	return all, o.checkSyncTargets(ctx, all, known)
}

// expand returns paths of workspaces, each once, with the children that paths with a star name.
func (o *options) expand(ctx context.Context, paths []string) (all []string, unread []Remark) {
	for _, path := range paths {
		parent, isPattern := strings.CutSuffix(path, cli.ChildrenSuffix)
		if !isPattern {
			all = append(all, path)
			continue
		}
		children, more, err := o.Children(ctx, parent)
		if err != nil {
			unread = append(unread, Remark{Message: fmt.Sprintf("the children of the workspace %s cannot be listed: %v", parent, err)})
		}
		if more > 0 {
			unread = append(unread, Remark{Message: fmt.Sprintf("the workspace %s has %d more children, which were not asked about", parent, more)})
		}
		all = append(all, children...)
	}
	slices.Sort(all)
	return slices.Compact(all), unread
}

// addWorkspace adds the items and the destinations of one workload workspace, if Locations of an inventory workspace are other ones. A
// workspace that does not bind compute has none.
func (o *options) addWorkspace(ctx context.Context, to *scope, known syncTargetNames, path string, inventory logicalcluster.Name, next []edgev2alpha1.Location) error {
	reader, err := o.ReaderIn(path)
	if err != nil {
		return err
	}
	if _, err := reader.APIs.ServerGroups(); err != nil {
		return err
	}
	if !reader.Serves("edgeplacements") {
		return nil
	}
	w, err := newWorkload(ctx, o, reader)
	if err != nil {
		return err
	}
	w.inventories.overrides = map[logicalcluster.Name][]edgev2alpha1.Location{inventory: next}
	var after []*selecting
	for _, one := range w.placements {
		resolved := &selecting{Placement: one.Placement}
		var unread []Remark
		resolved.destinations, unread = w.resolve(ctx, one.Placement, one.destinations, inventory)
		after, to.problems = append(after, resolved), append(to.problems, unread...)
	}
	known.addWorkspace(w, after)
	changes, err := w.movesBetween(ctx, w.placements, after)
	if err != nil {
		return err
	}
	return w.addItems(ctx, to, changes, nil)
}
