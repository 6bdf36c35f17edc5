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

package scenario

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

func TestPlacementManifests(t *testing.T) {
	for name, object := range map[string]*unstructured.Unstructured{
		"one object":  placement("shop", "object-0", everywhere),
		"all objects": placementOfAll("shop", single),
	} {
		content, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var decoded edgev2alpha1.EdgePlacement
		if err := yaml.UnmarshalStrict(content, &decoded); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	var decoded edgev2alpha1.Location
	if err := yaml.UnmarshalStrict([]byte(location(everywhere)), &decoded); err != nil {
		t.Error(err)
	}
}

func TestLastArrival(t *testing.T) {
	start := time.Now()
	arrivals := func(entries map[string]time.Duration) *track {
		events := make(chan observedObject, len(entries))
		for entry, after := range entries {
			object := configMap("shop", "object-0")
			if err := unstructured.SetNestedField(object.Object, entry, "data", "entry"); err != nil {
				t.Fatal(err)
			}
			events <- observedObject{start.Add(after), object}
		}
		close(events)
		return &track{arrivals: &watcher{events: events}}
	}
	last, err := lastArrival(t.Context(), []*track{
		arrivals(map[string]time.Duration{"6": time.Second, "7": 3 * time.Second}), arrivals(map[string]time.Duration{"7": 2 * time.Second}),
	}, 7)
	if err != nil || last.Sub(start) != 3*time.Second {
		t.Errorf("the last target had the edit after %v, error %v; want 3s", last.Sub(start), err)
	}
	if _, err := lastArrival(t.Context(), []*track{arrivals(map[string]time.Duration{"6": time.Second})}, 7); err == nil {
		t.Error("no error where a target never has the edit")
	}
}
