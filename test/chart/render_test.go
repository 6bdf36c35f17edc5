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

package chart

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/synchub-dev/synchub/test/fixtures"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/chart"
)

const (
	namespace     = "hub"
	kubeVersion   = "v1.35.4"
	requiredValue = "kcp.kubeconfigSecret.name"
	required      = requiredValue + "=synchub-kcp"
)

// paths returns the helm program, the directory of the chart, and the root of the repository.
func paths(t *testing.T) (helm chart.Helm, chartDir, root string) {
	t.Helper()
	root, err := framework.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	helm.Path = filepath.Join(root, "bin", "helm")
	if _, err := os.Stat(helm.Path); err != nil {
		t.Fatalf("helm is not built, run `make tools`: %v", err)
	}
	return helm, filepath.Join(root, "charts", "synchub"), root
}

// template renders the chart for a cluster without the kind PublishedResource, unless args contain --api-versions.
func template(t *testing.T, args ...string) (string, error) {
	t.Helper()
	helm, chartDir, _ := paths(t)
	return helm.Run(t.Context(), append([]string{
		"template", chart.Release, chartDir, "--namespace", namespace, "--kube-version", kubeVersion,
	}, args...)...)
}

// objects returns the rendered objects by "<kind>/<name>".
func objects(t *testing.T, args ...string) map[string]*unstructured.Unstructured {
	t.Helper()
	rendered, err := template(t, append([]string{"--set", required}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*unstructured.Unstructured{}
	for document := range strings.SplitSeq(rendered, "\n---\n") {
		object := fixtures.Object(t, document)
		if len(object.Object) == 0 {
			continue
		}
		key := object.GetKind() + "/" + object.GetName()
		if found[key] != nil {
			t.Errorf("%s was rendered twice", key)
		}
		found[key] = object
	}
	return found
}

func decode(t *testing.T, object *unstructured.Unstructured, into any) {
	t.Helper()
	if object == nil {
		t.Fatalf("the %T was not rendered", into)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, into, true); err != nil {
		t.Fatalf("%s %s has a field that its kind does not know: %v", object.GetKind(), object.GetName(), err)
	}
}

func TestLintIsClean(t *testing.T) {
	helm, chartDir, _ := paths(t)
	for _, args := range [][]string{{}, {"--values", "testdata/all-values.yaml"}} {
		if output, err := helm.Run(t.Context(), append([]string{"lint", "--strict", "--kube-version", kubeVersion, chartDir}, args...)...); err != nil {
			t.Errorf("lint %v: %v\n%s", args, err, output)
		}
	}
}

func TestDefaultsRenderExactlyTheseObjects(t *testing.T) {
	want := []string{
		"ClusterRole/synchub", "ClusterRoleBinding/synchub",
		"CustomResourceDefinition/publishedresources.synchub.dev", "Deployment/synchub", "Job/synchub-wait", "PodDisruptionBudget/synchub",
		"Role/synchub", "Role/synchub-events", "RoleBinding/synchub", "RoleBinding/synchub-events", "Service/synchub-metrics", "ServiceAccount/synchub", "ServiceAccount/synchub-wait",
	}
	for _, name := range defaults {
		want = append(want, "PublishedResource/"+name)
	}
	slices.Sort(want)
	var got []string
	for key := range objects(t) {
		got = append(got, key)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("rendered\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// An autoscaler sets the number of hubs, which the Deployment must not set then.
func TestReplicas(t *testing.T) {
	for name, test := range map[string]struct {
		set             string
		contains, lacks []string
	}{
		"by default":  {contains: []string{"\n  replicas: 2\n", "--coordination=leader\n", "--standby=warm\n"}, lacks: []string{"\nkind: HorizontalPodAutoscaler\n"}},
		"cold":        {set: "replicaCount=3,leaderElection.standby=cold", contains: []string{"\n  replicas: 3\n", "--standby=cold\n"}},
		"sharded":     {set: "replicaCount=5,coordination=sharded", contains: []string{"\n  replicas: 5\n", "--coordination=sharded\n"}, lacks: []string{"\nkind: HorizontalPodAutoscaler\n"}},
		"autoscaling": {set: "replicaCount=5,coordination=sharded,autoscaling.enabled=true", contains: []string{"\nkind: HorizontalPodAutoscaler\n", "\n  minReplicas: 2\n  maxReplicas: 8\n"}, lacks: []string{"\n  replicas:"}},
	} {
		t.Run(name, func(t *testing.T) {
			rendered, err := template(t, "--set", required, "--set", test.set)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range test.contains {
				if !strings.Contains(rendered, want) {
					t.Errorf("nothing was rendered with %q", want)
				}
			}
			for _, unwanted := range test.lacks {
				if strings.Contains(rendered, unwanted) {
					t.Errorf("it was rendered with %q", unwanted)
				}
			}
		})
	}
}
