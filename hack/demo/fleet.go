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
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/synchub-dev/synchub/hack/screen"
)

// fleetTable shows what runs on which cluster for one team, and changes with it.
type fleetTable struct {
	clusters []*cluster
	screen   *screen.Screen

	mu sync.Mutex
	// deployments are the Deployments on the clusters, by team and cluster.
	deployments map[string]*unstructured.Unstructured
	// shown is the team in the table, or "".
	shown string
}

func newFleetTable(clusters []*cluster, screen *screen.Screen) *fleetTable {
	return &fleetTable{clusters: clusters, screen: screen, deployments: map[string]*unstructured.Unstructured{}}
}

func (f *fleetTable) set(team, cluster string, event watch.EventType, deployment *unstructured.Unstructured) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if event == watch.Deleted {
		delete(f.deployments, team+"/"+cluster)
	} else {
		f.deployments[team+"/"+cluster] = deployment
	}
	if f.shown == team {
		f.screen.Draw(f.table(team))
	}
}

// show keeps the table of a team on the screen until hide.
func (f *fleetTable) show(team string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shown = team
	f.screen.Draw(f.table(team))
}

// hide leaves the table as it is now.
func (f *fleetTable) hide() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.screen.Draw("")
	f.screen.Println(f.table(f.shown) + "\n")
	f.shown = ""
}

// running returns the names of the clusters that have the Deployment of a team.
func (f *fleetTable) running(team string) (names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, cluster := range f.clusters {
		if f.deployments[team+"/"+cluster.name] != nil {
			names = append(names, cluster.name)
		}
	}
	return names
}

// allAvailable reports whether all replicas of a team's Deployment are available on each cluster that has it.
func (f *fleetTable) allAvailable(team string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !slices.ContainsFunc(f.clusters, func(one *cluster) bool {
		deployment := f.deployments[team+"/"+one.name]
		return deployment != nil && availableOf(deployment) != fmt.Sprintf("%d/%[1]d", replicas)
	})
}

// images returns the images on the clusters that have the Deployment of a team.
func (f *fleetTable) images(team string) (images []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, cluster := range f.clusters {
		if deployment := f.deployments[team+"/"+cluster.name]; deployment != nil {
			images = append(images, imageOf(deployment))
		}
	}
	return images
}

func (f *fleetTable) table(team string) string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CLUSTER\tIMAGE\tAVAILABLE")
	for _, cluster := range f.clusters {
		image, available := "-", "-"
		if deployment := f.deployments[team+"/"+cluster.name]; deployment != nil {
			image, available = imageOf(deployment), availableOf(deployment)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", cluster.name, image, available)
	}
	_ = table.Flush() // a strings.Builder never fails
	return strings.TrimRight(text.String(), "\n")
}

func imageOf(deployment *unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	if len(containers) == 0 {
		return ""
	}
	container, _ := containers[0].(map[string]any)
	image, _ := container["image"].(string)
	return image
}

// availableOf returns how many of the replicas with the present image are available.
func availableOf(deployment *unstructured.Unstructured) string {
	wanted, _, _ := unstructured.NestedInt64(deployment.Object, "spec", "replicas")
	observed, _, _ := unstructured.NestedInt64(deployment.Object, "status", "observedGeneration")
	updated, _, _ := unstructured.NestedInt64(deployment.Object, "status", "updatedReplicas")
	available, _, _ := unstructured.NestedInt64(deployment.Object, "status", "availableReplicas")
	if observed < deployment.GetGeneration() {
		updated = 0
	}
	return fmt.Sprintf("%d/%d", min(updated, available), wanted)
}
