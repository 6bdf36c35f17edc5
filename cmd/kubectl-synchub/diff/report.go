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
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/explain"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/objectdiff"
	"github.com/synchub-dev/synchub/provider/wording"
)

// Action is what the hub would do with an object of a cluster.
type Action string

// The actions. Replace deletes the object and makes it again.
const (
	Create  Action = "Create"
	Update  Action = "Update"
	Replace Action = "Replace"
	Delete  Action = "Delete"
)

// outcome is what happens to one place of one cluster. The zero value is: nothing. An outcome without an action is a remark.
type outcome struct {
	cluster *cluster
	action  Action
	ref     explain.TargetRef
	// from and to are nil if the cluster does not have the object then.
	from, to map[string]any
	// note is for the user to know. problem is why the object would not be there, or why that is unknown.
	note, problem string
}

// Object names an object of a cluster.
type Object struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Resource   string `json:"resource,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`
}

func objectOf(ref explain.TargetRef) Object {
	return Object{APIVersion: ref.GroupVersion().String(), Kind: ref.Kind, Resource: ref.Resource, Namespace: ref.Namespace, Name: ref.Name}
}

func (o Object) String() string {
	return strings.TrimSpace(cmp.Or(o.Kind, o.Resource) + " " + strings.TrimPrefix(o.Namespace+"/"+o.Name, "/"))
}

func (o Object) compare(other Object) int {
	return cmp.Or(cmp.Compare(o.APIVersion, other.APIVersion), cmp.Compare(o.Kind, other.Kind), cmp.Compare(o.Namespace, other.Namespace), cmp.Compare(o.Name, other.Name))
}

// Change is a change of an object, which is the same on several clusters.
type Change struct {
	SyncTargets []string `json:"syncTargets"`
	Action      Action   `json:"action"`
	Object
	Note string `json:"note,omitempty"`
	// Fields are the fields that differ. The values of Secrets are masked. A deletion lists none.
	Fields []Field `json:"fields,omitempty"`

	from, to map[string]any
}

// Remark is a note, or a problem, about a SyncTarget or about one of its objects.
type Remark struct {
	SyncTargets []string `json:"syncTargets,omitempty"`
	Object
	Message string `json:"message"`
}

// Report is the answer of the command.
type Report struct {
	// Changes are sorted by SyncTargets and object.
	Changes []Change `json:"changes"`
	// Notes are about objects that stay as they are.
	Notes []Remark `json:"notes,omitempty"`
	// Problems are why objects would not be as desired, or what could not be asked.
	Problems []Remark `json:"problems,omitempty"`
}

// newReport groups the outcomes of clusters. Some clusters could not be asked.
func newReport(of *scope, outcomes []outcome) (*Report, error) {
	report := &Report{Changes: []Change{}}
	setAmbiguous(of.clusters)
	notes, failed := &remarks{}, &remarks{}
	for _, one := range of.clusters {
		switch {
		case one.err != nil:
			failed.add(one.name(), Object{}, "the cluster cannot be asked: "+one.err.Error())
		case one.isDrained():
			notes.add(one.name(), Object{}, "the SyncTarget is drained or deleted, so it gets nothing")
		case one.syncTarget.Spec.Suspend:
			notes.add(one.name(), Object{}, "the SyncTarget is suspended, so nothing changes until it is resumed")
		}
	}
	groups := map[string]*Change{}
	for _, one := range outcomes {
		switch {
		case one.problem != "":
			failed.add(one.cluster.name(), objectOf(one.ref), one.problem)
			continue
		case one.action == "":
			if one.note != "" {
				notes.add(one.cluster.name(), objectOf(one.ref), one.note)
			}
			continue
		}
		change, key, err := changeOf(one)
		if err != nil {
			return nil, err
		}
		if groups[key] == nil {
			groups[key] = change
		}
		groups[key].SyncTargets = append(groups[key].SyncTargets, one.cluster.name())
	}
	for _, change := range groups {
		slices.Sort(change.SyncTargets)
		report.Changes = append(report.Changes, *change)
	}
	slices.SortFunc(report.Changes, func(a, b Change) int {
		return cmp.Or(slices.Compare(a.SyncTargets, b.SyncTargets), a.compare(b.Object))
	})
	report.Notes, report.Problems = append(of.notes, notes.sorted()...), append(of.problems, failed.sorted()...)
	return report, nil
}

// changeOf returns the change of an outcome, and a key that equal changes have in common.
func changeOf(one outcome) (*Change, string, error) {
	change := &Change{Action: one.action, Object: objectOf(one.ref), Note: one.note, from: one.from, to: one.to}
	for _, content := range []map[string]any{one.to, one.from} {
		if kind, ok := content["kind"].(string); ok {
			change.Kind = kind
			change.APIVersion, _ = content["apiVersion"].(string)
			break
		}
	}
	if one.action != Delete {
		// Secrets are compared before they are masked.
		change.Fields = fieldsOf(one.from, one.to)
	}
	key, err := json.Marshal(change)
	if err != nil {
		return nil, "", err
	}
	masked, err := objectdiff.Change{From: one.from, To: one.to}.Masked()
	if change.from, change.to = masked.From, masked.To; err == nil && one.action != Delete {
		change.Fields = fieldsOf(change.from, change.to)
	}
	return change, string(key), err
}

// remarks groups remarks by object and message.
type remarks struct {
	all []Remark
	// positions are the positions of remarks, without their SyncTargets, in the list.
	positions map[remarkKey]int
}

type remarkKey struct {
	Object
	message string
}

func (r *remarks) add(syncTarget string, object Object, message string) {
	key := remarkKey{object, strings.Join(strings.Fields(message), " ")}
	position, ok := r.positions[key]
	if !ok {
		if r.positions == nil {
			r.positions = map[remarkKey]int{}
		}
		position = len(r.all)
		r.positions[key] = position
		r.all = append(r.all, Remark{Object: object, Message: key.message})
	}
	r.all[position].SyncTargets = append(r.all[position].SyncTargets, syncTarget)
}

func (r *remarks) sorted() []Remark {
	for i := range r.all {
		slices.Sort(r.all[i].SyncTargets)
		r.all[i].SyncTargets = slices.Compact(r.all[i].SyncTargets)
	}
	slices.SortFunc(r.all, func(a, b Remark) int {
		return cmp.Or(slices.Compare(a.SyncTargets, b.SyncTargets), a.compare(b.Object), cmp.Compare(a.Message, b.Message))
	})
	return r.all
}

// maxNames is the number of SyncTargets that a line of the output names.
const maxNames = 10

// print prints the changes as `kubectl diff` prints them, once for SyncTargets with equal changes. Notes and problems go to standard error.
func (r *Report) print(streams genericiooptions.IOStreams) error {
	for rest := r.Changes; len(rest) > 0; {
		count := 1
		for count < len(rest) && slices.Equal(rest[count].SyncTargets, rest[0].SyncTargets) {
			count++
		}
		if err := printGroup(streams, rest[:count]); err != nil {
			return err
		}
		rest = rest[count:]
	}
	for _, change := range r.Changes {
		if change.Note != "" {
			printRemark(streams.ErrOut, "note", Remark{change.SyncTargets, change.Object, change.Note})
		}
	}
	for _, note := range r.Notes {
		printRemark(streams.ErrOut, "note", note)
	}
	for _, problem := range r.Problems {
		printRemark(streams.ErrOut, "problem", problem)
	}
	return nil
}

func printRemark(out io.Writer, severity string, remark Remark) {
	about := []string{severity}
	for _, text := range []string{wording.First(maxNames, remark.SyncTargets), remark.String()} {
		if text != "" {
			about = append(about, text)
		}
	}
	fmt.Fprintln(out, cli.SanitizeLine(strings.Join(append(about, remark.Message), ": ")))
}

// printGroup prints the changes of some SyncTargets.
func printGroup(streams genericiooptions.IOStreams, changes []Change) error {
	noun := "SyncTargets"
	if len(changes[0].SyncTargets) == 1 {
		noun = "SyncTarget"
	}
	fmt.Fprintf(streams.Out, "# %s %s\n", noun, cli.SanitizeLine(wording.First(maxNames, changes[0].SyncTargets)))
	contents := make([]objectdiff.Change, 0, len(changes))
	for _, change := range changes {
		contents = append(contents, objectdiff.Change{From: change.from, To: change.to})
	}
	return objectdiff.Print(streams, contents)
}
