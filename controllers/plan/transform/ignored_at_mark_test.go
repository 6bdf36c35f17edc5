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

package transform_test

import (
	"slices"
	"testing"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/test/fixtures"
)

func TestIgnoredAtMark(t *testing.T) {
	for name, paths := range map[string][]string{
		"nothing":     {},
		"one":         {"spec.replicas"},
		"some":        {"spec.replicas", "!data['a.b/c']", "spec.containers[*].image"},
		"odd ones":    {"spec['a, b; c \"d\" <&> é']", "spec.items[?(@.name==\"it's\")]", "spec.items[?(@.name=='a\"b')].x[7]", "a['\\n']", "a['\t']", "$ref", "_x-y"},
		"one twice":   {"spec.a", "spec.a"},
		"a long list": slices.Repeat([]string{"spec.template.spec.containers[*].resources.limits.memory"}, 128),
	} {
		t.Run(name, func(t *testing.T) {
			desired, err := down.Desired(fixtures.Object(t, scaled), transform.SyncSpec{IgnoredFields: ignoring(t, paths...)})
			if err != nil {
				t.Fatal(err)
			}
			mark, err := ownership.ParseMark(desired.Mark.String())
			if err != nil || mark != desired.Mark {
				t.Fatalf("got %+v, %v", mark, err)
			}
			former, ok := transform.IgnoredAtMark(mark)
			// The mark does not record whether a field was set at creation, and an existing object does not depend on it.
			want := pathsOf(ignoring(t, paths...))
			for i := range want {
				want[i] = pathsOf(ignoring(t, want[i]))[0]
				if want[i][0] == '!' {
					want[i] = want[i][1:]
				}
			}
			if !ok || !slices.Equal(pathsOf(former), want) {
				t.Errorf("want %q, got %q, %v", want, pathsOf(former), ok)
			}
			// With the formerly ignored fields, an object has its former hash.
			again, err := down.Desired(fixtures.Object(t, scaled), transform.SyncSpec{IgnoredFields: former})
			if err != nil || again.Mark.Hash != mark.Hash || again.Mark.Ignored != mark.Ignored {
				t.Errorf("want %s\ngot  %+v, %v", mark, again, err)
			}
		})
	}
	// Fields that cannot be parsed are an error, and are not parsed in part.
	for _, text := range []string{"spec.a\nb c", "\n", "spec.a\n", ".spec", "spec[", pathsOf(ignoring(t, "spec['a\nb']"))[0], pathsOf(ignoring(t, "spec['a\nspec.b\nc']"))[0]} {
		if former, ok := transform.IgnoredAtMark(ownership.Mark{Ignored: text}); ok || former != nil {
			t.Errorf("%q: got %v", text, pathsOf(former))
		}
	}
}

func TestUnion(t *testing.T) {
	for name, test := range map[string]struct{ first, second, want []string }{
		"nothing":               {nil, nil, nil},
		"the first":             {[]string{"a", "!b"}, nil, []string{"a", "!b"}},
		"the second":            {nil, []string{"a", "!b"}, []string{"a", "!b"}},
		"both":                  {[]string{"b"}, []string{"a", "c"}, []string{"b", "a", "c"}},
		"the first list counts": {[]string{"!a", "b"}, []string{"a", "!b", "c"}, []string{"!a", "b", "c"}},
		"written in two ways":   {[]string{"a.b"}, []string{"a['b']", "a['b'].c"}, []string{"a.b", "a.b.c"}},
		"one of which is above": {[]string{"a"}, []string{"a.b"}, []string{"a", "a.b"}},
	} {
		first, second := ignoring(t, test.first...), ignoring(t, test.second...)
		got := transform.UnionIgnored(first, second)
		if !slices.Equal(pathsOf(got), pathsOf(ignoring(t, test.want...))) {
			t.Errorf("%s: want %q, got %q", name, test.want, pathsOf(got))
		}
		if len(got) > 0 {
			got[0] = transform.IgnoredField{}
			if !slices.Equal(pathsOf(first), pathsOf(ignoring(t, test.first...))) {
				t.Errorf("%s: the first list was changed", name)
			}
		}
	}
}
