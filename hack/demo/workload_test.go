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
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"

	"github.com/synchub-dev/synchub/test/fixtures"
)

// The names that the demo looks for on the clusters are those in the manifests.
func TestManifestsAndTheirNames(t *testing.T) {
	for _, w := range []workload{common, special} {
		t.Run(w.deployment, func(t *testing.T) {
			deployment := fixtures.Decode[appsv1.Deployment](t, w.deploymentManifest)
			if deployment.Namespace != w.namespace || deployment.Name != w.deployment {
				t.Errorf("the manifest has %s/%s, want %s/%s", deployment.Namespace, deployment.Name, w.namespace, w.deployment)
			}
			var kinds []string
			for document := range strings.SplitSeq(w.configManifest, "\n---\n") {
				object := fixtures.Object(t, document)
				kinds = append(kinds, object.GetKind())
				if object.GetKind() == "SyncerConfig" {
					checkSelection(t, document, w)
				}
			}
			if strings.Join(kinds[:2], " ") != "Namespace SyncerConfig" {
				t.Errorf("the manifest has the kinds %v", kinds)
			}
		})
	}
	if !strings.Contains(common.configManifest, "name: "+greeting) {
		t.Errorf("the common workload has no %s", greeting)
	}
}

func checkSelection(t *testing.T, document string, w workload) {
	t.Helper()
	config := fixtures.Decode[edgev2alpha1.SyncerConfig](t, document)
	scope := config.Spec.NamespaceScope
	if len(scope.Namespaces) != 1 || scope.Namespaces[0] != w.namespace {
		t.Errorf("the SyncerConfig selects the namespaces %v, want %s", scope.Namespaces, w.namespace)
	}
	last := scope.Resources[len(scope.Resources)-1]
	if last.Group != deployments.Group || last.Resource != deployments.Resource {
		t.Errorf("the SyncerConfig does not select Deployments but %v", last.GroupResource)
	}
}

func TestIsAvailable(t *testing.T) {
	for manifest, want := range map[string]bool{
		`{}`:                               false,
		`{status: {}}`:                     false,
		`{status: {conditions: [broken]}}`: false,
		`{status: {conditions: [{type: Progressing, status: "True"}]}}`:                                    false,
		`{status: {conditions: [{type: Available, status: "False"}]}}`:                                     false,
		`{status: {conditions: [{type: Progressing, status: "True"}, {type: Available, status: "True"}]}}`: true,
	} {
		deployment := fixtures.Object(t, manifest)
		if got := isAvailable(deployment); got != want {
			t.Errorf("%s: %v, want %v", manifest, got, want)
		}
	}
}
