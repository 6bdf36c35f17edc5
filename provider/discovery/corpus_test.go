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

package discovery_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/test/framework/suite"
	"github.com/synchub-dev/synchub/test/tier"
)

// knownFailures are the built-in kinds whose objects change in kcp, with the reason.
var knownFailures = map[string]string{
	// With both versions in one schema, objects are stored as v2. kcp does not convert them, so fields of v1 are lost. If
	// only v1 is published, they are kept.
	"autoscaling/v1 HorizontalPodAutoscaler": ".spec.targetCPUUtilizationPercentage",
}

// Every built-in kind becomes an API of kcp, in its own group unless kcp serves the kind itself. kcp stores objects
// unchanged: a sample that the cluster accepts, the cluster's response to it, and an object with every field.
func TestEveryBuiltinKindSurvivesInKCP(t *testing.T) {
	tier.Thorough(t)
	all := builtins(t)
	apis := publish(t, "corpus", definitionsOf(t, all), kcpNatives(t))
	var mu sync.Mutex
	lost := map[string]string{}
	var group errgroup.Group
	group.SetLimit(8)
	for _, kind := range all {
		group.Go(func() error {
			if err := checkSurvives(t, kind, apis); err != nil {
				mu.Lock()
				defer mu.Unlock()
				lost[kind.String()] = err.Error()
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, kind := range slices.Sorted(maps.Keys(lost)) {
		if reason, known := knownFailures[kind]; !known || !strings.Contains(lost[kind], reason) {
			t.Errorf("%s does not survive: %s", kind, lost[kind])
		}
	}
	for kind := range knownFailures {
		if _, found := lost[kind]; !found {
			t.Errorf("%s survives: take it out of the list", kind)
		}
	}
	t.Logf("%d kinds, %d of them not as they were sent", len(all), len(lost))
}

// Fields that are lost if a kind is published with all its versions are kept if it is published with one.
func TestKindsWithSeveralVersionsSurviveAlone(t *testing.T) {
	tier.Thorough(t)
	for _, kind := range builtins(t) {
		if _, listed := knownFailures[kind.String()]; !listed {
			continue
		}
		t.Run(kind.String(), func(t *testing.T) {
			workspace := strings.ToLower(kind.Kind) + "-" + kind.Version
			if err := checkSurvives(t, kind, publish(t, workspace, []definition{{crd: kind.crd}}, kcpNatives(t))); err != nil {
				t.Error(err)
			}
		})
	}
}

// definitionsOf returns one definition for each resource of the kinds, with all its versions.
func definitionsOf(t *testing.T, kinds []builtin) (all []definition) {
	t.Helper()
	seen := map[schema.GroupResource]bool{}
	for _, kind := range kinds {
		resource := kind.resource.GroupResource()
		if seen[resource] {
			continue
		}
		seen[resource] = true
		crd, err := discoveryClient(t, cluster(t)).CRDFor(t.Context(), synchubv1alpha1.ResourceDescriptor{Group: resource.Group, Resource: resource.Resource})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, definition{crd: crd})
	}
	return all
}

// checkSurvives returns an error if kcp returns an object of the kind with other fields than it was sent.
func checkSurvives(t *testing.T, kind builtin, apis published) error {
	inKCP := apis.resource(kind.resource)
	sample := sampleOf(t, kind.GroupVersionKind)
	answer, err := suite.Dynamic(t, cluster(t)).Resource(kind.resource).Namespace(sample.GetNamespace()).
		Create(t.Context(), sample, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return fmt.Errorf("the cluster refuses the sample: %w", err)
	}
	send := func(object *unstructured.Unstructured, name string) error {
		object = object.DeepCopy()
		object.SetName(name + "-" + kind.Version)
		object.SetAPIVersion(apis.version(kind.GroupVersion(), kind.resource.GroupResource()).String())
		if kind.namespaced {
			object.SetNamespace(metav1.NamespaceDefault)
		}
		return roundTrip(t, resourceClientFor(inKCP, object.GetNamespace()), object, answer)
	}
	return errors.Join(
		named("the sample", send(sample, sample.GetName())),
		named("the cluster's answer", send(withoutServerFields(answer), "answer")),
		named("all fields", send(readDocument(t, kind.GroupVersion()).completeObject(t, kind.GroupVersionKind), "full")),
	)
}

func named(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

func resourceClientFor(resource dynamic.NamespaceableResourceInterface, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return resource
	}
	return resource.Namespace(namespace)
}

// roundTrip creates an object, and its status if it has a subresource, and compares it with the stored object. A field
// that kcp adds must be in the cluster's response, too.
func roundTrip(t *testing.T, resource dynamic.ResourceInterface, object, answer *unstructured.Unstructured) error {
	created, err := resource.Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	status, sent := object.Object["status"]
	if _, stored := created.Object["status"]; sent && !stored {
		created.Object["status"] = status
		if _, err := resource.UpdateStatus(t.Context(), created, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("status: %w", err)
		}
	}
	stored, err := resource.Get(t.Context(), object.GetName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	wanted, got := withoutNulls(object.Object), withoutNulls(withoutServerFields(stored).Object)
	if paths := differingPaths(wanted, got, answer.Object, ""); len(paths) > 0 {
		return fmt.Errorf("changed: %s", strings.Join(paths, ", "))
	}
	return nil
}
