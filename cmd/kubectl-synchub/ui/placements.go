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
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

// placementsContent is the page with all EdgePlacements.
type placementsContent struct {
	Search         string
	WithWorkspaces bool
	Rows           []placementRow
	Pager          pager
}

type placementRow struct {
	edgev2alpha1.EdgePlacement
	WorkspaceName, URL string
	Health             healthName
	// Problem describes the condition that is not met. It is empty if all are.
	Problem string
	// Pairs and Rollout are counts as text.
	Pairs, Rollout string
}

func placementURL(workspace, name string) string {
	return "/placements/" + url.PathEscape(workspace) + "/" + url.PathEscape(name)
}

func (s *server) placementsPage(query url.Values) view {
	content := placementsContent{Search: query.Get("q"), WithWorkspaces: s.count(func(w *workspace) bool { return w.isWorkload }) > 1}
	var all []placementRow
	for _, w := range s.workspaces {
		for _, placement := range w.placements.list() {
			if strings.Contains(placement.Name, content.Search) {
				all = append(all, newPlacementRow(w.name, placement))
			}
		}
	}
	slices.SortFunc(all, func(a, b placementRow) int {
		return cmp.Or(
			cmp.Compare(b.Status.Failed, a.Status.Failed), cmp.Compare(healthRank(a.Health), healthRank(b.Health)),
			cmp.Compare(a.WorkspaceName, b.WorkspaceName), cmp.Compare(a.Name, b.Name),
		)
	})
	content.Pager = newPager(url.URL{Path: "/placements"}, query, "page", "placements", len(all), pageSize)
	content.Rows = itemsOf(content.Pager, all)
	return view{Title: "Placements", Section: "placements", template: "placements.html", Content: content}
}

// Names of the health of an EdgePlacement, the worst first.
var placementHealths = []healthName{{"Failed", "bad"}, {"In progress", "wait"}, {"Healthy", "good"}}

func healthRank(health healthName) int { return slices.Index(placementHealths, health) }

func newPlacementRow(workspaceName string, of *edgev2alpha1.EdgePlacement) placementRow {
	status := &of.Status
	row := placementRow{
		EdgePlacement: *of, WorkspaceName: workspaceName, URL: placementURL(workspaceName, of.Name),
		Pairs: fmt.Sprintf("%d of %d", status.Healthy, status.Selected*int64(status.Destinations)),
	}
	for _, kind := range []string{edgev2alpha1.ConditionReady, edgev2alpha1.ConditionHealthy, edgev2alpha1.ConditionRolledOut} {
		condition := meta.FindStatusCondition(status.Conditions, kind)
		if condition != nil && condition.Status != metav1.ConditionTrue {
			row.Problem = condition.Reason + ": " + condition.Message
			break
		}
	}
	row.Health = placementHealths[2]
	switch {
	case status.Failed > 0 || len(status.Failures) > 0:
		row.Health = placementHealths[0]
	case row.Problem != "" || len(status.Conditions) == 0:
		row.Health = placementHealths[1]
	}
	if rollout := status.Rollout; rollout != nil {
		row.Rollout = fmt.Sprintf("%d of %d", rollout.Succeeded, status.Destinations)
	}
	return row
}
