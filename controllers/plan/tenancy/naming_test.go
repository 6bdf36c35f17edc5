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

package tenancy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

func perWorkspace(template string) *edgev2alpha1.Tenancy {
	return &edgev2alpha1.Tenancy{Namespaces: edgev2alpha1.NamespacesPerWorkspace, NamespaceTemplate: template}
}

func TestNamespace(t *testing.T) {
	t.Parallel()
	const workspace = logicalcluster.Name("2k7xobq1d0ukyygo")
	is := WorkspaceHash(workspace)
	for name, c := range map[string]struct {
		tenancy         *edgev2alpha1.Tenancy
		namespace, want string
	}{
		"no tenancy":         {nil, "shop", "shop"},
		"shared":             {&edgev2alpha1.Tenancy{Namespaces: edgev2alpha1.NamespacesShared, NamespaceTemplate: "x-{namespace}-{hash}"}, "shop", "shop"},
		"no namespace":       {perWorkspace(""), "", ""},
		"the default":        {perWorkspace(""), "shop", "shop-" + is},
		"a template":         {perWorkspace("t-{hash}-{namespace}-x"), "shop", "t-" + is + "-shop-x"},
		"an unsafe template": {perWorkspace("{namespace}"), "shop", "shop-" + is},
		"the longest name":   {perWorkspace(""), strings.Repeat("a", 49), strings.Repeat("a", 49) + "-" + is},
	} {
		if got := NamingOf(c.tenancy).Namespace(workspace, c.namespace); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	// One character more, and the name is shortened.
	long := NamingOf(perWorkspace("")).Namespace(workspace, strings.Repeat("a", 50))
	if len(long) != 63 || !strings.HasSuffix(long, "-"+is) || strings.HasPrefix(long, strings.Repeat("a", 50)) {
		t.Errorf("a long name: %q", long)
	}
}

// Different namespaces and workspaces have different names, regardless of the names that a team chooses.
func FuzzNamespacesDiffer(f *testing.F) {
	hash := WorkspaceHash("two")
	f.Add("", "one", "shop", "two", "shop")
	f.Add("{hash}{namespace}", "one", "shop", "one", "shop2")
	f.Add("{namespace}{hash}", "one", "shop"+hash, "two", "shop")
	f.Add("", "one", strings.Repeat("a", 50), "one", NamingOf(perWorkspace("")).Namespace("one", strings.Repeat("a", 50))[:50])
	f.Fuzz(func(t *testing.T, template, oneWorkspace, one, otherWorkspace, other string) {
		if len(template) > 63 || len(strings.NewReplacer(namespacePlaceholder, "", hashPlaceholder, "").Replace(template)) > 24 {
			return
		}
		if len(validation.IsDNS1123Label(one)) > 0 || len(validation.IsDNS1123Label(other)) > 0 || oneWorkspace == otherWorkspace && one == other {
			return
		}
		naming := NamingOf(perWorkspace(template))
		first, second := naming.Namespace(logicalcluster.Name(oneWorkspace), one), naming.Namespace(logicalcluster.Name(otherWorkspace), other)
		if first == second {
			t.Errorf("%q of %q and %q of %q are both %q", one, oneWorkspace, other, otherWorkspace, first)
		}
		if len(first) > validation.DNS1123LabelMaxLength {
			t.Errorf("%q is too long", first)
		}
	})
}

func BenchmarkNamespace(b *testing.B) {
	naming := NamingOf(perWorkspace(""))
	for i := range b.N {
		naming.Namespace("2k7xobq1d0ukyygo", fmt.Sprint(i))
	}
}
