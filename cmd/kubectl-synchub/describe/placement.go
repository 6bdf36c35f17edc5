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

package describe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/placed"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/rollout"
	"github.com/synchub-dev/synchub/controllers/plan/tenancy"
)

const (
	// defaultObjects is the number of objects that describe placement shows.
	defaultObjects = 100
	// maxColumns is the number of clusters up to which each of them has a column. Beyond it, objects have the number of clusters
	// by state.
	maxColumns = 8
)

const describePlacementLong = `Show the details of an EdgePlacement of the current workspace: its conditions, and how each object that it selects is on each
cluster. Objects that need attention come first.

The command reads only the workspace, so you need no rights for mailboxes or clusters. The hub lists the first ten pairs of an
object and a cluster that fail, and the first ten that are on their way. If there are more, the state of the other pairs is
Unknown.`

// describePlacementOptions are the flags of describe placement.
type describePlacementOptions struct {
	cli.WorkspaceOptions
	limit int
}

// NewPlacementCommand returns the command describe placement.
func NewPlacementCommand(streams genericiooptions.IOStreams) *cobra.Command {
	options := &describePlacementOptions{WorkspaceOptions: cli.NewWorkspaceOptions(streams)}
	command := &cobra.Command{
		Use:     "placement NAME",
		Aliases: []string{"edgeplacement", "epl"},
		Short:   "Show how the objects of an EdgePlacement are on its clusters",
		Long:    describePlacementLong,
		Example: "  kubectl synchub describe placement shop",
		Args:    rollout.OneEdgePlacement,
		RunE:    func(command *cobra.Command, args []string) error { return options.run(command.Context(), args[0]) },
	}
	options.Cluster.AddFlags(command.Flags())
	command.Flags().IntVar(&options.limit, "limit", defaultObjects, "maximum number of objects to show; 0 shows all")
	command.ValidArgsFunction = options.CompletePlacement
	return command
}

func (o *describePlacementOptions) run(ctx context.Context, name string) error {
	if o.limit < 0 {
		return errors.New("--limit: it must not be negative")
	}
	reader, err := o.Reader()
	if err != nil {
		return err
	}
	placement, slice, err := rollout.GetEdgePlacement(ctx, reader.Client, name)
	if err != nil {
		return err
	}
	description := &description{cli.NewColumns(o.Out), time.Now()}
	description.placement(placement)
	// The rest of the description does not depend on the objects, so the user gets it anyway.
	objects, fingerprint, listError := rollout.PlacedObjects(ctx, reader, placement)
	if listError == nil {
		if status := &placement.Status; int64(len(objects)) == status.Selected && status.ObservedObjects != "" && status.ObservedObjects != fingerprint.String() {
			description.Line("Objects have changed since the hub wrote this status.")
		}
		description.namespaces(placement, slice, objects)
		description.placedObjects(placement, placed.NewView(placement, slice), objects, o.limit)
	}
	description.placementPairs("Failures", placement.Status.Failures)
	description.placementPairs("On Their Way", placement.Status.Progressing)
	description.excludedObjects(&placement.Status)
	return errors.Join(listError, description.Flush())
}

func (d *description) placement(of *edgev2alpha1.EdgePlacement) {
	status := &of.Status
	d.field("Name", of.Name)
	d.field("Labels", formatLabels(of.Labels))
	d.field("Deletion Policy", string(of.Spec.DeletionPolicy))
	if int64(status.SpecGeneration) != of.Generation {
		d.Line("Status:\tof generation %d, while the EdgePlacement has generation %d: the hub is about to write it again", status.SpecGeneration, of.Generation)
	}
	d.field("Locations", fmt.Sprint(status.MatchingLocationCount))
	d.field("Destinations", fmt.Sprint(status.Destinations))
	d.field("Objects", fmt.Sprintf("%d selected, %d not placed", status.Selected, status.Excluded))
	d.field("Pairs", fmt.Sprintf("%d: %d placed, %d synced, %d healthy, %d failed",
		status.Selected*int64(status.Destinations), status.Placed, status.Synced, status.Healthy, status.Failed))
	if rollout := status.Rollout; rollout != nil {
		d.field("Rollout", fmt.Sprintf("%d destinations successful, %d progressing, %d failed, %d waiting", rollout.Succeeded, rollout.Progressing, rollout.Failed, rollout.Waiting))
	}
	d.conditions(status.Conditions)
}

// namespaces writes how the namespaces of the objects are called on clusters where each workspace has namespaces of its own.
func (d *description) namespaces(placement *edgev2alpha1.EdgePlacement, slice *edgev2alpha1.SinglePlacementSlice, objects []placed.Object) {
	if slice == nil {
		return
	}
	names := sets.New[string]()
	for _, object := range objects {
		names.Insert(object.Namespace)
	}
	names.Delete("")
	hasTitle := false
	for _, destination := range slice.Destinations {
		naming := tenancy.Naming(destination.NamespaceTemplate)
		if naming.IsShared() {
			continue
		}
		if !hasTitle {
			d.Line("Namespaces:")
			d.Line("  Namespace\tCluster\tName There")
			hasTitle = true
		}
		for _, name := range sets.List(names) {
			d.Line("  %s\t%s\t%s", name, destination.SyncTargetName, naming.Namespace(logicalcluster.From(placement), name))
		}
	}
}

// placedObjects writes how each object is on each cluster.
func (d *description) placedObjects(placement *edgev2alpha1.EdgePlacement, view *placed.View, objects []placed.Object, limit int) {
	if int64(len(objects)) != placement.Status.Selected {
		// Some of these are not counted yet, or not published.
		d.Line("The EdgePlacement selects %d objects, and the hub has counted %d.", len(objects), placement.Status.Selected)
		view.Complete = false
	}
	if len(objects) == 0 || len(view.SyncTargets) == 0 {
		return
	}
	slices.SortStableFunc(objects, func(a, b placed.Object) int { return cmp.Compare(rank(view, a), rank(view, b)) })
	shown := objects
	if limit > 0 {
		shown = objects[:min(limit, len(objects))]
	}
	if len(view.SyncTargets) <= maxColumns {
		d.objectsByCluster(view, shown)
	} else {
		d.objectsWithCounts(view, shown)
	}
	if more := len(objects) - len(shown); more > 0 {
		d.Line("  and %d more objects: show them with --limit", more)
	}
}

// rank is lower for objects that need attention, and for those on their way.
func rank(view *placed.View, object placed.Object) int {
	lowest := 3
	for _, syncTarget := range view.SyncTargets {
		lowest = min(lowest, rankOf(view.StateOf(object, syncTarget)))
	}
	return lowest
}

func rankOf(state placed.State) int {
	switch {
	case state.Failed:
		return 0
	case state.State == placed.Healthy:
		return 3
	case state.State == placed.Unknown:
		return 2
	default:
		return 1
	}
}

// objectsByCluster writes a table with a line for each object and a column for each cluster.
func (d *description) objectsByCluster(view *placed.View, objects []placed.Object) {
	d.Line("Objects:")
	d.Line("  Object\t%s", strings.Join(view.SyncTargets, "\t"))
	for _, object := range objects {
		var states []string
		for _, syncTarget := range view.SyncTargets {
			states = append(states, view.StateOf(object, syncTarget).State)
		}
		d.Line("  %s\t%s", object, strings.Join(states, "\t"))
	}
}

// objectsWithCounts writes a line for each object, with the number of clusters by state.
func (d *description) objectsWithCounts(view *placed.View, objects []placed.Object) {
	d.Line("Objects:")
	d.Line("  Object\tClusters")
	for _, object := range objects {
		counts := map[string]int{}
		var order []string
		for _, syncTarget := range view.SyncTargets {
			state := view.StateOf(object, syncTarget).State
			if counts[state]++; counts[state] == 1 {
				order = append(order, state)
			}
		}
		slices.Sort(order)
		var parts []string
		for _, state := range order {
			parts = append(parts, fmt.Sprintf("%d %s", counts[state], state))
		}
		d.Line("  %s\t%s", object, strings.Join(parts, ", "))
	}
}

// placementPairs writes a list of the status, with messages.
func (d *description) placementPairs(title string, pairs []edgev2alpha1.PlacementPair) {
	if len(pairs) == 0 {
		return
	}
	d.Line("%s:", title)
	d.Line("  Object\tCluster\tReason\tMessage")
	for _, pair := range pairs {
		cluster := pair.SyncTarget
		if pair.ClusterNamespace != "" {
			cluster += " (" + pair.ClusterNamespace + ")"
		}
		d.Line("  %s\t%s\t%s\t%s", placed.ObjectOf(pair), cluster, pair.Reason, pair.Message)
	}
}

// excludedObjects writes the first of the objects that no EdgePlacement places.
func (d *description) excludedObjects(status *edgev2alpha1.EdgePlacementStatus) {
	if len(status.ExcludedObjects) == 0 {
		return
	}
	d.Line("Not Placed:")
	d.Line("  Object\tReason\tMessage")
	for _, object := range status.ExcludedObjects {
		d.Line("  %s\t%s\t%s", placed.ObjectOf(edgev2alpha1.PlacementPair{ObjectFailure: object}), object.Reason, object.Message)
	}
	if more := status.Excluded - int64(len(status.ExcludedObjects)); more > 0 {
		d.Line("  and %d more objects", more)
	}
}
