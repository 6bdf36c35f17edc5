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

package drift

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/placed"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/provider/wording"
)

// Report is the answer of the command.
type Report struct {
	// Objects differ on a cluster, by SyncTarget, resource and name.
	Objects []Object `json:"objects"`
	// Unlisted is the number of failed objects that the hub only counts. Some of them may differ too.
	Unlisted int64 `json:"unlisted,omitempty"`
}

// Object is an object that differs on a cluster.
type Object struct {
	// SyncTarget is the name of the cluster's SyncTarget, and Placement the name of the EdgePlacement; empty outside of workload workspaces.
	SyncTarget string `json:"syncTarget,omitempty"`
	Placement  string `json:"placement,omitempty"`
	edgev2alpha1.ObjectFailure
	// ClusterNamespace is the namespace on the cluster, if it is another one.
	ClusterNamespace string `json:"clusterNamespace,omitempty"`
}

// OfPlacement returns the report of an EdgePlacement.
func OfPlacement(of *edgev2alpha1.EdgePlacement) *Report {
	report := &Report{}
	report.addPlacement(of)
	return report
}

// OfSyncTarget returns the report of a SyncTarget. It reads the values in the mailbox, and only if something differs. The report lacks
// them if there is an error.
func OfSyncTarget(ctx context.Context, options cli.WorkspaceOptions, of *edgev2alpha1.SyncTarget) (*Report, error) {
	report := &Report{}
	err := report.readSyncTarget(ctx, options, of)
	return report, err
}

// Find returns the report about an object on the cluster of a SyncTarget, or nil.
func (r *Report) Find(syncTarget string, object placed.Object) *Object {
	for i := range r.Objects {
		if one := &r.Objects[i]; one.SyncTarget == syncTarget && one.object() == object {
			return one
		}
	}
	return nil
}

// Row describes a field that differs. A text is "-" if the hub does not report it.
type Row struct{ Field, Managers, Desired, Observed string }

// Rows returns the fields that differ. There is one row without texts if the hub reports none.
func (o *Object) Rows() (rows []Row) {
	fields := o.Differences
	if len(fields) == 0 {
		fields = []edgev2alpha1.FieldDifference{{}}
	}
	for _, field := range fields {
		rows = append(rows, Row{cmp.Or(field.Path, none), cmp.Or(strings.Join(field.Managers, ","), none), cmp.Or(field.Desired, none), cmp.Or(field.Observed, none)})
	}
	return rows
}

func (o *Object) object() placed.Object {
	return placed.ObjectOf(edgev2alpha1.PlacementPair{ObjectFailure: o.ObjectFailure})
}

// isDrift reports whether a failure is that an object differs.
func isDrift(failure *edgev2alpha1.ObjectFailure) bool {
	return failure.Reason == plan.ReasonDrifted || failure.Reason == plan.ReasonAdoptionReported
}

// addPlacement adds the objects of an EdgePlacement.
func (r *Report) addPlacement(of *edgev2alpha1.EdgePlacement) {
	listed := int64(0)
	for _, pair := range of.Status.Failures {
		if pair.Reason != rules.ReasonUnhealthy {
			listed++
		}
		if isDrift(&pair.ObjectFailure) {
			r.Objects = append(r.Objects, Object{pair.SyncTarget, of.Name, pair.ObjectFailure, pair.ClusterNamespace})
		}
	}
	r.Unlisted += max(of.Status.Failed-listed, 0)
}

// addSyncTarget adds the objects of a SyncTarget. configs are the statuses of the configs in its mailbox, which have the values; nil if they
// cannot be read.
func (r *Report) addSyncTarget(of *edgev2alpha1.SyncTarget, configs []edgev2alpha1.SyncerConfigStatus) {
	first := len(r.Objects)
	add := func(failures []edgev2alpha1.ObjectFailure) {
		for i := range failures {
			isSame := func(other Object) bool { return compareNames(&other.ObjectFailure, &failures[i]) == 0 }
			if isDrift(&failures[i]) && !slices.ContainsFunc(r.Objects[first:], isSame) {
				r.Objects = append(r.Objects, Object{SyncTarget: of.Name, ObjectFailure: failures[i]})
			}
		}
	}
	for _, config := range configs {
		add(config.Failures)
	}
	add(of.Status.Failures)
	if counts := of.Status.Counts; counts != nil {
		r.Unlisted += max(int64(counts.Failed)-int64(max(len(of.Status.Failures), len(r.Objects)-first)), 0)
	}
}

func compareNames(a, b *edgev2alpha1.ObjectFailure) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// sort sorts the objects.
func (r *Report) sort() {
	slices.SortStableFunc(r.Objects, func(a, b Object) int {
		return cmp.Or(cmp.Compare(a.SyncTarget, b.SyncTarget), compareNames(&a.ObjectFailure, &b.ObjectFailure), cmp.Compare(a.Placement, b.Placement))
	})
}

// none stands for a value that is absent.
const none = "-"

// print prints one line for each field. isWide adds the reason, the EdgePlacement and the namespace on the cluster.
func (r *Report) print(out io.Writer, isWide bool) error {
	table := cli.NewColumns(out)
	header := "OBJECT\tSYNCTARGET\tFIELD\tMANAGER\tDESIRED\tOBSERVED"
	if isWide {
		header += "\tREASON\tPLACEMENT\tCLUSTER NAMESPACE"
	}
	table.Line("%s", header)
	for i := range r.Objects {
		object := &r.Objects[i]
		for _, row := range object.Rows() {
			line := []string{object.object().String(), cmp.Or(object.SyncTarget, none), row.Field, row.Managers, row.Desired, row.Observed}
			if isWide {
				line = append(line, object.Reason, cmp.Or(object.Placement, none), cmp.Or(object.ClusterNamespace, none))
			}
			table.Line("%s", strings.Join(line, "\t"))
		}
	}
	if err := table.Flush(); err != nil || r.Unlisted == 0 {
		return err
	}
	_, err := fmt.Fprintf(out, "\nThe hub only counts %s. Some of these may differ too.\n", wording.Count(r.Unlisted, "more failure", "more failures"))
	return err
}
