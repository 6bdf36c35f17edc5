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

package escapes

import (
	"fmt"
	"strings"
	"testing"

	"github.com/synchub-dev/synchub/controllers/plan/expression"
)

// large returns a value as large as the largest object that API servers accept.
func large() map[string]any {
	items := make([]any, 5_000)
	for i := range items {
		items[i] = map[string]any{"name": fmt.Sprintf("item-%d", i), "text": strings.Repeat("a", 32)}
	}
	return map[string]any{"object": map[string]any{"items": items, "text": strings.Repeat("a", mib/8), "nested": map[string]any{"a": "b"}}}
}

// templates are attempts to make a template read, reach or exhaust a forbidden resource, each with the expected result.
var templates = map[string]struct{ text, want string }{
	"the environment":           {`{{ env "PATH" }}`, `function "env" not defined`},
	"an expansion":              {`{{ expandenv "$HOME" }}`, `function "expandenv" not defined`},
	"a resolver":                {`{{ getHostByName "a" }}`, `function "getHostByName" not defined`},
	"a file":                    {`{{ .Files.Get "/etc/passwd" }}`, "Files"},
	"a password":                {`{{ derivePassword 1 "long" "a" "b" "c" }}`, `function "derivePassword" not defined`},
	"a key":                     {`{{ genPrivateKey "rsa" }}`, `function "genPrivateKey" not defined`},
	"a clock":                   {`{{ now }}`, `function "now" not defined`},
	"a repetition":              {`{{ repeat 1000000000 "a" }}`, `function "repeat" not defined`},
	"a sequence":                {`{{ until 1000000000 }}`, `function "until" not defined`},
	"a change of the object":    {`{{ set .object "a" "b" }}`, `function "set" not defined`},
	"a template of its own":     {`{{ define "x" }}{{ template "x" }}{{ end }}{{ template "x" }}`, "define and block are not supported"},
	"itself":                    {`{{ template "text" . }}`, "not a valid template"},
	"a loop for ever":           {`{{ range 1000000000 }}{{ range 1000000000 }}{{ end }}{{ end }}`, "does too much"},
	"a text that doubles":       {doubling(40), "more than"},
	"a join that squares":       {`{{ range .object.items }}{{ range $.object.items }}a{{ end }}{{ end }}`, "does too much"},
	"a pattern that backtracks": {`{{ regexReplaceAll "(a+)+$" .object.text "b" }}`, ""},
	"a replacement that grows":  {`{{ replace "a" (printf "%01000d" 1) .object.text }}`, "more than"},
	"an empty replacement":      {`{{ regexReplaceAll "" .object.text "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" }}`, "cannot render"},
	"a wide number":             {`{{ printf "%0999999999d" 1 }}`, "cannot render"},
	"a wide text":               {`{{ printf "%*d" 999999999 1 }}`, "cannot render"},
	"everything many times":     {strings.Repeat("{{ .object }}", 1000), "cannot render"},
	"the type of a value":       {`{{ .object.items.Method }}`, "can't evaluate"},
	"a call of a value":         {`{{ call .object }}`, "cannot render"},
	"null":                      {`{{ index .object "no" }}`, "is null"},
	"no end":                    {`{{ if .object }}`, "not a valid template"},
	"an end too many":           {"{{ end }}", "not a valid template"},
	"a deep nesting":            {strings.Repeat("{{ if true }}", 20_000) + strings.Repeat("{{ end }}", 20_000), ""},
}

// doubling returns a template that doubles a text the given number of times.
func doubling(times int) string {
	return `{{ $x := "aaaaaaaaaaaaaaaa" }}` + strings.Repeat(`{{ $x = print $x $x }}`, times) + "{{ $x }}"
}

func TestHostileTemplates(t *testing.T) {
	variables := large()
	for name, test := range templates {
		t.Run(name, func(t *testing.T) {
			before := allocated()
			parsed, err := expression.ParseTemplate(test.text, "object")
			if err == nil {
				var text string
				if text, err = parsed.Render(variables); err == nil && len(text) > 4*mib {
					t.Errorf("it gives %d bytes", len(text))
				}
			}
			expectRefused(t, err, test.want, before)
		})
	}
}

// rulesInCEL are the same attempts in CEL.
var rulesInCEL = map[string]struct{ text, want string }{
	"an unknown variable":       {`secret.data`, "undeclared reference"},
	"the environment":           {`env("PATH")`, "undeclared reference"},
	"a type":                    {`type(object).kind`, "not a valid CEL expression"},
	"a list that squares":       {`object.items.map(a, object.items.map(b, a.name + b.name))`, "exceeded"},
	"a text that doubles":       {strings.Repeat("(", 30) + "object.text" + strings.Repeat(").replace('a', 'aaaaaaaaaaaaaaaa')", 30), ""},
	"a pattern that backtracks": {`object.text.matches("(a+)+$")`, ""},
	"a join of everything":      {`object.items.map(a, object.text).join("")`, ""},
	"a number too large":        {`9223372036854775807 + 1`, "overflow"},
	"a division by nothing":     {`1 / 0`, "divi"},
	"an index beyond":           {`object.items[99999999]`, "out of bounds"},
	"a field that is not there": {`object.no.such.field`, "no such key"},
	"a deep nesting":            {strings.Repeat("(", 10_000) + "1" + strings.Repeat(")", 10_000), "recursion"},
	"a deep list":               {strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000), "recursion"},
	"a long expression":         {strings.Repeat("1 + ", 200_000) + "1", "size"},
	"no expression":             {`)(`, "not a valid CEL expression"},
	"characters":                {"\x00\xff", "not a valid CEL expression"},
	"a pattern without an end":  {`object.text.matches("(")`, "invalid matches argument"},
	"a quantity of nonsense":    {`quantity("x").isGreaterThan(quantity("y"))`, ""},
	"sets of everything":        {`sets.intersects(object.items, object.items.map(a, a.text))`, "exceeded"},
}

func TestHostileCEL(t *testing.T) {
	variables := large()
	for name, test := range rulesInCEL {
		t.Run(name, func(t *testing.T) {
			before := allocated()
			compiled, err := expression.CompileCEL(test.text, "object")
			if err == nil {
				_, err = compiled.Evaluate(variables)
			}
			expectRefused(t, err, test.want, before)
		})
	}
}

// expectRefused fails unless the error contains want, or if the rule used too much memory. With an empty want a result is
// fine too: the rule only has to end.
func expectRefused(t *testing.T, err error, want string, before uint64) {
	t.Helper()
	switch {
	case err == nil && want != "":
		t.Error("it was taken")
	case err != nil && !strings.Contains(err.Error(), want):
		t.Errorf("want %q, got %.300q", want, err)
	}
	if spent := allocated() - before; spent > mostAllocated {
		t.Errorf("it took %d MiB", spent/mib)
	}
}
