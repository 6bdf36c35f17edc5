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
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/drift"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/explain"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/placed"
	"github.com/synchub-dev/synchub/controllers/plan"
)

// objectQuery names an object of a workload workspace and the EdgePlacement that selects it, or an object in the mailbox of a
// SyncTarget.
type objectQuery struct {
	Workspace, Placement, SyncTarget string
	Object                           placed.Object
}

func objectURL(q objectQuery) string {
	values := url.Values{}
	for name, value := range map[string]string{
		"workspace": q.Workspace, "placement": q.Placement, "target": q.SyncTarget,
		"resource": q.Object.GroupResource.String(), "namespace": q.Object.Namespace, "name": q.Object.Name,
	} {
		if value != "" {
			values.Set(name, value)
		}
	}
	return "/object?" + values.Encode()
}

func readObjectQuery(query url.Values) objectQuery {
	return objectQuery{
		Workspace: query.Get("workspace"), Placement: query.Get("placement"), SyncTarget: query.Get("target"),
		Object: placed.Object{
			GroupResource:  schema.ParseGroupResource(query.Get("resource")),
			NamespacedName: types.NamespacedName{Namespace: query.Get("namespace"), Name: query.Get("name")},
		},
	}
}

// objectContent is the page of one object: its state on all clusters of an EdgePlacement, and the explanation for one cluster.
type objectContent struct {
	objectQuery
	PlacementURL, TargetURL string
	Clusters                []objectCluster
	Pager                   pager
	// CompareURL is the address of the comparison with the cluster.
	CompareURL string
	// Command prints the same explanation.
	Command string
	Stages  []stage
	Related []relatedRow
	Result  explain.Result
	Class   string
	// Drift has the fields that differ on the cluster, if the hub reports that; else nil.
	Drift  *objectDrift
	Events objectEvents
	// Error is the reason why there is no explanation.
	Error string
}

// objectCluster is a cluster of the EdgePlacement.
type objectCluster struct {
	matrixCell
	Name     string
	Selected bool
}

// stage has the steps of an explanation in one of the places on the way of the object.
type stage struct {
	Name  string
	Steps []explainedStep
}

type explainedStep struct {
	explain.Step
	Class string
}

// stageOf returns the place of a step.
func stageOf(step string) string {
	switch step {
	case explain.StepWorkload, explain.StepPlacement, explain.StepDestination, explain.StepProgress:
		return "Workspace"
	case explain.StepSyncTarget, explain.StepConnection:
		return "Connection"
	case explain.StepTarget, explain.StepContent, explain.StepStatus:
		return "Cluster"
	default:
		return "Mailbox"
	}
}

// objectDrift is the hub's report that an object differs on a cluster.
type objectDrift struct {
	*drift.Object
	// Error is the reason why the values are missing.
	Error string
}

// IsAdoption is true if the object on the cluster is not the hub's.
func (d objectDrift) IsAdoption() bool { return d.Reason == plan.ReasonAdoptionReported }

// HasValues is true if the report has the value of a field.
func (d objectDrift) HasValues() bool {
	return slices.ContainsFunc(d.Differences, func(one edgev2alpha1.FieldDifference) bool { return one.Desired != "" })
}

func (s *server) objectPage(ctx context.Context, query url.Values) view {
	content := objectContent{objectQuery: readObjectQuery(query)}
	w := s.workspace(content.Workspace)
	if w == nil || content.Object.Name == "" || content.Object.Resource == "" {
		return view{}
	}
	if content.Placement != "" && !s.addClusters(w, &content, query) {
		return view{}
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	content.Events = s.objectEvents(ctx, w, content.objectQuery)
	if content.SyncTarget != "" {
		s.addExplanation(ctx, w, &content)
		content.Drift = driftOf(ctx, w, content.objectQuery)
	}
	return view{Title: content.Object.String(), Section: "placements", template: "object.html", Content: content, makesRequests: true}
}

// addClusters adds the states of the object on the clusters of the EdgePlacement. Unless the user chose a cluster, the explanation is
// for the worst one. It returns false if there is no such EdgePlacement.
func (s *server) addClusters(w *workspace, content *objectContent, query url.Values) bool {
	placement, ok := w.placements.get(content.Placement)
	if !ok {
		return false
	}
	content.PlacementURL = placementURL(w.name, placement.Name)
	seen := w.viewOf(placement)
	clusters := seen.WorstClustersFirst(content.Object)
	if content.SyncTarget == "" && len(clusters) > 0 {
		content.SyncTarget = clusters[0]
	}
	content.Pager = newPager(url.URL{Path: "/object"}, query, "page", "clusters", len(clusters), pageSize)
	for _, name := range itemsOf(content.Pager, clusters) {
		one := content.objectQuery
		one.SyncTarget = name
		content.Clusters = append(content.Clusters, objectCluster{newMatrixCell(seen.StateOf(content.Object, name), one), name, name == content.SyncTarget})
	}
	return true
}

// driftOf returns what the hub reports in the EdgePlacement, or in the SyncTarget and its mailbox; nil if it reports no difference.
func driftOf(ctx context.Context, w *workspace, query objectQuery) *objectDrift {
	var report *drift.Report
	var err error
	if query.Placement != "" {
		placement, ok := w.placements.get(query.Placement)
		if !ok {
			return nil
		}
		report = drift.OfPlacement(placement)
	} else {
		target, ok := w.targets.get(query.SyncTarget)
		if !ok {
			return nil
		}
		report, err = drift.OfSyncTarget(ctx, w.options, target)
	}
	found := report.Find(query.SyncTarget, query.Object)
	if found == nil {
		return nil
	}
	shown := &objectDrift{Object: found}
	if err != nil {
		shown.Error = err.Error()
	}
	return shown
}

// relatedRow has objects that the hub syncs together with the object.
type relatedRow struct {
	explain.Related
	// Names are the first objects, with their addresses, and More the number of the other ones.
	Names []relatedName
	More  int
}

type relatedName struct{ Name, URL string }

// maxRelated bounds the objects of one relation on the page.
const maxRelated = 20

// relatedRows returns the related objects. Those in the mailbox have a page if this page is about an object there.
func relatedRows(page objectQuery, all []explain.Related) (rows []relatedRow) {
	for _, one := range all {
		row := relatedRow{Related: one}
		for _, name := range one.Objects[:min(len(one.Objects), maxRelated)] {
			link := page
			link.Object = placed.Object{GroupResource: schema.GroupResource{Group: one.Group, Resource: one.Resource}, NamespacedName: name}
			shown := relatedName{Name: strings.TrimPrefix(name.String(), "/")}
			if page.Placement == "" && one.Origin == string(synchubv1alpha1.RelatedOriginMailbox) {
				shown.URL = objectURL(link)
			}
			row.Names = append(row.Names, shown)
		}
		row.More = len(one.Objects) - len(row.Names)
		rows = append(rows, row)
	}
	return rows
}

// addExplanation adds the steps for one cluster.
func (s *server) addExplanation(ctx context.Context, w *workspace, content *objectContent) {
	object := content.Object
	content.TargetURL, content.CompareURL = s.urlOfCluster(content.SyncTarget), compareURL(content.objectQuery)
	name := strings.TrimPrefix(object.NamespacedName.String(), "/")
	content.Command = strings.Join([]string{"kubectl synchub explain", content.SyncTarget, object.GroupResource.String(), name}, " ")
	explanation, err := explain.Object(ctx, w.options, content.SyncTarget, object.GroupResource.String(), object.NamespacedName)
	if err != nil {
		content.Error = err.Error()
		return
	}
	content.Related = relatedRows(content.objectQuery, explanation.Related)
	content.Result, content.Class = explanation.Result, stepClass(explanation.Result.State)
	for _, step := range explanation.Steps {
		name := stageOf(step.Step)
		if last := len(content.Stages) - 1; last < 0 || content.Stages[last].Name != name {
			content.Stages = append(content.Stages, stage{Name: name})
		}
		last := &content.Stages[len(content.Stages)-1]
		last.Steps = append(last.Steps, explainedStep{step, stepClass(step.State)})
	}
}

// stepClass returns the class of a state in the style sheet.
func stepClass(state explain.State) string {
	switch state {
	case explain.OK:
		return "good"
	case explain.Stopped:
		return "bad"
	case explain.Waiting:
		return "wait"
	default:
		return "unknown"
	}
}
