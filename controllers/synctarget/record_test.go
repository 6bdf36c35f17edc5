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

package synctarget

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/sync"
)

func TestSyncedResources(t *testing.T) {
	known := func(group, resource string) edgev2alpha1.SyncedResource {
		return edgev2alpha1.SyncedResource{
			Group: group, Resource: resource, Versions: []string{"v1"}, State: edgev2alpha1.SyncedResourceIncompatible, Reason: "R", Message: "kept", IdentityHash: "abc",
		}
	}
	accepted := func(group, resource string) edgev2alpha1.SyncedResource {
		return edgev2alpha1.SyncedResource{Group: group, Resource: resource, Versions: []string{"v1"}, State: edgev2alpha1.SyncedResourceAccepted}
	}
	// resources are named as "resource.group/version"; one without version is not published any more.
	for name, test := range map[string]struct {
		current   []edgev2alpha1.SyncedResource
		resources string
		want      []edgev2alpha1.SyncedResource
	}{
		"none":      {nil, "", nil},
		"the first": {nil, "configmaps/v1", []edgev2alpha1.SyncedResource{accepted("", "configmaps")}},
		"in a stable order": {
			nil, "jobs.batch/v1 secrets/v1 deployments.apps/v1 configmaps/v1",
			[]edgev2alpha1.SyncedResource{accepted("", "configmaps"), accepted("", "secrets"), accepted("apps", "deployments"), accepted("batch", "jobs")},
		},
		"one more": {
			[]edgev2alpha1.SyncedResource{known("apps", "deployments")}, "deployments.apps/v1 configmaps/v1",
			[]edgev2alpha1.SyncedResource{accepted("", "configmaps"), known("apps", "deployments")},
		},
		"one less": {
			[]edgev2alpha1.SyncedResource{known("", "configmaps"), known("apps", "deployments")}, "deployments.apps/v1",
			[]edgev2alpha1.SyncedResource{known("apps", "deployments")},
		},
		"one that is not published any more": {
			[]edgev2alpha1.SyncedResource{known("", "configmaps"), known("apps", "deployments")}, "configmaps/ deployments.apps/v1",
			[]edgev2alpha1.SyncedResource{known("", "configmaps"), known("apps", "deployments")},
		},
		"the same name in another group": {
			[]edgev2alpha1.SyncedResource{known("", "events")}, "events.events.k8s.io/v1",
			[]edgev2alpha1.SyncedResource{accepted("events.k8s.io", "events")},
		},
		"one that is neither published nor known": {nil, "widgets.example.com/ configmaps/v1", []edgev2alpha1.SyncedResource{accepted("", "configmaps")}},
		"the last one goes":                       {[]edgev2alpha1.SyncedResource{known("", "configmaps")}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var resources []sync.Resource
			for resource := range strings.FieldsSeq(test.resources) {
				group, version, _ := strings.Cut(resource, "/")
				resources = append(resources, sync.Resource{GroupVersionResource: schema.ParseGroupResource(group).WithVersion(version)})
			}
			got := syncedResources(test.current, resources)
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("want %+v\ngot  %+v", test.want, got)
			}
			if again := syncedResources(got, resources); !reflect.DeepEqual(again, got) {
				t.Errorf("first %+v\nthen  %+v", got, again)
			}
		})
	}
}
