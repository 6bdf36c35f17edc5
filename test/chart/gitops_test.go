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
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"

	"github.com/synchub-dev/synchub/test/fixtures"
)

// known renders the chart for a cluster that knows the kind PublishedResource: then there are no hooks.
var known = []string{"--api-versions", "synchub.dev/v1alpha1/PublishedResource"}

// checkAnyOrder applies the rendered chart as a GitOps tool does: one object after the other by server-side apply, again and again until
// all are there. A further time changes nothing.
func (c *cluster) checkAnyOrder(t *testing.T, compare func(a, b string) int) {
	t.Helper()
	rendered := objects(t, known...)
	for key, object := range rendered {
		if object.GetAnnotations()["helm.sh/hook"] != "" {
			t.Errorf("%s is a hook", key)
		}
	}
	order := slices.SortedFunc(maps.Keys(rendered), compare)
	versions := map[string]string{}
	var last error
	err := wait.PollUntilContextTimeout(contextFor(t), time.Second, time.Minute, true, func(ctx context.Context) (bool, error) {
		last = nil
		mapper := c.newMapper()
		for _, key := range order {
			if versions[key] != "" {
				continue
			}
			var err error
			if versions[key], err = c.apply(ctx, mapper, rendered[key]); err != nil {
				last = fmt.Errorf("%s: %w", key, err)
			}
		}
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%v: %v", err, last)
	}
	mapper := c.newMapper()
	for _, key := range order {
		if version, err := c.apply(contextFor(t), mapper, rendered[key]); err != nil || version != versions[key] {
			t.Errorf("the second time %s has become %s, %v, from %s", key, version, err, versions[key])
		}
	}
}

// newMapper returns a mapper that knows the kinds that the cluster serves now.
func (c *cluster) newMapper() meta.RESTMapper {
	return restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.kubernetes.Discovery()))
}

// apply applies an object, and returns an identifier of the object and its content, without its status.
func (c *cluster) apply(ctx context.Context, mapper meta.RESTMapper, object *unstructured.Unstructured) (version string, err error) {
	kind := object.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return "", err
	}
	resource := c.dynamic.Resource(mapping.Resource).Namespace(object.GetNamespace())
	stored, err := resource.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: "gitops", Force: true})
	if err != nil {
		return "", err
	}
	if generation := stored.GetGeneration(); generation > 0 {
		return fmt.Sprint(stored.GetUID(), " ", generation), nil
	}
	return fmt.Sprint(stored.GetUID(), " ", stored.GetResourceVersion()), nil
}

// TestGitOpsExamples renders the chart with the values of the examples for Argo CD and Flux.
func TestGitOpsExamples(t *testing.T) {
	for file, path := range map[string][]string{"argocd.yaml": {"spec", "source", "helm", "valuesObject"}, "flux.yaml": {"spec", "values"}} {
		content, err := os.ReadFile(filepath.Join("../../examples", file))
		if err != nil {
			t.Fatal(err)
		}
		rendered := false
		for document := range strings.SplitSeq(string(content), "\n---\n") {
			values, found, err := unstructured.NestedMap(fixtures.Object(t, document).Object, path...)
			if err != nil {
				t.Fatal(err)
			}
			if !found {
				continue
			}
			written, err := json.Marshal(values)
			if err != nil {
				t.Fatal(err)
			}
			name := filepath.Join(t.TempDir(), "values.json")
			if err := os.WriteFile(name, written, 0o600); err != nil {
				t.Fatal(err)
			}
			output, err := template(t, append(slices.Clone(known), "--values", name)...)
			if err != nil || !strings.Contains(output, "synchub-kcp") {
				t.Errorf("%s: %v", file, err)
			}
			rendered = true
		}
		if !rendered {
			t.Errorf("%s has no values of the chart", file)
		}
	}
}
