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

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/diff"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

const (
	fleetClusters, fleetObjects = 100, 100
	// fleetLimit is the time in which the answer must be there.
	fleetLimit = 30 * time.Second
)

// BenchmarkDiffOfAFleet asks what 100 new objects would be on 100 clusters. One API server is kcp and all clusters.
func BenchmarkDiffOfAFleet(b *testing.B) {
	file := startFleet(b)
	for b.Loop() {
		var out, errs bytes.Buffer
		start := time.Now()
		status := run(b.Context(), []string{"diff", "-f", file, "-o", "json"}, genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errs})
		elapsed := time.Since(start)
		var report diff.Report
		if err := json.Unmarshal(out.Bytes(), &report); err != nil {
			b.Fatalf("%v in %s%s", err, out.String(), errs.String())
		}
		if status != 1 || len(report.Changes) != fleetClusters*fleetObjects || len(report.Problems) > 0 {
			b.Fatalf("got exit status %d, %d changes, problems %+v", status, len(report.Changes), report.Problems)
		}
		if elapsed > fleetLimit {
			b.Errorf("it took %v", elapsed)
		}
	}
}

// startFleet starts the server, with a workload workspace and its clusters, and returns a file with the objects.
func startFleet(b *testing.B) (file string) {
	b.Helper()
	server := suite.StartTarget(b, "fleet", servers.TargetOptions{})
	admin, err := cli.ClientOf(server.Config)
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"synctargets", "locations", "edgeplacements", "singleplacementslices", "syncrules"} {
		suite.Apply(b, server.Config, string(suite.ReadFile(b, "../../apis/schemas/crds/edge.kubestellar.io_"+name+".yaml")))
	}
	suite.WaitUntil(b, "the APIs are served", func() bool {
		return admin.List(b.Context(), &edgev2alpha1.SyncTargetList{}) == nil && admin.List(b.Context(), &edgev2alpha1.SyncRulesList{}) == nil &&
			admin.List(b.Context(), &edgev2alpha1.EdgePlacementList{}) == nil && admin.List(b.Context(), &edgev2alpha1.SinglePlacementSliceList{}) == nil &&
			admin.List(b.Context(), &edgev2alpha1.LocationList{}) == nil
	})
	create := func(object client.Object) {
		if err := admin.Create(b.Context(), object); err != nil {
			b.Fatal(err)
		}
	}
	create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bakery"}})
	rules := &edgev2alpha1.SyncRules{ObjectMeta: metav1.ObjectMeta{Name: edgev2alpha1.SyncRulesName, Annotations: map[string]string{"kcp.io/cluster": "work"}}}
	create(rules)
	rules.Status = syncRules(b, renamed)
	if err := admin.Status().Update(b.Context(), rules); err != nil {
		b.Fatal(err)
	}
	kubeconfig, err := os.ReadFile(server.Kubeconfig)
	if err != nil {
		b.Fatal(err)
	}
	placement := &edgev2alpha1.EdgePlacement{ObjectMeta: metav1.ObjectMeta{Name: "bakery"}}
	placement.Spec.LocationSelectors = []metav1.LabelSelector{{}}
	placement.Spec.Downsync = []edgev2alpha1.DownsyncObjectTest{{Namespaces: []string{"bakery"}}}
	create(placement)
	slice := &edgev2alpha1.SinglePlacementSlice{ObjectMeta: metav1.ObjectMeta{Name: "bakery"}}
	for i := range fleetClusters {
		syncTarget := &edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("ducat%d", i)}}
		create(syncTarget)
		create(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: syncTarget.Name + "-kubeconfig", Labels: map[string]string{edgev2alpha1.LabelCredential: edgev2alpha1.CredentialKubeconfig}},
			Data:       map[string][]byte{"kubeconfig": kubeconfig},
		})
		slice.Destinations = append(slice.Destinations, edgev2alpha1.SinglePlacement{Cluster: "fleet", LocationName: "all", SyncTargetName: syncTarget.Name, SyncTargetUID: syncTarget.UID})
	}
	create(slice)
	useServer(b, kcpDouble(b, server.Config, "work", "fleet")+"/clusters/work")
	return manifestsOfFleet(b)
}

// manifestsOfFleet writes a file with the new objects.
func manifestsOfFleet(b *testing.B) (file string) {
	b.Helper()
	var manifests strings.Builder
	for i := range fleetObjects {
		fmt.Fprintf(&manifests, "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: settings-%d, namespace: bakery}, data: {a: b}}\n", i)
	}
	return write(b, map[string]string{"bakery.yaml": manifests.String()})[0]
}
