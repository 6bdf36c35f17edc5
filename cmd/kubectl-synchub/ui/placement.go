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

package ui

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"time"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/describe"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/overview"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/placed"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/rollout"
)

const (
	// matrixRows and matrixColumns bound the objects and the clusters on one page.
	matrixRows    = 50
	matrixColumns = 20
	// readTimeout bounds the requests of one page.
	readTimeout = 30 * time.Second
)

// placementContent is the page of one EdgePlacement.
type placementContent struct {
	placementRow
	// Progress is the progress of the rollout, and Stopped the reason why it cannot end by itself.
	Progress, Stopped string
	// Counts are nil without a rollout strategy.
	Counts    *edgev2alpha1.RolloutStatus
	Sections  []section
	Matrix    *matrix
	Revisions []revisionRow
	// Errors are the reasons why parts of the page are missing.
	Errors []string
}

// revisionRow is a revision that the user can go back to.
type revisionRow struct {
	Revision string
	Objects  int
	Age      string
	// Undo is the command that goes back to it.
	Undo string
}

// matrix has the state of objects on clusters.
type matrix struct {
	Clusters         []matrixCluster
	Rows             []matrixRow
	Objects, Columns pager
	// Text is empty, or describes why states may be unknown.
	Text string
}

type matrixCluster struct{ Name, URL string }

type matrixRow struct {
	Object placed.Object
	URL    string
	Cells  []matrixCell
	// Counts has the number of clusters by state, if not all have a column.
	Counts string
}

type matrixCell struct {
	placed.State
	Class, URL string
}

func (s *server) placementPage(ctx context.Context, workspaceName, name string, query url.Values) view {
	w := s.workspace(workspaceName)
	if w == nil {
		return view{}
	}
	placement, ok := w.placements.get(name)
	if !ok {
		return view{}
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	content := placementContent{placementRow: newPlacementRow(w.name, placement), Counts: placement.Status.Rollout}
	content.Sections = sectionsOf(describe.Placement(placement, s.now()), func(row describe.Row) string {
		if row.Object == nil {
			return ""
		}
		return objectURL(objectQuery{Workspace: w.name, Placement: name, SyncTarget: row.SyncTarget, Object: *row.Object})
	})
	objects, fingerprint, err := rollout.PlacedObjects(ctx, w.reader, placement)
	if err != nil {
		content.Errors = append(content.Errors, err.Error())
	} else {
		var stopped error
		content.Progress, _, stopped = rollout.Progress(placement, len(objects), fingerprint.String())
		if stopped != nil {
			content.Stopped = stopped.Error()
		}
		content.Matrix = s.newMatrix(w, placement, objects, query)
	}
	content.Revisions, err = s.revisions(ctx, w, placement)
	if err != nil {
		content.Errors = append(content.Errors, err.Error())
	}
	return view{Title: name, Section: "placements", template: "placement.html", Content: content, makesRequests: true}
}

// revisions returns the revisions of an EdgePlacement, the newest first.
func (s *server) revisions(ctx context.Context, w *workspace, placement *edgev2alpha1.EdgePlacement) (rows []revisionRow, err error) {
	found, err := rollout.Revisions(ctx, w.reader.Client, placement)
	if err != nil {
		return nil, err
	}
	for _, of := range slices.Backward(found) {
		revision := strconv.FormatInt(of.Revision, 10)
		rows = append(rows, revisionRow{
			Revision: revision, Objects: len(of.Objects), Age: overview.FormatDuration(s.now().Sub(of.CreationTimestamp.Time)),
			Undo: "kubectl synchub rollout undo " + placement.Name + " --to-revision=" + revision,
		})
	}
	return rows, nil
}

// viewOf returns the states of the objects of an EdgePlacement.
func (w *workspace) viewOf(placement *edgev2alpha1.EdgePlacement) *placed.View {
	slice, _ := w.slices.get(placement.Name)
	return placed.NewView(placement, slice)
}

// newMatrix returns the states of a part of the objects on a part of the clusters, the worst first.
func (s *server) newMatrix(w *workspace, placement *edgev2alpha1.EdgePlacement, objects []placed.Object, query url.Values) *matrix {
	seen := w.viewOf(placement)
	made := &matrix{}
	if int64(len(objects)) != placement.Status.Selected {
		made.Text, seen.Complete = "The hub has not counted the objects as they are now.", false
	}
	seen.SortWorstFirst(objects)
	clusters := seen.WorstClustersFirst()
	address := url.URL{Path: placementURL(w.name, placement.Name)}
	made.Objects = newPager(address, query, "objects", "objects", len(objects), matrixRows)
	made.Columns = newPager(address, query, "clusters", "clusters", len(clusters), matrixColumns)
	shown := itemsOf(made.Columns, clusters)
	for _, cluster := range shown {
		made.Clusters = append(made.Clusters, matrixCluster{cluster, s.urlOfCluster(cluster)})
	}
	for _, object := range itemsOf(made.Objects, objects) {
		made.Rows = append(made.Rows, newMatrixRow(w, placement.Name, seen, object, shown))
	}
	return made
}

func newMatrixRow(w *workspace, placement string, seen *placed.View, object placed.Object, clusters []string) matrixRow {
	query := objectQuery{Workspace: w.name, Placement: placement, Object: object}
	row := matrixRow{Object: object, URL: objectURL(query)}
	for _, cluster := range clusters {
		query.SyncTarget = cluster
		row.Cells = append(row.Cells, newMatrixCell(seen.StateOf(object, cluster), query))
	}
	if len(clusters) < len(seen.SyncTargets) {
		row.Counts = describe.Counts(seen, object)
	}
	return row
}

func newMatrixCell(state placed.State, query objectQuery) matrixCell {
	cell := matrixCell{State: state, Class: "wait", URL: objectURL(query)}
	switch {
	case state.Failed:
		cell.Class = "bad"
	case state.State == placed.Healthy:
		cell.Class = "good"
	case state.State == placed.Unknown:
		cell.Class = "unknown"
	}
	return cell
}

// urlOfCluster returns the address of a SyncTarget, if a workspace of the page has exactly one of the name.
func (s *server) urlOfCluster(name string) (found string) {
	for _, w := range s.workspaces {
		if _, ok := w.targets.get(name); !ok {
			continue
		}
		if found != "" {
			return ""
		}
		found = targetURL(w.name, name)
	}
	return found
}
