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

package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/controllers/plan/related"
)

// printer collects output and prints it as one list, or as YAML documents. Text that is not an object goes to
// standard error.
type printer struct {
	streams genericiooptions.IOStreams
	format  cli.StructuredOutput
	items   []any
}

// api prints the objects that give mailboxes an API.
func (p *printer) api(made *Rendering) {
	if versions := made.TargetVersions(); len(versions) > 1 {
		p.note("Targets are given the first of these versions that they serve: %s. An entry of a config that names another by apiVersion comes before.", strings.Join(versions, ", "))
	}
	if made.Schema != nil {
		p.items = append(p.items, made.Schema)
		return
	}
	export := map[string]any{
		"apiVersion": apisv1alpha2.SchemeGroupVersion.String(),
		"kind":       "APIExport",
		"spec":       map[string]any{"permissionClaims": []any{made.Claim}},
	}
	p.items = append(p.items, export)
}

// renderedObject prints the copy that the hub makes of an object.
func (p *printer) renderedObject(made *Rendering, object *unstructured.Unstructured, namespaceLabels map[string]string) error {
	if object.GetKind() == "Namespace" && object.GetAPIVersion() == "v1" && !made.Matches(object) {
		// The Namespace was passed for its labels only.
		return nil
	}
	arrival, err := made.Down(object, namespaceLabels)
	if err != nil {
		return fmt.Errorf("%s %s: %w", object.GetKind(), nameOf(object), err)
	}
	if arrival.Object == nil {
		p.note("%s %s stays in the mailbox: spec.filter does not let it pass", object.GetKind(), nameOf(object))
		return nil
	}
	p.items = append(p.items, arrival.Object.Object)
	for _, identifier := range slices.Sorted(maps.Keys(arrival.Related)) {
		p.note("%s %s takes along, as %s: %s", object.GetKind(), nameOf(object), identifier, describeRendering(arrival.Related[identifier]))
	}
	return nil
}

func (p *printer) note(format string, values ...any) {
	fmt.Fprintln(p.streams.ErrOut, cli.SanitizeLine(fmt.Sprintf(format, values...)))
}

func nameOf(object *unstructured.Unstructured) string {
	return strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/")
}

// describeRendering describes the objects that a primary selects.
func describeRendering(wanted related.Query) string {
	var parts []string
	for _, name := range wanted.Names {
		parts = append(parts, name.String())
	}
	for _, name := range wanted.NamesInSelectedNamespaces {
		parts = append(parts, name+" in namespaces with "+wanted.NamespaceSelector.String())
	}
	where := "in " + strings.Join(wanted.Namespaces, ", ")
	if wanted.NamespaceSelector != nil {
		where = "in namespaces with " + wanted.NamespaceSelector.String()
	}
	if wanted.Selector != nil {
		parts = append(parts, "objects with "+wanted.Selector.String()+" "+where)
	}
	if wanted.Owner != "" {
		parts = append(parts, "objects that it owns "+where)
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, "; ")
}

// flush prints the collected objects.
func (p *printer) flush() error {
	if p.format == "json" {
		_, err := p.format.Print(p.streams.Out, map[string]any{"apiVersion": "v1", "kind": "List", "items": p.items})
		return err
	}
	for i, item := range p.items {
		if i > 0 {
			fmt.Fprintln(p.streams.Out, "---")
		}
		if _, err := p.format.Print(p.streams.Out, item); err != nil {
			return err
		}
	}
	return nil
}
