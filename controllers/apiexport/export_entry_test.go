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

package apiexport

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
)

// entryFor returns a claim on "resource" or "resource.group", or an export entry if a schema is named.
func entryFor(resource, schemaName string) exportEntry {
	return exportEntry{GroupResource: schema.ParseGroupResource(resource), schema: schemaName}
}

// mergeAll adds the entries to the spec in order.
func mergeAll(spec *apisv1alpha2.APIExportSpec, entries []exportEntry) {
	for _, entry := range entries {
		addEntry(spec, entry)
	}
}

func claim(resource string, verbs ...string) apisv1alpha2.PermissionClaim {
	parsed := schema.ParseGroupResource(resource)
	return apisv1alpha2.PermissionClaim{GroupResource: apisv1alpha2.GroupResource{Group: parsed.Group, Resource: parsed.Resource}, Verbs: verbs}
}

func exportOf(resource, schemaName string) apisv1alpha2.ResourceSchema {
	parsed := schema.ParseGroupResource(resource)
	return apisv1alpha2.ResourceSchema{
		Group: parsed.Group, Name: parsed.Resource, Schema: schemaName,
		Storage: apisv1alpha2.ResourceSchemaStorage{CRD: &apisv1alpha2.ResourceSchemaStorageCRD{}},
	}
}

func TestMerge(t *testing.T) {
	foreignClaim := claim("leases.coordination.k8s.io", "get", "list")
	foreignClaim.IdentityHash = "abc"
	foreignExport := exportOf("widgets.example.com", "v1.widgets.example.com")
	foreignExport.Storage = apisv1alpha2.ResourceSchemaStorage{Virtual: &apisv1alpha2.ResourceSchemaStorageVirtual{IdentityHash: "abc"}}

	type spec = apisv1alpha2.APIExportSpec
	type exports = []apisv1alpha2.ResourceSchema
	type claims = []apisv1alpha2.PermissionClaim
	for name, test := range map[string]struct {
		before  spec
		entries []exportEntry
		want    spec
	}{
		"nothing":  {spec{}, nil, spec{}},
		"a claim":  {spec{}, []exportEntry{entryFor("configmaps", "")}, spec{PermissionClaims: claims{claim("configmaps", "*")}}},
		"a schema": {spec{}, []exportEntry{entryFor("deployments.apps", "a.deployments.apps")}, spec{Resources: exports{exportOf("deployments.apps", "a.deployments.apps")}}},
		"an existing claim": {
			spec{PermissionClaims: claims{claim("configmaps", "*")}}, []exportEntry{entryFor("configmaps", "")},
			spec{PermissionClaims: claims{claim("configmaps", "*")}},
		},
		"an existing schema": {
			spec{Resources: exports{exportOf("deployments.apps", "a")}}, []exportEntry{entryFor("deployments.apps", "a")},
			spec{Resources: exports{exportOf("deployments.apps", "a")}},
		},
		"a new schema": {
			spec{Resources: exports{exportOf("deployments.apps", "a"), exportOf("jobs.batch", "b")}}, []exportEntry{entryFor("deployments.apps", "c")},
			spec{Resources: exports{exportOf("deployments.apps", "c"), exportOf("jobs.batch", "b")}},
		},
		"one name in two groups": {
			spec{Resources: exports{exportOf("deployments.apps", "a")}, PermissionClaims: claims{claim("events", "*")}},
			[]exportEntry{entryFor("deployments.example.com", "b"), entryFor("events.events.k8s.io", "")},
			spec{
				Resources:        exports{exportOf("deployments.apps", "a"), exportOf("deployments.example.com", "b")},
				PermissionClaims: claims{claim("events", "*"), claim("events.events.k8s.io", "*")},
			},
		},
		"entries of other owners, and unpublished entries": {
			spec{Resources: exports{foreignExport, exportOf("jobs.batch", "b")}, PermissionClaims: claims{foreignClaim, claim("secrets", "*")}},
			[]exportEntry{entryFor("configmaps", ""), entryFor("deployments.apps", "a")},
			spec{
				Resources:        exports{foreignExport, exportOf("jobs.batch", "b"), exportOf("deployments.apps", "a")},
				PermissionClaims: claims{foreignClaim, claim("secrets", "*"), claim("configmaps", "*")},
			},
		},
		"a claim of another export": {
			spec{PermissionClaims: claims{claim("configmaps", "*")}}, []exportEntry{{GroupResource: schema.ParseGroupResource("as.example.com"), identity: "abc"}},
			spec{PermissionClaims: claims{claim("configmaps", "*"), {
				GroupResource: apisv1alpha2.GroupResource{Group: "example.com", Resource: "as"}, Verbs: []string{"*"}, IdentityHash: "abc",
			}}},
		},
		"a new schema keeps where objects are stored": {
			spec{Resources: exports{foreignExport}}, []exportEntry{entryFor("widgets.example.com", "new")},
			spec{Resources: exports{{Group: "example.com", Name: "widgets", Schema: "new", Storage: foreignExport.Storage}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := *test.before.DeepCopy()
			mergeAll(&got, test.entries)
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("want %+v\ngot  %+v", test.want, got)
			}
		})
	}
}

func TestConflict(t *testing.T) {
	foreign := func(identity string) exportEntry {
		return exportEntry{GroupResource: schema.ParseGroupResource("as.example.com"), identity: identity}
	}
	spec := apisv1alpha2.APIExportSpec{
		Resources:        []apisv1alpha2.ResourceSchema{exportOf("deployments.apps", "a.deployments.apps")},
		PermissionClaims: []apisv1alpha2.PermissionClaim{claim("configmaps", "get"), claim("deployments.apps", "*")},
	}
	addEntry(&spec, foreign("abc"))
	for name, test := range map[string]struct {
		entry exportEntry
		want  string
	}{
		"a new claim":                         {entryFor("secrets", ""), ""},
		"a new schema":                        {entryFor("jobs.batch", "a"), ""},
		"the same claim":                      {entryFor("configmaps", ""), ""},
		"another schema":                      {entryFor("deployments.apps", "b"), ""},
		"the name in another group":           {entryFor("as.apps", "b"), ""},
		"the same foreign claim":              {foreign("abc"), ""},
		"a claim of yet another export":       {foreign("def"), "identity \"abc\""},
		"a claim of kcp's on another's":       {foreign(""), "identity \"abc\""},
		"a claim on an exported API":          {entryFor("deployments.apps", ""), "schema a.deployments.apps"},
		"a schema for a claimed API":          {entryFor("configmaps", "a"), "would hide"},
		"a schema for another provider's API": {entryFor("as.example.com", "a"), "would hide"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := conflictMessage(&spec, test.entry); (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("want %q, got %q", test.want, got)
			}
		})
	}
}

// Merging removes and moves no entry of the export, adds each published entry once, and changes nothing the second time.
func TestMergeOfAnything(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // repeatable exports
	for range 3000 {
		previous, entries := randomExport(random), randomEntries(random)
		after := *previous.DeepCopy()
		mergeAll(&after, entries)
		checkKept(t, previous, after, entries)
		for _, entry := range entries {
			if found := count(after, entry); found != 1 {
				t.Fatalf("the export contains %+v %d times: %+v", entry, found, after)
			}
		}
		requeueAfter := *after.DeepCopy()
		mergeAll(&requeueAfter, entries)
		if !reflect.DeepEqual(requeueAfter, after) {
			t.Fatalf("first %+v\nthen  %+v", after, requeueAfter)
		}
	}
}

var someResources = []string{"configmaps", "secrets", "deployments.apps", "jobs.batch", "configmaps.example.com"}

// randomExport has each of some resources as a claim, as an export, or not at all.
func randomExport(random *rand.Rand) (spec apisv1alpha2.APIExportSpec) {
	for _, resource := range someResources {
		switch random.IntN(4) {
		case 0:
			spec.PermissionClaims = append(spec.PermissionClaims, claim(resource, "get"))
		case 1:
			spec.Resources = append(spec.Resources, exportOf(resource, "old."+resource))
		}
	}
	return spec
}

func randomEntries(random *rand.Rand) (entries []exportEntry) {
	for _, i := range random.Perm(len(someResources)) {
		switch random.IntN(3) {
		case 0:
			entries = append(entries, entryFor(someResources[i], ""))
		case 1:
			entries = append(entries, entryFor(someResources[i], "new."+someResources[i]))
		}
	}
	return entries
}

// checkKept fails if an entry of the export changed, other than the schemas that are published now.
func checkKept(t *testing.T, previous, after apisv1alpha2.APIExportSpec, entries []exportEntry) {
	t.Helper()
	if kept := after.PermissionClaims[:len(previous.PermissionClaims)]; !slices.EqualFunc(kept, previous.PermissionClaims, func(a, b apisv1alpha2.PermissionClaim) bool { return reflect.DeepEqual(a, b) }) {
		t.Fatalf("the claims %+v became %+v", previous.PermissionClaims, kept)
	}
	for i, want := range previous.Resources {
		for _, entry := range entries {
			if entry.schema != "" && entry.Group == want.Group && entry.Resource == want.Name {
				want.Schema = entry.schema
			}
		}
		if got := after.Resources[i]; !reflect.DeepEqual(got, want) {
			t.Fatalf("want %+v, got %+v", want, got)
		}
	}
}

// count returns how many times the export has the entry.
func count(spec apisv1alpha2.APIExportSpec, entry exportEntry) (found int) {
	if entry.schema == "" {
		for _, claim := range spec.PermissionClaims {
			if claim.Group == entry.Group && claim.Resource == entry.Resource {
				found++
			}
		}
		return found
	}
	for _, exported := range spec.Resources {
		if exported.Group == entry.Group && exported.Name == entry.Resource && exported.Schema == entry.schema {
			found++
		}
	}
	return found
}

func TestOldestFirst(t *testing.T) {
	resource := func(name string, plan int64) synchubv1alpha1.PublishedResource {
		return synchubv1alpha1.PublishedResource{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(plan, 0))}}
	}
	all := []synchubv1alpha1.PublishedResource{resource("b", 2), resource("c", 1), resource("a", 2), resource("d", 1)}
	for range 2 {
		slices.SortFunc(all, publishedresource.OldestFirst)
		var names []string
		for _, resource := range all {
			names = append(names, resource.Name)
		}
		if got := strings.Join(names, " "); got != "c d a b" {
			t.Errorf("got %s", got)
		}
		slices.Reverse(all)
	}
}

// A replica that is not the leader publishes exactly the exported entries.
func TestMissingEntries(t *testing.T) {
	claimed := exportEntry{GroupResource: schema.GroupResource{Resource: "configmaps"}}
	exported := exportEntry{GroupResource: schema.GroupResource{Group: "apps", Resource: "deployments"}, schema: "v1.deployments.apps"}
	changed, missing := exported, exportEntry{GroupResource: schema.GroupResource{Resource: "secrets"}}
	changed.schema = "v2.deployments.apps"
	spec := &apisv1alpha2.APIExportSpec{}
	addEntry(spec, claimed)
	addEntry(spec, exported)
	before := spec.DeepCopy()
	got := missingEntries(spec, []exportEntry{claimed, exported, changed, missing})
	if len(got) != 2 || got[changed] == nil || got[missing] == nil {
		t.Errorf("got %v", got)
	}
	if !reflect.DeepEqual(spec, before) {
		t.Error("the export was changed")
	}
	for _, entry := range []exportEntry{claimed, exported, changed, missing} {
		with := spec.DeepCopy()
		if addEntry(with, entry); hasEntry(spec, entry) != reflect.DeepEqual(spec, with) {
			t.Errorf("hasEntry(%v) does not agree with addEntry", entry)
		}
	}
}
