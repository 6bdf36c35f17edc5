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
	"encoding/json"
	"net/url"
	"strings"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/diff"
)

// comparePath is the path of the page that compares an object with its copy. It makes a dry run on the cluster, so it is no live page.
const comparePath = "/compare"

// maxFields bounds the differing fields on the page.
const maxFields = 200

// compareContent is the page that compares an object, as it is now, with its copy on a cluster.
type compareContent struct {
	objectQuery
	ObjectURL, TargetURL string
	Changes              []comparedChange
	// Notes and Problems are about the object, or about the cluster.
	Notes, Problems []string
	// IsSame is true if the hub would write nothing.
	IsSame bool
	// Command prints the same comparison.
	Command string
	// Error is the reason why there is no comparison.
	Error string
}

// comparedChange is what the hub would do with an object of the cluster.
type comparedChange struct {
	diff.Change
	Fields []comparedField
	// More is the number of further fields.
	More int
}

// comparedField is a field that differs. A text is empty if the object does not have the field.
type comparedField struct{ Path, OnCluster, Desired string }

func (s *server) comparePage(ctx context.Context, query url.Values) view {
	content := compareContent{objectQuery: readObjectQuery(query)}
	w := s.workspace(content.Workspace)
	if w == nil || content.Object.Name == "" || content.Object.Resource == "" || content.SyncTarget == "" {
		return view{}
	}
	content.ObjectURL, content.TargetURL = objectURL(content.objectQuery), s.urlOfCluster(content.SyncTarget)
	content.Command = compareCommand(content.objectQuery)
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	report, err := diff.OfObject(ctx, w.options, diff.Question{
		SyncTarget: content.SyncTarget, Placement: content.Placement, Resource: content.Object.GroupResource, Key: content.Object.NamespacedName,
	})
	if err != nil {
		content.Error = err.Error()
	} else {
		content.add(report)
	}
	return view{Title: content.Object.String(), Section: "placements", template: "compare.html", Content: content, IsStatic: true}
}

// compareURL returns the address of the comparison.
func compareURL(q objectQuery) string {
	_, query, _ := strings.Cut(objectURL(q), "?")
	return comparePath + "?" + query
}

// compareCommand returns the command that compares the object, in the workspace or mailbox that has it.
func compareCommand(q objectQuery) string {
	get := []string{"kubectl get", q.Object.GroupResource.String(), q.Object.Name}
	if q.Object.Namespace != "" {
		get = append(get, "--namespace", q.Object.Namespace)
	}
	compared := "-o yaml | kubectl synchub diff -f -"
	if q.Placement != "" {
		compared += " --sync-targets " + q.SyncTarget
	}
	return strings.Join(append(get, compared), " ")
}

// add adds a report to the page.
func (c *compareContent) add(report *diff.Report) {
	for _, change := range report.Changes {
		row := comparedChange{Change: change, More: max(len(change.Fields)-maxFields, 0)}
		for _, field := range change.Fields[:len(change.Fields)-row.More] {
			row.Fields = append(row.Fields, comparedField{field.Path, valueText(field.Before), valueText(field.After)})
		}
		c.Changes = append(c.Changes, row)
	}
	for _, note := range report.Notes {
		c.Notes = append(c.Notes, note.Message)
	}
	for _, problem := range report.Problems {
		c.Problems = append(c.Problems, problem.Message)
	}
	c.IsSame = len(c.Changes)+len(c.Notes)+len(c.Problems) == 0
}

// valueText returns the text of a value, which is JSON unless it is a text itself.
func valueText(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return value
	}
	content, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(content)
}
