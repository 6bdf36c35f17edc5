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

package plan

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func lamps(projected TargetAPI, versions ...string) Resource {
	return Resource{
		PublishedResource:    "lamps",
		GroupVersionResource: schema.GroupVersionResource{Group: "shop", Version: "v1", Resource: "lamps"}, Kind: "Lamp", Namespaced: true,
		Projected: projected, Rules: &Rules{Versions: versions},
	}
}

func TestTargetVersions(t *testing.T) {
	elsewhere := func(version string) TargetAPI {
		return TargetAPI{GroupVersionResource: schema.GroupVersionResource{Group: "light", Version: version, Resource: "lamps"}, Kind: "Lamp"}
	}
	type names = []string
	for name, test := range map[string]struct {
		resource Resource
		want     names
	}{
		"without rules":                  {Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}}, names{"v1"}},
		"one":                            {lamps(TargetAPI{}, "v1"), names{"v1"}},
		"several":                        {lamps(TargetAPI{}, "v1", "v1beta1"), names{"v1", "v1beta1"}},
		"several, the synced one first":  {lamps(TargetAPI{}, "v2", "v1", "v1beta1"), names{"v1", "v2", "v1beta1"}},
		"several, in another group":      {lamps(elsewhere("v1"), "v1", "v1beta1"), names{"v1", "v1beta1"}},
		"one that is called otherwise":   {lamps(elsewhere("v7"), "v1"), names{"v7"}},
		"several, in one that is chosen": {lamps(TargetAPI{}, "v1", "v1beta1").WithTargetVersion("v1beta1"), names{"v1", "v1beta1"}},
	} {
		if got := test.resource.TargetVersions(); !slices.Equal(got, test.want) || test.resource.HasMultipleTargetVersions() != (len(test.want) > 1) {
			t.Errorf("%s: want %v, got %v", name, test.want, got)
		}
	}
	published := lamps(TargetAPI{}, "v1", "v1beta1")
	if published.WithTargetVersion("v1") != published || published.WithTargetVersion("v1beta1").WithTargetVersion("v1") != published {
		t.Error("with a target that is given the preferred version it is another resource")
	}
	if got := published.WithTargetVersion("v1beta1"); got.TargetAPI().Version != "v1beta1" || got.Version != "v1" || !got.publishes(schema.GroupVersionKind{Group: "shop", Version: "v1", Kind: "Lamp"}) {
		t.Errorf("got %+v", got)
	}
}
