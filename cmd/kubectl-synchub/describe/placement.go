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
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/placed"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/rollout"
	"github.com/synchub-dev/synchub/controllers/plan/tenancy"
	"github.com/synchub-dev/synchub/provider/redact"
	"github.com/synchub-dev/synchub/provider/wording"
)

const (
	// defaultObjects is the number of objects that describe placement shows.
	defaultObjects = 100
	// maxColumns is the number of clusters up to which each of them has a column. Beyond it, objects have the number of clusters
	// by state.
	maxColumns = 8
)

const describePlacementLong = `Show the details of an EdgePlacement of the current workspace: its conditions, how each object that it selects is on each
cluster, and its events. Objects that need attention come first.

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
	options.AddFlags(command)
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
	d := &description{now: time.Now()}
	d.placement(placement)
	// The rest of the description does not depend on the objects, so the user gets it anyway.
	objects, fingerprint, listError := rollout.PlacedObjects(ctx, reader, placement)
	if listError == nil {
		d.currency(placement, len(objects), fingerprint.String())
		d.namespaces(placement, slice, objects)
		d.placedObjects(placement, placed.NewView(placement, slice), objects, o.limit)
	}
	d.placementPairs("Failures", placement.Status.Failures)
	d.placementPairs("On Their Way", placement.Status.Progressing)
	d.excludedObjects(&placement.Status)
	var events corev1.EventList
	// A user without the right to list events still gets the rest of the description.
	if reader.Client.List(ctx, &events, client.MatchingFields{"involvedObject.name": name, "involvedObject.kind": "EdgePlacement"}) == nil {
		d.events(events.Items, func(event *corev1.Event) string { return placementNote(placement, event) })
	}
	columns := cli.NewColumns(o.Out)
	d.print(columns)
	return errors.Join(listError, columns.Flush())
}

// placementNote returns why an event is not about this EdgePlacement, or "".
func placementNote(of *edgev2alpha1.EdgePlacement, event *corev1.Event) string {
	if event.InvolvedObject.UID != of.UID {
		return " (of an earlier EdgePlacement of this name)"
	}
	return ""
}

// Placement returns the description of an EdgePlacement without its objects.
func Placement(of *edgev2alpha1.EdgePlacement, now time.Time) *Description {
	d := &description{now: now}
	d.placement(of)
	d.placementPairs("Failures", of.Status.Failures)
	d.placementPairs("On Their Way", of.Status.Progressing)
	d.excludedObjects(&of.Status)
	return &d.Description
}

// currency adds a text if the objects have changed since the hub wrote the status.
func (d *description) currency(of *edgev2alpha1.EdgePlacement, objects int, fingerprint string) {
	if status := &of.Status; int64(objects) == status.Selected && status.ObservedObjects != "" && status.ObservedObjects != fingerprint {
		d.text("Objects have changed since the hub wrote this status.")
	}
}

func (d *description) placement(of *edgev2alpha1.EdgePlacement) {
	status := &of.Status
	d.field("Name", of.Name)
	d.field("Labels", formatLabels(of.Labels))
	d.field("Deletion Policy", string(of.Spec.DeletionPolicy))
	if int64(status.SpecGeneration) != of.Generation {
		d.field("Status", fmt.Sprintf("of generation %d, while the EdgePlacement has generation %d: the hub is about to write it again", status.SpecGeneration, of.Generation))
	}
	d.field("Locations", fmt.Sprint(status.MatchingLocationCount))
	d.field("Destinations", fmt.Sprint(status.Destinations))
	d.field("Objects", fmt.Sprintf("%d selected, %d not placed", status.Selected, status.Excluded))
	d.field("Pairs", fmt.Sprintf("%d: %d placed, %d synced, %d healthy, %d failed",
		status.Selected*int64(status.Destinations), status.Placed, status.Synced, status.Healthy, status.Failed))
	if status.Upsynced > 0 {
		d.field("Upsynced", wording.Count(status.Upsynced, "object of the clusters is", "objects of the clusters are")+" in this workspace")
	}
	if rollout := status.Rollout; rollout != nil {
		d.field("Rollout", fmt.Sprintf("%d successful, %d progressing, %d failed, %d waiting", rollout.Succeeded, rollout.Progressing, rollout.Failed, rollout.Waiting))
	}
	d.conditions(status.Conditions)
	d.aggregation(status.Aggregation)
}

// aggregation adds the result of spec.aggregation, a line for each field.
func (d *description) aggregation(result *runtime.RawExtension) {
	var fields map[string]json.RawMessage
	if result == nil || json.Unmarshal(result.Raw, &fields) != nil {
		return
	}
	table := d.table("Aggregation", "Field", "Value")
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		table.row(name, redact.Text(string(fields[name])))
	}
}

// namespaces adds how the namespaces of the objects are called on clusters where each workspace has namespaces of its own.
func (d *description) namespaces(placement *edgev2alpha1.EdgePlacement, slice *edgev2alpha1.SinglePlacementSlice, objects []placed.Object) {
	if slice == nil {
		return
	}
	names := sets.New[string]()
	for _, object := range objects {
		names.Insert(object.Namespace)
	}
	names.Delete("")
	var table *Table
	for _, destination := range slice.Destinations {
		naming := tenancy.Naming(destination.NamespaceTemplate)
		if naming.IsShared() {
			continue
		}
		if table == nil {
			table = d.table("Namespaces", "Namespace", "Cluster", "Name There")
		}
		for _, name := range sets.List(names) {
			table.row(name, destination.SyncTargetName, naming.Namespace(logicalcluster.From(placement), name))
		}
	}
}

// placedObjects adds how each object is on each cluster.
func (d *description) placedObjects(placement *edgev2alpha1.EdgePlacement, view *placed.View, objects []placed.Object, limit int) {
	if int64(len(objects)) != placement.Status.Selected {
		// Some of these are not counted yet, or not published.
		d.text(fmt.Sprintf("The EdgePlacement selects %s, and the hub has counted %d.", wording.Count(len(objects), "object", "objects"), placement.Status.Selected))
		view.Complete = false
	}
	if len(objects) == 0 || len(view.SyncTargets) == 0 {
		return
	}
	view.SortWorstFirst(objects)
	shown := objects
	if limit > 0 {
		shown = objects[:min(limit, len(objects))]
	}
	var table *Table
	if len(view.SyncTargets) <= maxColumns {
		table = d.objectsByCluster(view, shown)
	} else {
		table = d.objectsWithCounts(view, shown)
	}
	if more := len(objects) - len(shown); more > 0 {
		table.note("and %s: show more with --limit", wording.Count(more, "more object", "more objects"))
	}
}

// objectsByCluster adds a table with a row for each object and a column for each cluster.
func (d *description) objectsByCluster(view *placed.View, objects []placed.Object) *Table {
	table := d.table("Objects", append([]string{"Object"}, view.SyncTargets...)...)
	for _, object := range objects {
		cells := []string{object.String()}
		for _, syncTarget := range view.SyncTargets {
			cells = append(cells, view.StateOf(object, syncTarget).State)
		}
		table.row(cells...)
	}
	return table
}

// objectsWithCounts adds a table with a row for each object, with the number of clusters by state.
func (d *description) objectsWithCounts(view *placed.View, objects []placed.Object) *Table {
	table := d.table("Objects", "Object", "Clusters")
	for _, object := range objects {
		table.row(object.String(), Counts(view, object))
	}
	return table
}

// Counts returns the number of clusters by the state that an object has there.
func Counts(view *placed.View, object placed.Object) string {
	counts := map[string]int{}
	for _, syncTarget := range view.SyncTargets {
		counts[view.StateOf(object, syncTarget).State]++
	}
	var parts []string
	for _, state := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[state], state))
	}
	return strings.Join(parts, ", ")
}

// placementPairs adds a list of the status, with messages.
func (d *description) placementPairs(title string, pairs []edgev2alpha1.PlacementPair) {
	if len(pairs) == 0 {
		return
	}
	table := d.table(title, "Object", "Cluster", "Reason", "Message")
	for i, pair := range pairs {
		object, cluster := placed.ObjectOf(pair), pair.SyncTarget
		if pair.ClusterNamespace != "" {
			cluster += " (" + pair.ClusterNamespace + ")"
		}
		table.row(object.String(), cluster, pair.Reason, pair.Message)
		table.Rows[i].Object, table.Rows[i].SyncTarget = &object, pair.SyncTarget
	}
}

// excludedObjects adds the first of the objects that no EdgePlacement places.
func (d *description) excludedObjects(status *edgev2alpha1.EdgePlacementStatus) {
	if len(status.ExcludedObjects) == 0 {
		return
	}
	table := d.table("Not Placed", "Object", "Reason", "Message")
	for _, object := range status.ExcludedObjects {
		table.row(placed.ObjectOf(edgev2alpha1.PlacementPair{ObjectFailure: object}).String(), object.Reason, object.Message)
	}
	if more := status.Excluded - int64(len(status.ExcludedObjects)); more > 0 {
		table.note("and %s", wording.Count(more, "more object", "more objects"))
	}
}
