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

package ownership_test

import (
	"testing"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

func TestIsFromKubeStellar(t *testing.T) {
	namespace := ownership.Self{Kind: "Namespace", Name: "shop"}
	for name, test := range map[string]struct {
		value string
		self  ownership.Self
		want  bool
	}{
		"names it":                     {"Deployment/shop/web", self, true},
		"names it, cluster-scoped":     {"Namespace//shop", namespace, true},
		"empty":                        {"", self, false},
		"names another kind":           {"ReplicaSet/shop/web", self, false},
		"names another namespace":      {"Deployment/shop2/web", self, false},
		"names another":                {"Deployment/shop/web2", self, false},
		"names its parent":             {"Deployment/shop/web", ownership.Self{Group: "apps", Kind: "ReplicaSet", Namespace: "shop", Name: "web-5d9"}, false},
		"without the empty namespace":  {"Namespace/shop", namespace, false},
		"more than the name":           {"Deployment/shop/web/x", self, false},
		"in another case":              {"deployment/shop/web", self, false},
		"the name before a conversion": {"Deployment/shop/web", ownership.Self{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "renamed"}, false},
	} {
		for _, annotation := range []string{ownership.KubeStellarDownsynced, ownership.KubeStellarUpsynced} {
			other := ownership.KubeStellarDownsynced
			if annotation == other {
				other = ownership.KubeStellarUpsynced
			}
			if got := ownership.IsFromKubeStellar(map[string]string{annotation: test.value}, annotation, test.self); got != test.want {
				t.Errorf("%s: want %v, got %v", name, test.want, got)
			}
			if ownership.IsFromKubeStellar(map[string]string{annotation: test.value}, other, test.self) {
				t.Errorf("%s: %s counts for %s", name, annotation, other)
			}
		}
	}
	if ownership.IsFromKubeStellar(nil, ownership.KubeStellarDownsynced, self) || ownership.IsFromKubeStellar(nil, ownership.KubeStellarDownsynced, ownership.Self{}) {
		t.Error("an object without annotations is taken for KubeStellar's")
	}
}
