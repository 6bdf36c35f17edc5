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

package schemas

import (
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"

	"github.com/synchub-dev/synchub/test/fixtures"
)

// The test uses the validation of an API server for new CRDs: names, structural schemas, defaults that fit, and CEL
// rules that compile and stay within the cost limits for the largest objects that the schema allows.
func TestCRDsAreAcceptedByAnAPIServer(t *testing.T) {
	for name := range crds() {
		t.Run(name, func(t *testing.T) {
			crd, err := CRD(name)
			if err != nil {
				t.Fatal(err)
			}
			fixtures.RequireAcceptableCRD(t, crd)
			// These kinds have their fields at the top and no status, the first two as in KubeStellar.
			wanted := !slices.Contains([]string{"singleplacementslices.edge.kubestellar.io", "customizers.edge.kubestellar.io", "placementrevisions.edge.kubestellar.io"}, name)
			if version := crd.Spec.Versions[0]; (version.Subresources != nil && version.Subresources.Status != nil) != wanted {
				t.Errorf("the status subresource: got %t, wanted %t", !wanted, wanted)
			}
			scope := apiextensionsv1.ClusterScoped
			if name == "customizers.edge.kubestellar.io" {
				scope = apiextensionsv1.NamespaceScoped
			}
			for _, column := range crd.Spec.Versions[0].AdditionalPrinterColumns {
				if strings.Contains(column.JSONPath, "[*]") {
					t.Errorf("the column %s shows only the first value of %s", column.Name, column.JSONPath)
				}
			}
			if crd.Spec.Scope != scope {
				t.Errorf("scope is %s, wanted %s", crd.Spec.Scope, scope)
			}
		})
	}
}

// A column of a list shows the first item only, which is in the name of the column.
func TestColumnsOfLists(t *testing.T) {
	for name, c := range map[string]struct {
		object string
		want   []any
	}{
		"customizers.edge.kubestellar.io": {
			`{metadata: {name: settings, annotations: {edge.kubestellar.io/expand-parameters: "true"}}, replacements: [{path: $.data.a}, {path: $.data.b}]}`,
			[]any{"settings", "$.data.a", "true"},
		},
		"singleplacementslices.edge.kubestellar.io": {
			`{metadata: {name: shop}, destinations: [{syncTargetName: florin}, {syncTargetName: guilder}]}`, []any{"shop", "florin"},
		},
	} {
		crd, err := CRD(name)
		if err != nil {
			t.Fatal(err)
		}
		convertor, err := tableconvertor.New(crd.Spec.Versions[0].AdditionalPrinterColumns)
		if err != nil {
			t.Fatal(err)
		}
		for object, want := range map[string][]any{c.object: c.want, `{metadata: {name: empty}}`: append([]any{"empty"}, make([]any, len(c.want)-1)...)} {
			table, err := convertor.ConvertToTable(t.Context(), fixtures.Object(t, object), nil)
			if err != nil {
				t.Fatal(err)
			}
			if cells := table.Rows[0].Cells; !slices.Equal(cells[:len(want)], want) {
				t.Errorf("%s: want %v, got %v", name, want, cells)
			}
		}
		for _, column := range crd.Spec.Versions[0].AdditionalPrinterColumns {
			if strings.Contains(column.JSONPath, "[0]") && !strings.HasPrefix(column.Name, "First ") {
				t.Errorf("%s: the column %s shows a first item", name, column.Name)
			}
		}
	}
}

func TestShortNamesAreDifferent(t *testing.T) {
	kinds := map[string]string{}
	for name := range crds() {
		crd, err := CRD(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, short := range crd.Spec.Names.ShortNames {
			if other, ok := kinds[short]; ok {
				t.Errorf("%s and %s have the short name %s", name, other, short)
			}
			kinds[short] = name
		}
	}
	if kinds["loc"] == "" || kinds["cust"] == "" {
		t.Errorf("the short names are %v", kinds)
	}
}

// The test converts the schemas for kcp back to CRDs and validates them in the same way.
func TestAPIResourceSchemasAreAcceptedByAnAPIServer(t *testing.T) {
	for name, schema := range apiResourceSchemas() {
		t.Run(name, func(t *testing.T) {
			fixtures.RequireAcceptableCRD(t, fixtures.CRDOf(t, schema))
		})
	}
}

func TestAccessors(t *testing.T) {
	var names []string
	for _, schema := range slices.Concat(MailboxSchemas(), InventorySchemas(), WorkloadSchemas()) {
		names = append(names, schema.Spec.Names.Kind)
	}
	if !slices.Equal(names, []string{"SyncerConfig", "EdgeSyncConfig", "SyncRules", "SyncTarget", "Location", "EdgePlacement", "SinglePlacementSlice", "Customizer", "PlacementRevision", "SyncRules"}) {
		t.Errorf("wanted the kinds of mailboxes, of inventories and of workload workspaces, got %v", names)
	}
	if kind := PublishedResourceCRD().Spec.Names.Kind; kind != "PublishedResource" {
		t.Errorf("wanted the definition of PublishedResource, got %s", kind)
	}
	if _, err := CRD("pods.core"); err == nil {
		t.Error("wanted an error for a kind that is not the project's own")
	}

	MailboxSchemas()[0].Name = "changed by a caller"
	if MailboxSchemas()[0].Name == "changed by a caller" {
		t.Error("callers share one object, wanted copies")
	}
}
