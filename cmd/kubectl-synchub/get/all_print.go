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

package get

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"slices"
	"sort"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/cmd/get"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
)

// clusterAnnotation has the logical cluster of an object. kcp sets it.
const clusterAnnotation = "kcp.io/cluster"

var workspacesResource = schema.GroupVersionResource{Group: "tenancy.kcp.io", Version: "v1alpha1", Resource: "workspaces"}

// fleetPrinter prints objects of many mailboxes.
type fleetPrinter struct {
	printers.ResourcePrinter
	out, errOut io.Writer
	// none is the message for an empty list.
	none string
	// targets are the names of the SyncTargets, by the logical cluster of the mailbox.
	targets map[string]string
	sortBy  string
	// isHuman selects a table, withNamespace a column for the namespace, and separate single objects instead of one list.
	isHuman, withNamespace, separate bool
}

func (o *getAllOptions) fleetPrinter(ctx context.Context, provider *cli.Reader, of *mailboxesReader) (*fleetPrinter, error) {
	o.output.SetKind(of.kind)
	printer, err := o.output.ToPrinter()
	if err != nil {
		return nil, err
	}
	made := &fleetPrinter{
		ResourcePrinter: printer, out: o.Out, errOut: o.ErrOut, none: noneFound(of),
		isHuman: o.isHuman(), withNamespace: o.allNamespaces, separate: o.watch,
	}
	if field := *o.output.HumanReadableFlags.SortBy; field != "" {
		if made.sortBy, err = get.RelaxedJSONPathExpression(field); err != nil {
			return nil, fmt.Errorf("--sort-by: %w", err)
		}
	}
	if made.isHuman {
		made.targets = o.targetNames(ctx, provider)
	}
	return made, nil
}

// noneFound returns the message for an empty list.
func noneFound(of *mailboxesReader) string {
	if of.filter.namespace == "" {
		return fmt.Sprintf("No %s found in the mailboxes.", of.resource.GroupResource())
	}
	return fmt.Sprintf("No %s found in the namespace %s of the mailboxes; -A lists all namespaces.", of.resource.GroupResource(), of.filter.namespace)
}

// targetNames returns the names of SyncTargets, by the logical cluster of the mailbox, as far as the user may read them. A
// name that several mailboxes have is followed by the logical cluster.
func (o *getAllOptions) targetNames(ctx context.Context, provider *cli.Reader) map[string]string {
	names := map[string]string{}
	// A status can be forged for a while, so the Workspaces of the hub overrule it.
	if workspace, err := o.Client(); err == nil {
		var list edgev2alpha1.SyncTargetList
		if workspace.List(ctx, &list) == nil {
			for _, syncTarget := range list.Items {
				if mailbox := syncTarget.Status.Mailbox; mailbox != nil && mailbox.Cluster != "" {
					names[mailbox.Cluster] = syncTarget.Name
				}
			}
		}
	}
	var workspaces unstructured.UnstructuredList
	if list, err := provider.Objects.Resource(workspacesResource).List(ctx, metav1.ListOptions{}); err == nil {
		workspaces = *list
	}
	for _, workspace := range workspaces.Items {
		cluster, _, _ := unstructured.NestedString(workspace.Object, "spec", "cluster")
		if name := workspace.GetAnnotations()[edgev2alpha1.AnnotationSyncTargetName]; name != "" && cluster != "" {
			names[cluster] = name
		}
	}
	return withUniqueNames(names)
}

// withUniqueNames adds the logical cluster to names that several clusters have.
func withUniqueNames(names map[string]string) map[string]string {
	count := map[string]int{}
	for _, name := range names {
		count[name]++
	}
	unique := make(map[string]string, len(names))
	for cluster, name := range names {
		if count[name] > 1 {
			name += "@" + cluster
		}
		unique[cluster] = name
	}
	return unique
}

// target returns the name of the SyncTarget to whose mailbox an object belongs, or the mailbox's logical cluster.
func (p *fleetPrinter) target(object *unstructured.Unstructured) string {
	cluster := object.GetAnnotations()[clusterAnnotation]
	if name := p.targets[cluster]; name != "" {
		return name
	}
	return cluster
}

// printList prints the objects of a list.
func (p *fleetPrinter) printList(list *mailboxObjects) error {
	if p.isHuman {
		if len(list.objects) == 0 && !p.separate {
			fmt.Fprintln(p.errOut, cli.SanitizeLine(p.none))
		}
		// A sort of the user's choice keeps this order where it finds no difference.
		slices.SortStableFunc(list.objects, func(a, b mailboxObject) int { return strings.Compare(p.target(a.content), p.target(b.content)) })
		return p.printTables(list.objects)
	}
	objects, err := p.sorted(list.objects)
	if err != nil {
		return err
	}
	if p.separate {
		for _, object := range objects {
			if err := p.print(object); err != nil {
				return err
			}
		}
		return nil
	}
	printed := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""}}}
	for _, object := range objects {
		if content, ok := object.(*unstructured.Unstructured); ok {
			printed.Items = append(printed.Items, *content)
		}
	}
	return p.print(printed)
}

// printObject prints an object that has changed.
func (p *fleetPrinter) printObject(object mailboxObject) error {
	if p.isHuman {
		return p.printTables([]mailboxObject{object})
	}
	return p.print(object.content)
}

// sorted returns the objects in the order of --sort-by.
func (p *fleetPrinter) sorted(list []mailboxObject) ([]runtime.Object, error) {
	objects := make([]runtime.Object, 0, len(list))
	for _, object := range list {
		objects = append(objects, object.content)
	}
	if p.sortBy == "" || len(objects) == 0 {
		return objects, nil
	}
	if _, err := get.SortObjects(unstructured.UnstructuredJSONScheme, objects, p.sortBy); err != nil {
		return nil, fmt.Errorf("--sort-by: %w", err)
	}
	return objects, nil
}

// print prints an object or a list in the requested format.
func (p *fleetPrinter) print(object runtime.Object) error {
	return cli.PrintSafely(p.ResourcePrinter, object, p.out)
}

// printTables prints objects as one table, or as several if endpoints return different columns.
func (p *fleetPrinter) printTables(objects []mailboxObject) error {
	var tables []*metav1.Table
	for _, object := range objects {
		columns, row := p.columns(object), p.row(object)
		i := slices.IndexFunc(tables, func(table *metav1.Table) bool { return reflect.DeepEqual(table.ColumnDefinitions, columns) })
		if i < 0 {
			i, tables = len(tables), append(tables, &metav1.Table{ColumnDefinitions: columns})
		}
		tables[i].Rows = append(tables[i].Rows, row)
	}
	for _, table := range tables {
		if p.sortBy != "" {
			sorter, err := get.NewTableSorter(table, p.sortBy)
			if err != nil {
				return fmt.Errorf("--sort-by: %w", err)
			}
			sort.Stable(sorter)
		}
		if err := p.print(table); err != nil {
			return err
		}
	}
	return nil
}

// columns returns the columns for an object: TARGET, NAMESPACE if the user wants all, and the server's columns. The server
// omits the age of many kinds.
func (p *fleetPrinter) columns(object mailboxObject) []metav1.TableColumnDefinition {
	columns := []metav1.TableColumnDefinition{{Name: "Target", Type: "string"}}
	if p.withNamespace && object.content.GetNamespace() != "" {
		columns = append(columns, metav1.TableColumnDefinition{Name: "Namespace", Type: "string"})
	}
	if object.columns == nil {
		columns = append(columns, metav1.TableColumnDefinition{Name: "Name", Type: "string", Format: "name"})
	}
	for _, column := range object.columns {
		column.Name = cli.SanitizeCell(column.Name)
		columns = append(columns, column)
	}
	if !hasAge(object.columns) {
		columns = append(columns, metav1.TableColumnDefinition{Name: "Age", Type: "string"})
	}
	return columns
}

func hasAge(columns []metav1.TableColumnDefinition) bool {
	return slices.ContainsFunc(columns, func(column metav1.TableColumnDefinition) bool { return strings.EqualFold(column.Name, "age") })
}

// row returns the cells for an object, in the order of columns.
func (p *fleetPrinter) row(object mailboxObject) metav1.TableRow {
	cells := []any{cli.SanitizeCell(p.target(object.content))}
	if namespace := object.content.GetNamespace(); p.withNamespace && namespace != "" {
		cells = append(cells, cli.SanitizeCell(namespace))
	}
	if object.columns == nil {
		cells = append(cells, cli.SanitizeCell(object.content.GetName()))
	}
	for i := range object.columns {
		var cell any
		if i < len(object.row) && object.row[i] != nil {
			cell = cli.SanitizeCell(fmt.Sprint(object.row[i]))
		}
		cells = append(cells, cell)
	}
	if !hasAge(object.columns) {
		cells = append(cells, age(object.content))
	}
	return metav1.TableRow{Cells: cells, Object: runtime.RawExtension{Object: object.content}}
}

// age returns the age of an object as kubectl prints it.
func age(object *unstructured.Unstructured) string {
	created := object.GetCreationTimestamp()
	if created.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(created.Time))
}
