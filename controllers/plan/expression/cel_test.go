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

package expression_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	kubejson "k8s.io/apimachinery/pkg/util/json"

	"github.com/synchub-dev/synchub/controllers/plan/expression"
	"github.com/synchub-dev/synchub/test/fixtures"
)

const document = `{
	"metadata": {"name": "web", "labels": {"tier": "front", "app": "web", "zone": "a", "env": "test", "rank": "1"}},
	"spec": {"replicas": 3, "ratio": 0.5, "whole": 2.0, "big": 9007199254740993, "paused": false, "nothing": null,
		"memory": "512Mi", "ports": [{"name": "http", "port": 80}, {"name": "https", "port": 443}], "words": ["b", "a", "b"]}}`

// variables returns the variables of mutations, with a decoded object.
func variables(t testing.TB) map[string]any {
	t.Helper()
	object := fixtures.Map(t, document)
	return map[string]any{"self": object, "value": object["spec"], "other": nil}
}

func compile(t testing.TB, text string) *expression.Expression {
	t.Helper()
	compiled, err := expression.CompileCEL(text, "value", "self", "other")
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return compiled
}

func TestEvaluate(t *testing.T) {
	tests := map[string]struct {
		expression string
		want       any
	}{
		"null":                         {`null`, nil},
		"a boolean":                    {`true`, true},
		"a whole number":               {`1`, int64(1)},
		"an unsigned number":           {`1u`, int64(1)},
		"a fraction":                   {`1.5`, 1.5},
		"a fraction that is whole":     {`3.0 / 1.5`, int64(2)},
		"a fraction beyond exactness":  {`1e300`, 1e300},
		"text":                         {`"a"`, "a"},
		"bytes":                        {`b"abc"`, "YWJj"},
		"a timestamp":                  {`timestamp("2026-01-02T03:04:05.5Z")`, "2026-01-02T03:04:05.5Z"},
		"a duration":                   {`duration("90s")`, "90s"},
		"a list":                       {`[1, 2]`, []any{int64(1), int64(2)}},
		"an empty list":                {`[]`, []any{}},
		"a map":                        {`{"a": {"b": 1}}`, map[string]any{"a": map[string]any{"b": int64(1)}}},
		"an empty map":                 {`{}`, map[string]any{}},
		"a map of several types":       {`{"a": dyn(1), "b": dyn("x")}`, map[string]any{"a": int64(1), "b": "x"}},
		"a map with optional parts":    {`{?"a": self.?spec.replicas, ?"b": self.?status.x}`, map[string]any{"a": int64(3)}},
		"a field":                      {`self.spec.replicas`, int64(3)},
		"a large number, exactly":      {`self.spec.big + 0`, int64(9007199254740993)},
		"a fraction of the object":     {`self.spec.ratio`, 0.5},
		"a whole fraction of it":       {`self.spec.whole`, int64(2)},
		"a null of the object":         {`self.spec.nothing`, nil},
		"a variable that is null":      {`other == null`, true},
		"a variable":                   {`value.paused`, false},
		"a present optional":           {`self.?spec.replicas`, int64(3)},
		"an optional that is not":      {`self.?status.ready`, nil},
		"or else":                      {`self.?status.ready.orValue(7)`, int64(7)},
		"has":                          {`has(self.status)`, false},
		"a number compared as another": {`self.spec.replicas > 2.5`, true},
		"part of the object":           {`self.spec.ports[1]`, map[string]any{"name": "https", "port": int64(443)}},
		"map over a list":              {`self.spec.ports.map(p, p.port)`, []any{int64(80), int64(443)}},
		"filter":                       {`self.spec.ports.filter(p, p.name == "https").map(p, p.port)`, []any{int64(443)}},

		"regex":             {`"a1b2".find("[0-9]")`, "1"},
		"lists":             {`[1, 2].sum()`, int64(3)},
		"more lists":        {`self.spec.words.distinct().sort()`, []any{"a", "b"}},
		"sets":              {`sets.contains([1, 2], [1])`, true},
		"strings":           {`"a-b".split("-").join("+").upperAscii()`, "A+B"},
		"format":            {`"%s-%d".format(["a", 1])`, "a-1"},
		"url":               {`url("https://a.io/b").getHost()`, "a.io"},
		"an url":            {`url("https://a.io/b")`, "https://a.io/b"},
		"ip":                {`ip("10.0.0.1")`, "10.0.0.1"},
		"cidr":              {`cidr("10.0.0.0/8")`, "10.0.0.0/8"},
		"quantity":          {`quantity(self.spec.memory).add(quantity("512Mi"))`, "1Gi"},
		"semver":            {`semver("1.2.3").minor()`, int64(2)},
		"a semver":          {`semver("1.2.3")`, "1.2.3"},
		"format library":    {`format.dns1123Label().validate("A_").hasValue()`, true},
		"two variables":     {`{"a": 1}.transformMap(k, v, v + 1)`, map[string]any{"a": int64(2)}},
		"lists.range":       {`lists.range(3)`, []any{int64(0), int64(1), int64(2)}},
		"flatten":           {`[[[1]], [[2], [3]]].flatten(2)`, []any{int64(1), int64(2), int64(3)}},
		"replace":           {`"aaa".replace("a", "bc", 2)`, "bcbca"},
		"join by default":   {`["a", "b"].join()`, "ab"},
		"an ordered map":    {`self.metadata.labels.map(k, k)`, []any{"app", "env", "rank", "tier", "zone"}},
		"in two variables":  {`self.metadata.labels.transformList(k, v, k + v)`, []any{"appweb", "envtest", "rank1", "tierfront", "zonea"}},
		"made by a loop":    {`self.metadata.labels.transformMapEntry(k, v, {v: k}).map(k, k)`, []any{"1", "a", "front", "test", "web"}},
		"keys of any type":  {`{2: "b", 1: "a"}.map(k, k)`, []any{int64(1), int64(2)}},
		"keys of two types": {`{dyn("b"): 1, dyn(2): 1, dyn("a"): 1, dyn(1): 1}.map(k, k)`, []any{int64(1), int64(2), "a", "b"}},
		"a loop in a loop":  {`{"b": 1, "a": 2}.map(k, {"d": 1, "c": 2}.map(l, k + l))`, []any{[]any{"ac", "ad"}, []any{"bc", "bd"}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			given := variables(t)
			// The order of a map differs between runs.
			for range 10 {
				got, err := compile(t, test.expression).Evaluate(given)
				if err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(got, test.want) {
					t.Fatalf("want %#v, got %#v", test.want, got)
				}
			}
			if !reflect.DeepEqual(given, variables(t)) {
				t.Error("the variables changed")
			}
		})
	}
}

func TestEvaluateFails(t *testing.T) {
	doubled := `["0123456789"]` + strings.Repeat(".map(x, x + x)", 30)
	shared := `[[1]]` + strings.Repeat(".map(x, [x, x])", 60)
	tests := map[string]struct{ expression, message string }{
		"a missing field":              {`self.status`, "no such key: status"},
		"a division by zero":           {`1 / 0`, "division by zero"},
		"the wrong type":               {`self.spec.replicas + "x"`, "no such overload"},
		"a key that is no text":        {`{1: "a"}`, "a map has a key of type int"},
		"a key below":                  {`{"a": [{true: "a"}]}`, "a map has a key of type bool"},
		"a number that is too large":   {`18446744073709551615u`, "too large"},
		"no number":                    {`0.0 / 0.0`, "is not a number in JSON"},
		"an infinite number":           {`1.0 / 0.0`, "is not a number in JSON"},
		"an object of Kubernetes":      {`format.dns1123Label()`, "cannot be part of an object"},
		"too much in a loop":           {`lists.range(100).all(x, !"` + strings.Repeat("a", 2000) + `".contains("` + strings.Repeat("a", 1999) + `b"))`, "cost limit exceeded"},
		"too long a text":              {doubled, "cost limit exceeded"},
		"too much of one value":        {`lists.range(200).map(x, "` + strings.Repeat("0123456789", 1000) + `")`, "larger than 1048576 bytes"},
		"lists of the same lists":      {shared, "larger than 1048576 bytes"},
		"a range that fills memory":    {`lists.range(1000000000000)`, "lists.range would yield too much"},
		"a replacement that does":      {`"` + strings.Repeat("a", 5000) + `".replace("a", "` + strings.Repeat("b", 5000) + `")`, "replace would yield too much"},
		"a replacement of nothing":     {`"` + strings.Repeat("a", 5000) + `".replace("", "` + strings.Repeat("b", 5000) + `", 5000)`, "replace would yield too much"},
		"texts that are joined":        {`lists.range(5000).map(x, "` + strings.Repeat("a", 5000) + `").join()`, "join would yield too much"},
		"texts joined by a long one":   {`lists.range(5000).map(x, "a").join("` + strings.Repeat("a", 5000) + `")`, "join would yield too much"},
		"a format of large values":     {`"%s".format([lists.range(5000).map(x, "` + strings.Repeat("a", 5000) + `")])`, "format would yield too much"},
		"a format of shared lists":     {`"%s".format([` + shared + `])`, "format would yield too much"},
		"shared lists that are spread": {shared + `.flatten(60)`, "flatten would yield too much"},
		"each compared with each":      {`lists.range(100000).distinct()`, "cost limit exceeded"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := compile(t, test.expression).Evaluate(variables(t))
			if err == nil {
				t.Fatalf("yields %.200v", got)
			}
			if !strings.Contains(err.Error(), test.message) {
				t.Errorf("want %q in: %v", test.message, err)
			}
			if got != nil {
				t.Errorf("yields %v with an error", got)
			}
		})
	}
}

func TestCompileCELRefuses(t *testing.T) {
	tests := map[string]struct{ expression, message string }{
		"nothing":                    {``, "<input>:1:"},
		"an unknown variable":        {"self.a ==\n  nobody", "<input>:2:3: undeclared reference to 'nobody'"},
		"a mistake in the syntax":    {`self.a ==`, "<input>:1:10: Syntax error"},
		"types that do not fit":      {`1 + "a"`, "<input>:1:3: found no matching overload"},
		"an unknown function":        {`env("HOME")`, "undeclared reference to 'env'"},
		"literals of several types":  {`{"a": 1, "b": "x"}`, "need dyn"},
		"a bad pattern":              {`"a".matches("(")`, "<input>:1:13: invalid matches argument"},
		"a loop over a number":       {`1.map(x, x)`, "<input>:1:1: expression of type 'int' cannot be range"},
		"the function that sorts":    {`@inOrder([1])`, "Syntax error"},
		"too many nested lists":      {strings.Repeat("[", 300) + strings.Repeat("]", 300), "recursion"},
		"a variable of another kind": {`oldSelf.a`, "undeclared reference to 'oldSelf'"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := expression.CompileCEL(test.expression, "value", "self", "other")
			if err == nil {
				t.Fatal("accepted")
			}
			if !strings.Contains(err.Error(), test.message) {
				t.Errorf("want %q in: %v", test.message, err)
			}
		})
	}
}

func TestExpressionProperties(t *testing.T) {
	tests := map[string]struct {
		expression         string
		value, self, other bool
		isBool             bool
	}{
		"a constant":         {expression: `1`},
		"a boolean":          {expression: `true`, isBool: true},
		"of unknown type":    {expression: `self.a`, self: true, isBool: true},
		"a comparison":       {expression: `self.a == value`, self: true, value: true, isBool: true},
		"a text":             {expression: `"other"`},
		"a list of booleans": {expression: `[true]`},
		"in a loop":          {expression: `[1].map(x, other.a)`, other: true},
		"in a macro":         {expression: `has(other.a)`, other: true, isBool: true},
		"as a field":         {expression: `self.other`, self: true, isBool: true},
		"an optional":        {expression: `self.?a`, self: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			compiled := compile(t, test.expression)
			for variable, want := range map[string]bool{"value": test.value, "self": test.self, "other": test.other, "a": false} {
				if got := compiled.Uses(variable); got != want {
					t.Errorf("uses %s: %v", variable, got)
				}
			}
			if got := compiled.ReturnsBool(); got != test.isBool {
				t.Errorf("yields a boolean: %v", got)
			}
		})
	}
}

func TestResultSharesNothing(t *testing.T) {
	given := variables(t)
	for _, text := range []string{`self`, `value.ports`, `[self.spec, self.spec]`, `{"a": self.metadata.labels}`, `self.?spec`} {
		result, err := compile(t, text).Evaluate(given)
		if err != nil {
			t.Fatal(err)
		}
		fixtures.Scribble(result)
		if !reflect.DeepEqual(given, variables(t)) {
			t.Fatalf("%s shares parts with the variables", text)
		}
	}
}

// An expression, a template and a set of variables are used concurrently.
func TestConcurrently(t *testing.T) {
	compiled := compile(t, `self.metadata.labels.map(k, self.metadata.labels[k]).join(",")`)
	parsed := parse(t, `{{ range keys .Object.metadata.labels }}{{ get $.Object.metadata.labels . }},{{ end }}`)
	given := variables(t)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				if got, err := compiled.Evaluate(given); err != nil || got != "web,test,1,front,a" {
					t.Errorf("%v, %v", got, err)
				}
				if got, err := parsed.Render(map[string]any{"Value": nil, "Object": given["self"], "Other": nil}); err != nil || got != "web,test,1,front,a," {
					t.Errorf("%v, %v", got, err)
				}
				if _, err := expression.CompileCEL(`value + self`, "value", "self"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}

func FuzzCEL(f *testing.F) {
	for _, text := range []string{`self.spec.ports.map(p, p.port)`, `{"a": dyn(1), "b": dyn(self)}`, `value.words.sort()`, `self.?a.b.orValue(1)`, `"%s".format([self])`, `self.metadata.labels.transformMap(k, v, v + k)`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		compiled, err := expression.CompileCEL(text, "value", "self", "other")
		if err != nil {
			return
		}
		given := variables(t)
		result, err := compiled.Evaluate(given)
		if !reflect.DeepEqual(given, variables(t)) {
			t.Fatalf("%q changes the variables", text)
		}
		again, errAgain := compiled.Evaluate(variables(t))
		if (err == nil) != (errAgain == nil) || !reflect.DeepEqual(result, again) {
			t.Fatalf("%q yields %v, %v and then %v, %v", text, result, err, again, errAgain)
		}
		if err != nil {
			return
		}
		checkPlain(t, result)
	})
}

// checkPlain checks that a value can be part of an object, and is unchanged after encoding and decoding as JSON.
func checkPlain(t *testing.T, value any) {
	t.Helper()
	runtime.DeepCopyJSONValue(value) // panics if not
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatalf("%v: %v", value, err)
	}
	var back any
	if err := kubejson.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(back, value) && !strings.Contains(string(text), `\ufffd`) {
		t.Errorf("%#v is decoded as %#v", value, back)
	}
}
