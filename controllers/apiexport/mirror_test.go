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
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
)

// specOf returns the spec of an export with entries: "resource.group=schema" is a schema, "resource.group@identity" a claim.
func specOf(entries ...string) *apisv1alpha2.APIExportSpec {
	spec := &apisv1alpha2.APIExportSpec{}
	for _, entry := range entries {
		if resource, schemaName, ok := strings.Cut(entry, "="); ok {
			spec.Resources = append(spec.Resources, exportOf(resource, schemaName))
			continue
		}
		resource, identity, _ := strings.Cut(entry, "@")
		claimed := claim(resource, "*")
		claimed.IdentityHash = identity
		spec.PermissionClaims = append(spec.PermissionClaims, claimed)
	}
	return spec
}

func TestMirrorSpec(t *testing.T) {
	// Both exports of a provider workspace without published resources.
	mailbox := []string{"syncerconfigs.edge.kubestellar.io=s1", "edgesyncconfigs.edge.kubestellar.io=s2", "namespaces", "events", "logicalclusters.core.kcp.io"}
	workload := []string{"edgeplacements.edge.kubestellar.io=s3", "singleplacementslices.edge.kubestellar.io=s4", "namespaces", "events", "logicalclusters.core.kcp.io"}
	for name, test := range map[string]struct{ mailbox, workload, want []string }{
		"nothing is published": {},
		"published": {
			mailbox: []string{"as.a.io=a1", "configmaps", "fs.f.io@" + identity},
			want:    []string{"as.a.io=wa1", "configmaps", "fs.f.io@" + identity},
		},
		"some are there already, in another order": {
			mailbox:  []string{"as.a.io=a1", "bs.b.io=b1", "configmaps", "secrets"},
			workload: []string{"secrets", "bs.b.io=wb1"},
			want:     []string{"bs.b.io=wb1", "as.a.io=wa1", "secrets", "configmaps"},
		},
		"another schema":              {mailbox: []string{"as.a.io=a2"}, workload: []string{"as.a.io=wa1"}, want: []string{"as.a.io=wa2"}},
		"another provider":            {mailbox: []string{"fs.f.io@" + identity}, workload: []string{"fs.f.io@other"}, want: []string{"fs.f.io@" + identity}},
		"withdrawn":                   {workload: []string{"as.a.io=wa1", "configmaps", "fs.f.io@" + identity}},
		"one of two is withdrawn":     {mailbox: []string{"configmaps"}, workload: []string{"as.a.io=wa1", "configmaps"}, want: []string{"configmaps"}},
		"a claim becomes a schema":    {mailbox: []string{"as.a.io=a1"}, workload: []string{"as.a.io"}, want: []string{"as.a.io=wa1"}},
		"a schema becomes a claim":    {mailbox: []string{"as.a.io"}, workload: []string{"as.a.io=wa1"}, want: []string{"as.a.io"}},
		"the same name in two groups": {mailbox: []string{"as.a.io=a1"}, workload: []string{"as.b.io=wb1"}, want: []string{"as.a.io=wa1"}},
		"twins": {
			mailbox: []string{"roles.denatured.synchub.dev=v1.roles.denatured.synchub.dev", "as.a.io=a1", "limitranges.denatured.synchub.dev=v2.limitranges.denatured.synchub.dev"},
			want:    []string{"as.a.io=wa1", "limitranges=wv2.limitranges.core", "roles.rbac.authorization.k8s.io"},
		},
		"a twin with a new schema": {
			mailbox:  []string{"limitranges.denatured.synchub.dev=v2.limitranges.denatured.synchub.dev"},
			workload: []string{"limitranges=wv1.limitranges.core"}, want: []string{"limitranges=wv2.limitranges.core"},
		},
		"twins beside their originals": {
			mailbox: []string{"limitranges.denatured.synchub.dev=v1.limitranges.denatured.synchub.dev", "limitranges=l1", "roles.denatured.synchub.dev=v1.roles.denatured.synchub.dev", "roles.rbac.authorization.k8s.io"},
			want:    []string{"limitranges=wl1", "roles.rbac.authorization.k8s.io"},
		},
		"the twin is withdrawn": {workload: []string{"limitranges=wv1.limitranges.core", "roles.rbac.authorization.k8s.io"}},
		// Kinds of the hub are never mirrored, no matter who added them.
		"claims on kinds of the hub": {mailbox: []string{"synctargets.edge.kubestellar.io@" + identity}},
		"another kind of the hub":    {workload: []string{"customizers.edge.kubestellar.io=c1"}, want: []string{"customizers.edge.kubestellar.io=c1"}},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := specOf(append(slices.Clone(mailbox), test.mailbox...)...), specOf(append(slices.Clone(workload), test.workload...)...)
			before := []*apisv1alpha2.APIExportSpec{from.DeepCopy(), to.DeepCopy()}
			want := specOf(append(slices.Clone(workload), test.want...)...)
			got := mirrorSpec(withOriginals(from), to, nil)
			if !reflect.DeepEqual(got.Resources, want.Resources) || !reflect.DeepEqual(got.PermissionClaims, want.PermissionClaims) {
				t.Errorf("wanted %+v, got %+v", want, got)
			}
			if !reflect.DeepEqual([]*apisv1alpha2.APIExportSpec{from, to}, before) {
				t.Error("the mirror changed its arguments")
			}
		})
	}
}

// The remaining fields of a claim come from the mailbox export, and the remaining fields of the spec stay.
func TestMirrorKeepsTheRest(t *testing.T) {
	mailbox, workload := specOf("configmaps", "as.a.io=a1"), specOf("configmaps")
	mailbox.PermissionClaims[0].Verbs = []string{"get"}
	mailbox.MaximalPermissionPolicy = &apisv1alpha2.MaximalPermissionPolicy{}
	workload.Identity = &apisv1alpha2.Identity{}
	got := mirrorSpec(mailbox, workload, nil)
	if got.MaximalPermissionPolicy != nil || got.Identity == nil {
		t.Errorf("the mirror changed more than resources and claims: %+v", got)
	}
	if !slices.Equal(got.PermissionClaims[0].Verbs, []string{"get"}) || got.Resources[0].Storage.CRD == nil {
		t.Errorf("wanted the entries of the mailbox export, got %+v", got)
	}
}

// A base claim that a user removed from the mailbox export stays in the workload export.
func TestMirrorKeepsBaseClaims(t *testing.T) {
	workload := specOf("namespaces", "events", "logicalclusters.core.kcp.io")
	if got := mirrorSpec(specOf(), workload, nil); !reflect.DeepEqual(got, workload) {
		t.Errorf("wanted %+v, got %+v", workload, got)
	}
}

// A mirror of a mirror changes nothing. Both exports agree on all resources except the hub's own. The mirror
// removes entries only if removesResource returns true.
func TestMirrorProperties(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test needs no secret numbers
	for range 2000 {
		mailbox, workload := randomSpec(random), randomSpec(random)
		mirrored := mirrorSpec(mailbox, workload, nil)
		if again := mirrorSpec(mailbox, mirrored, nil); !reflect.DeepEqual(again, mirrored) {
			t.Fatalf("from %+v to %+v: once %+v, twice %+v", mailbox, workload, mirrored, again)
		}
		removes := false
		for _, resource := range mirroredResources(mailbox, workload, mirrored) {
			if !isMirrored(mailbox, mirrored, resource) {
				t.Fatalf("%s differs: %+v and %+v", resource, mailbox, mirrored)
			}
			removes = removes || removesEntry(workload, mirrored, resource)
		}
		if got := removesResource(mailbox, workload); got != removes {
			t.Fatalf("from %+v to %+v: removesResource is %t", mailbox, workload, got)
		}
		for _, own := range []string{"namespaces", "synctargets.edge.kubestellar.io"} {
			if !sameEntries(workload, mirrored, schema.ParseGroupResource(own)) {
				t.Fatalf("%s must not be mirrored: %+v became %+v", own, workload, mirrored)
			}
		}
	}
}

func randomSpec(random *rand.Rand) *apisv1alpha2.APIExportSpec {
	var entries []string
	for _, resource := range []string{"as.a.io", "bs.b.io", "configmaps", "namespaces", "synctargets.edge.kubestellar.io"} {
		entries = append(entries, [][]string{nil, {resource}, {resource + "@" + identity}, {resource + "=s1"}, {resource + "=s2"}}[random.IntN(5)]...)
	}
	random.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
	return specOf(entries...)
}

// sameEntries reports whether two exports export and claim a resource alike.
func sameEntries(one, other *apisv1alpha2.APIExportSpec, resource schema.GroupResource) bool {
	return reflect.DeepEqual(findResourceSchema(one, resource), findResourceSchema(other, resource)) && reflect.DeepEqual(findClaim(one, resource), findClaim(other, resource))
}

// isMirrored reports whether the workload export has the copy of the schema of the mailbox export, and the same claim.
func isMirrored(mailbox, workload *apisv1alpha2.APIExportSpec, resource schema.GroupResource) bool {
	wanted := findResourceSchema(mailbox, resource)
	if wanted != nil {
		copied := withCopy(wanted)
		wanted = &copied
	}
	return reflect.DeepEqual(wanted, findResourceSchema(workload, resource)) && reflect.DeepEqual(findClaim(mailbox, resource), findClaim(workload, resource))
}

// removesEntry reports whether the schema or the claim of a resource is in the first spec only.
func removesEntry(before, after *apisv1alpha2.APIExportSpec, resource schema.GroupResource) bool {
	return findResourceSchema(before, resource) != nil && findResourceSchema(after, resource) == nil || findClaim(before, resource) != nil && findClaim(after, resource) == nil
}

func TestNotPlaceable(t *testing.T) {
	w := newFixture(t)
	primary := resource(t, "a", "s-as.a.io", "{resource: {group: a.io, resource: as}, related: [{identifier: secret, origin: Target, resource: {version: v1, resource: secrets}, object: {template: x}}]}")
	other := resource(t, "c", "", nativeSpec)
	made, err := w.planner.newPlan(t.Context(), []synchubv1alpha1.PublishedResource{primary, other}, &w.export)
	if err != nil {
		t.Fatal(err)
	}
	message := func(i int, known bool) string {
		made.resources[i].isMirrorKnown = made.resources[i].isMirrorKnown && known
		conditions := []metav1.Condition{{Type: synchubv1alpha1.ConditionNotPlaceable, Status: metav1.ConditionTrue, Reason: "Previous", Message: "previous"}}
		made.resources[i].setNotPlaceableCondition(&conditions)
		condition := meta.FindStatusCondition(conditions, synchubv1alpha1.ConditionNotPlaceable)
		if condition == nil {
			return ""
		}
		return string(condition.Status) + " " + condition.Reason + ": " + condition.Message
	}
	err = made.markNotPlaceable(map[schema.GroupResource]error{
		{Group: "a.io", Resource: "as"}:    errors.New("no\nas"),
		{Resource: "secrets"}:              errors.New("no secrets"),
		{Group: "left.io", Resource: "ls"}: errors.New("no ls"),
	})
	if err == nil || !strings.Contains(err.Error(), "kcp refuses ls.left.io in the workload export as it is in the mailbox export: no ls") || strings.Contains(err.Error(), "secrets") {
		t.Errorf("wanted an error about the resource that no PublishedResource publishes, got %v", err)
	}
	want := "True Refused: kcp refuses the schema s-as.a.io in the workload export: no; as; kcp refuses the claim on secrets in the workload export: no secrets"
	if got := message(0, true); got != want {
		t.Errorf("wanted %q, got %q", want, got)
	}
	if got := message(1, true); got != "" {
		t.Errorf("wanted no condition where nothing is refused, got %q", got)
	}
	if got := message(1, false); got != "True Previous: previous" {
		t.Errorf("wanted the previous condition while nothing is known, got %q", got)
	}
	// Mailboxes still have the API.
	if exported, ready := made.resources[0].conditions(); exported.Status != metav1.ConditionTrue || ready.Status != metav1.ConditionTrue {
		t.Errorf("got %+v and %+v", exported, ready)
	}
}
