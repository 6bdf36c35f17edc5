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
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
)

// A chart that has ours as a dependency can name one registry for all images.
func TestImages(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	for name, test := range map[string]struct{ set, want string }{
		"by default":              {"commonLabels.a=b", "ghcr.io/synchub-dev/PROGRAM:0.1.0"},
		"a registry of one's own": {"image.registry=images.example.org/team,image.repository=PROGRAM,image.tag=v9", "images.example.org/team/PROGRAM:v9"},
		"no registry":             {"image.registry=,image.digest=" + digest, "synchub-dev/PROGRAM@" + digest},
		"a global registry":       {"global.imageRegistry=mirror.example.org:5000,image.registry=images.example.org", "mirror.example.org:5000/synchub-dev/PROGRAM:0.1.0"},
	} {
		t.Run(name, func(t *testing.T) {
			setFor := func(program string) string { return strings.ReplaceAll(test.set, "PROGRAM", program) }
			rendered := objects(t, "--set", setFor("synchub"))
			hub, wait, tunnel := &appsv1.Deployment{}, &batchv1.Job{}, &appsv1.Deployment{}
			decode(t, rendered["Deployment/synchub"], hub)
			decode(t, rendered["Job/synchub-wait"], wait)
			found, err := tunnelObjects(t, "--set", setFor("synchub-tunnel"))
			if err != nil {
				t.Fatal(err)
			}
			decode(t, found["Deployment"], tunnel)
			for got, program := range map[string]string{
				hub.Spec.Template.Spec.Containers[0].Image:    "synchub",
				wait.Spec.Template.Spec.Containers[0].Image:   "synchub",
				tunnel.Spec.Template.Spec.Containers[0].Image: "synchub-tunnel",
			} {
				if want := strings.ReplaceAll(test.want, "PROGRAM", program); got != want {
					t.Errorf("the image is %s, not %s", got, want)
				}
			}
		})
	}
}
