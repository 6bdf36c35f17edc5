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

package describe

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/placed"
	"github.com/synchub-dev/synchub/controllers/plan/tenancy"
)

// describedObjects returns the table of two objects on some clusters. The first object is healthy; the second one fails on cluster-0.
func describedObjects(t *testing.T, clusters, counted, limit int) string {
	t.Helper()
	configMaps := schema.GroupResource{Resource: "configmaps"}
	objects := []placed.Object{
		{GroupResource: configMaps, NamespacedName: types.NamespacedName{Namespace: "shop", Name: "a"}},
		{GroupResource: configMaps, NamespacedName: types.NamespacedName{Namespace: "shop", Name: "b"}},
	}
	placement, slice := &edgev2alpha1.EdgePlacement{}, &edgev2alpha1.SinglePlacementSlice{}
	for i := range clusters {
		slice.Destinations = append(slice.Destinations, edgev2alpha1.SinglePlacement{SyncTargetName: fmt.Sprintf("cluster-%d", i)})
	}
	placement.Status = edgev2alpha1.EdgePlacementStatus{
		Selected: int64(counted), Destinations: int32(clusters), Healthy: int64(counted*clusters - 1), Failed: 1, //nolint:gosec // at most nine clusters
		Failures: []edgev2alpha1.PlacementPair{{
			ObjectFailure: edgev2alpha1.ObjectFailure{Resource: "configmaps", Namespace: "shop", Name: "b", Reason: "Conflict", Message: "theirs\x1b[2J"}, SyncTarget: "cluster-0",
		}},
	}
	var out bytes.Buffer
	description := &description{now: time.Now()}
	description.placedObjects(placement, placed.NewView(placement, slice), objects, limit)
	description.placementPairs("Failures", placement.Status.Failures)
	columns := cli.NewColumns(&out)
	description.print(columns)
	if err := columns.Flush(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(out.String()), " ")
}

func TestDescribePlacedObjects(t *testing.T) {
	for name, test := range map[string]struct {
		clusters, counted, limit int
		want                     string
	}{
		"a column for each cluster": {2, 2, 0, "Object cluster-0 cluster-1 configmaps shop/b Conflict Healthy configmaps shop/a Healthy Healthy"},
		"counts for many clusters":  {9, 2, 0, "Object Clusters configmaps shop/b 1 Conflict, 8 Healthy configmaps shop/a 9 Healthy"},
		"a limit":                   {2, 2, 1, "configmaps shop/b Conflict Healthy and 1 more object"},
		"an object not counted yet": {2, 1, 0, "selects 2 objects, and the hub has counted 1. Objects: Object cluster-0 cluster-1 configmaps shop/b Conflict Unknown configmaps shop/a Unknown Unknown"},
		"no cluster":                {0, 2, 0, "Failures: Object Cluster Reason Message configmaps shop/b cluster-0 Conflict theirs"},
	} {
		got := describedObjects(t, test.clusters, test.counted, test.limit)
		if !strings.Contains(got, test.want) || strings.Contains(got, "\x1b") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestDescribeExcludedObjects(t *testing.T) {
	var out bytes.Buffer
	description := &description{now: time.Now()}
	status := &edgev2alpha1.EdgePlacementStatus{Selected: 3, Excluded: 13, ExcludedObjects: []edgev2alpha1.ObjectFailure{
		{Group: "rbac.authorization.k8s.io", Resource: "clusterroles", Name: "reader", Reason: "NotSelected", Message: "it meets no test"},
	}}
	description.placement(&edgev2alpha1.EdgePlacement{Status: *status})
	description.excludedObjects(status)
	columns := cli.NewColumns(&out)
	description.print(columns)
	if err := columns.Flush(); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{"Objects: 3 selected, 13 not placed", "Not Placed: Object Reason Message clusterroles.rbac.authorization.k8s.io reader NotSelected it meets no test and 12 more objects"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
}

// The result of spec.aggregation has a line for each field, and its texts come from clusters.
func TestDescribeAggregation(t *testing.T) {
	var out bytes.Buffer
	description := &description{now: time.Now()}
	description.aggregation(&runtime.RawExtension{Raw: []byte("{\"running\":4,\"notRunningOn\":[\"florin\",\"\u009b2J\"]}")})
	description.aggregation(nil)
	columns := cli.NewColumns(&out)
	description.print(columns)
	if err := columns.Flush(); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(strings.Fields(out.String()), " ")
	if !strings.HasPrefix(got, `Aggregation: Field Value notRunningOn ["florin",`) || !strings.HasSuffix(got, "running 4") || strings.ContainsRune(got, '\u009b') {
		t.Errorf("got %q", got)
	}
}

// The description names the namespaces on a cluster where each workspace has its own.
func TestDescribeNamespaces(t *testing.T) {
	var out bytes.Buffer
	description := &description{now: time.Now()}
	placement := &edgev2alpha1.EdgePlacement{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{logicalcluster.AnnotationKey: "ws"}}}
	slice := &edgev2alpha1.SinglePlacementSlice{Destinations: []edgev2alpha1.SinglePlacement{
		{SyncTargetName: "florin", NamespaceTemplate: "{namespace}-{hash}"}, {SyncTargetName: "guilder"},
	}}
	objects := []placed.Object{{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "a"}}, {NamespacedName: types.NamespacedName{Name: "b"}}}
	description.namespaces(placement, slice, objects)
	description.namespaces(placement, nil, objects)
	description.placementPairs("Failures", []edgev2alpha1.PlacementPair{{SyncTarget: "florin", ClusterNamespace: "shop-x"}})
	columns := cli.NewColumns(&out)
	description.print(columns)
	if err := columns.Flush(); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(strings.Fields(out.String()), " ")
	want := "Namespaces: Namespace Cluster Name There shop florin shop-" + tenancy.WorkspaceHash("ws") + " Failures:"
	if !strings.Contains(got, want) || strings.Contains(got, "guilder") || !strings.Contains(got, "florin (shop-x)") {
		t.Errorf("%q", got)
	}
}
