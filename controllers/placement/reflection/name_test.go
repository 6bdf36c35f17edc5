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

package reflection_test

import (
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/reflection"
)

func TestName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", validation.DNS1123SubdomainMaxLength)
	if got := reflection.Name("web-1", "florin"); got != "web-1.florin" {
		t.Errorf("got %s", got)
	}
	names := map[string]bool{}
	for _, syncTarget := range []string{"florin", "guilder"} {
		for _, object := range []string{"web", long, long[1:] + "b", strings.Repeat("a.", 126) + "a"} {
			name := reflection.Name(object, syncTarget)
			if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 || names[name] {
				t.Errorf("the name of %s from %s is %s: %v", object, syncTarget, name, problems)
			}
			names[name] = true
		}
	}
}

func TestLabels(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 100)
	for name, c := range map[string]struct {
		origin reflection.Origin
		want   map[string]string
	}{
		"the same namespace": {reflection.Origin{SyncTarget: "florin", Object: types.NamespacedName{Namespace: "shop", Name: "web"}}, map[string]string{
			edgev2alpha1.LabelSyncTarget: "florin", edgev2alpha1.LabelOriginName: "web",
		}},
		"another namespace": {reflection.Origin{SyncTarget: "florin", Object: types.NamespacedName{Namespace: "shop-1", Name: "web"}}, map[string]string{
			edgev2alpha1.LabelSyncTarget: "florin", edgev2alpha1.LabelOriginName: "web", edgev2alpha1.LabelOriginNamespace: "shop-1",
		}},
		"a name that no label allows": {reflection.Origin{SyncTarget: "florin", Object: types.NamespacedName{Namespace: "shop", Name: "system:web"}}, map[string]string{
			edgev2alpha1.LabelSyncTarget: "florin", edgev2alpha1.LabelOriginName: "",
		}},
	} {
		if got := c.origin.Labels("shop"); !maps.Equal(got, c.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
	value := reflection.Origin{SyncTarget: long}.Labels("")[edgev2alpha1.LabelSyncTarget]
	if len(validation.IsValidLabelValue(value)) > 0 || len(value) != validation.LabelValueMaxLength {
		t.Errorf("the label of a long name is %s", value)
	}
}
