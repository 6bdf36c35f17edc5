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
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/synchub-dev/synchub/controllers/plan/expression"
)

func parse(t testing.TB, text string) *expression.Template {
	t.Helper()
	parsed, err := expression.ParseTemplate(text, "Value", "Object", "Other")
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return parsed
}

// fields returns the variables that mutations pass to templates.
func fields(t testing.TB) map[string]any {
	t.Helper()
	given := variables(t)
	return map[string]any{"Value": nil, "Object": given["self"], "Other": map[string]any(nil)}
}

func TestRender(t *testing.T) {
	tests := map[string]struct{ template, want string }{
		"text":                          {"a b", "a b"},
		"nothing":                       {"", ""},
		"white space around":            {"\n {{ \" a b\\n\" }}\t", "a b"},
		"a field":                       {"{{ .Object.metadata.name }}", "web"},
		"a number":                      {"{{ .Object.spec.replicas }}", "3"},
		"no escaping":                   {`{{ "<a href='x'>&" }}`, "<a href='x'>&"},
		"a field that may be missing":   {`{{ dig "status" "ready" "none" .Object }}`, "none"},
		"a null with a default":         {`{{ .Value | default "x" }}`, "x"},
		"a null as condition":           {`{{ if .Value }}a{{ else }}b{{ end }}`, "b"},
		"no other object":               {`{{ if .Other }}a{{ else }}b{{ end }}`, "b"},
		"the root within with":          {`{{ with .Object.spec }}{{ .replicas }}-{{ $.Object.metadata.name }}{{ end }}`, "3-web"},
		"else of with":                  {`{{ with .Value }}a{{ else }}{{ .Object.metadata.name }}{{ end }}`, "web"},
		"a loop":                        {`{{ range .Object.spec.ports }}{{ .name }}={{ .port }} {{ end }}`, "http=80 https=443"},
		"a loop over a map":             {`{{ range $key, $value := .Object.metadata.labels }}{{ $key }}={{ $value }} {{ end }}`, "app=web env=test rank=1 tier=front zone=a"},
		"break and continue":            {`{{ range .Object.spec.words }}{{ if eq . "a" }}{{ break }}{{ end }}{{ if eq . "x" }}{{ continue }}{{ end }}{{ . }}{{ end }}`, "b"},
		"else of a loop":                {`{{ range $.Value }}a{{ else }}b{{ end }}`, "b"},
		"a variable":                    {`{{ $x := "a" }}{{ $x = print $x "b" }}{{ $x }}`, "ab"},
		"the dot as a whole":            {`{{ (index . "Object" "metadata").name }}`, "web"},
		"fields of a result":            {`{{ (get .Object "metadata").name }}`, "web"},
		"a pipeline":                    {`{{ .Object.metadata.name | upper | quote }}`, `"WEB"`},
		"a comment":                     {`{{/* a */}}b`, "b"},
		"sha3short":                     {`{{ sha3short "a" }}`, "80084bf2fba02475726f"},
		"sha3short with a length":       {`{{ sha3short "a" 5 }}`, "80084"},
		"sha3sum":                       {`{{ "a" | sha3sum }}`, "80084bf2fba02475726feb2cab2d8215eab14bc6bdd8bfb2c8151257032ecd8b"},
		"keys in order":                 {`{{ keys .Object.metadata.labels (dict "b" 1 "a" 2) | join " " }}`, "app env rank tier zone a b"},
		"values in order":               {`{{ values .Object.metadata.labels | join " " }}`, "web test 1 front a"},
		"JSON":                          {`{{ toJson .Object.spec.ports }}`, `[{"name":"http","port":80},{"name":"https","port":443}]`},
		"indent":                        {`x{{ "a\nb" | nindent 2 }}`, "x\n  a\n  b"},
		"replace":                       {`{{ "a-b-c" | replace "-" "_" }}`, "a_b_c"},
		"regexReplaceAll":               {`{{ regexReplaceAll "a(.)" "abac" "${1}x" }}`, "bxcx"},
		"regexReplaceAllLiteral":        {`{{ regexReplaceAllLiteral "a(.)" "abac" "${1}" }}`, "${1}${1}"},
		"uniq":                          {`{{ .Object.spec.words | uniq | join "," }}`, "b,a"},
		"printf":                        {`{{ printf "%03d|%-5s|%.2f|%%p" 7 "a" 1.5 }}`, "007|a    |1.50|%p"},
		"a loop over a number":          {`{{ range 3 }}{{ . }}{{ end }}`, "012"},
		"semver":                        {`{{ (semver "1.2.3").Minor }}`, "2"},
		"a text as large as it may be":  {`{{ range 1048 }}` + strings.Repeat("x", 1000) + `{{ end }}`, strings.Repeat("x", 1048000)},
		"a function that yields a null": {`{{ .Object.spec.nothing | default 1 | add 1 }}`, "2"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			given, parsed := fields(t), parse(t, test.template)
			for range 3 {
				got, err := parsed.Render(given)
				if err != nil {
					t.Fatal(err)
				}
				if got != test.want {
					t.Fatalf("want %q, got %.200q", test.want, got)
				}
			}
			if !reflect.DeepEqual(given, fields(t)) {
				t.Error("the variables changed")
			}
		})
	}
}

func TestRenderFails(t *testing.T) {
	long := strings.Repeat("0123456789", 1000)
	tests := map[string]struct{ template, message string }{
		"a missing field":             {`{{ .Object.status }}`, `map has no entry for key "status"`},
		"a field of a null":           {`{{ .Value.a }}`, "nil pointer"},
		"a null":                      {`ab {{ .Value }}`, "1:6: .Value is null: use default"},
		"a null below":                {"a\n{{ .Object.spec.nothing }}", "2:3: .Object.spec.nothing is null"},
		"a null of a function":        {`{{ first list }}`, "1:3: first list is null"},
		"a field of a text":           {`{{ .Object.metadata.name.x }}`, "can't evaluate field x"},
		"fail":                        {`{{ fail "no such zone" }}`, "no such zone"},
		"a panic":                     {`{{ dig "a" "b" "c" .Object.spec.words }}`, "interface conversion"},
		"a division by zero":          {`{{ div 1 0 }}`, "divide by zero"},
		"a bad pattern":               {`{{ regexReplaceAll "(" "a" "b" }}`, "missing closing"},
		"sha3short, too long":         {`{{ sha3short "a" 65 }}`, "a length from 1 to 64"},
		"sha3short, too short":        {`{{ sha3short "a" 0 }}`, "a length from 1 to 64"},
		"sha3short, too much":         {`{{ sha3short "a" 1 2 }}`, "a length from 1 to 64"},
		"indent by less than nothing": {`{{ indent -1 "a" }}`, "positive number"},

		"an endless loop":              {`{{ range 1000000000000 }}{{ end }}`, "1:9: range"},
		"loops in loops":               {strings.Repeat(`{{ range 100 }}`, 5) + strings.Repeat(`{{ end }}`, 5), "too long"},
		"too long an output":           {`{{ range 1049 }}` + strings.Repeat("x", 1000) + `{{ end }}`, "larger than what fits"},
		"a text that is doubled":       {`{{ $x := "0123456789" }}{{ range 60 }}{{ $x = print $x $x }}{{ end }}`, "$x = print $x $x yields more than 1048576 bytes"},
		"a list that is doubled":       {`{{ $x := list 1 }}{{ range 60 }}{{ $x = list $x $x }}{{ end }}{{ $x }}`, "$x = list $x $x yields more than"},
		"a map that is doubled":        {`{{ $x := dict }}{{ range 60 }}{{ $x = dict "a" $x "b" $x }}{{ end }}{{ toJson $x }}`, `yields more than`},
		"much in steps":                {`{{ range 100 }}{{ $x := "` + long + `" | replace "0" "` + long[:500] + `" }}{{ end }}`, "too "},
		"a width":                      {`{{ printf "%1000000d" 1 }}`, "no width of more than three digits"},
		"an address":                   {`{{ printf "%[1]p" .Object }}`, "printf takes no %p"},
		"a width in brackets":          {`{{ printf "%[1]*d" 1000000 }}`, "and no width"},
		"a precision":                  {`{{ printf "%.100000f" 1.0 }}`, "and no width"},
		"an indentation":               {`{{ indent 2000000 "a" }}`, "larger than 1048576 bytes"},
		"an indentation of many lines": {`{{ nindent 1000 (regexReplaceAll "." "` + long + `" "\n") }}`, "larger than 1048576 bytes"},
		"a replacement":                {`{{ replace "0" "` + long + `" "` + long + `" }}`, "larger than 1048576 bytes"},
		"a replacement of nothing":     {`{{ replace "" "` + long + `" "` + long + `" }}`, "larger than 1048576 bytes"},
		"a replacement of matches":     {`{{ regexReplaceAll ".*" "` + long + `" "` + strings.Repeat("$0", 200) + `" }}`, "larger than 1048576 bytes"},
		"texts joined":                 {`{{ splitList "" "` + long + `" | join "` + long + `" }}`, "larger than 1048576 bytes"},
		"each compared with each":      {`{{ splitList "" "` + long + `" | uniq }}`, "uniq takes at most 1000 items, the list has 10000"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			given, parsed := fields(t), parse(t, test.template)
			for range 2 {
				got, err := parsed.Render(given)
				if err == nil {
					t.Fatalf("yields %.200q", got)
				}
				if !strings.Contains(err.Error(), test.message) {
					t.Errorf("want %q in: %.500v", test.message, err)
				}
				if got != "" {
					t.Errorf("yields %.200q with an error", got)
				}
			}
			if !reflect.DeepEqual(given, fields(t)) {
				t.Error("the variables changed")
			}
		})
	}
}

func TestParseTemplateRefuses(t *testing.T) {
	tests := map[string]struct{ template, message string }{
		"an unknown field":                {"a {{ .Nope.x }}", "1:10: there is no .Nope, only .Value, .Object, .Other"},
		"an unknown field of the root":    {"{{ with .Object }}{{ $.Nope }}{{ end }}", "there is no .Nope"},
		"in a condition":                  {"{{ if .Nope }}{{ end }}", "there is no .Nope"},
		"in an else":                      {"{{ if .Value }}{{ else if .Nope }}{{ end }}", "there is no .Nope"},
		"in the else of a loop":           {"{{ range .Value }}{{ else }}{{ .Nope }}{{ end }}", "there is no .Nope"},
		"as an argument":                  {"{{ print (upper .Nope) }}", "there is no .Nope"},
		"in a declaration":                {"{{ $x := .Nope }}", "there is no .Nope"},
		"fields of a result":              {"{{ (get .Nope \"a\").b }}", "there is no .Nope"},
		"a mistake in the syntax":         {"{{ .Object", "unclosed action"},
		"a definition":                    {`{{ define "x" }}{{ end }}`, "define and block are not supported"},
		"a block":                         {`{{ block "x" . }}{{ end }}`, "define and block are not supported"},
		"a definition of itself":          {`{{ define "text" }}{{ .Nope }}{{ end }}`, "there is no .Nope"},
		"itself":                          {`{{ template "text" . }}`, "1:12: template is not supported"},
		"the environment":                 {`{{ env "HOME" }}`, `function "env" not defined`},
		"the clock":                       {`{{ now }}`, `function "now" not defined`},
		"what changes its argument":       {`{{ set .Object "a" "b" }}`, `function "set" not defined`},
		"what makes much of little":       {`{{ repeat 1000000000 "a" }}`, `function "repeat" not defined`},
		"the function that limits values": {`{{ _value "" 1 }}`, `function "_value" not defined`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := expression.ParseTemplate(test.template, "Value", "Object", "Other")
			if err == nil {
				t.Fatal("accepted")
			}
			if !strings.Contains(err.Error(), test.message) {
				t.Errorf("want %q in: %v", test.message, err)
			}
		})
	}
}

func TestTemplateUses(t *testing.T) {
	for template, want := range map[string][]string{
		"text":                           nil,
		"{{ .Value }}":                   {"Value"},
		"{{ .Object.Value }}":            {"Object"},
		"{{ print .Other.a .Object.b }}": {"Object", "Other"},
		"{{ with .Object }}{{ .Other }}{{ end }}":            {"Object"},
		"{{ with .Object }}{{ $.Other }}{{ end }}":           {"Object", "Other"},
		"{{ range .Object }}{{ else }}{{ .Other }}{{ end }}": {"Object", "Other"},
		"{{ if .Value }}{{ .Object }}{{ end }}":              {"Object", "Value"},
		`{{ "x" | default .Value }}`:                         {"Value"},
		"{{ with .Object }}{{ . }}{{ end }}":                 {"Object"},
		"{{ . }}":                                            {"Object", "Other", "Value"},
		"{{ $x := $ }}":                                      {"Object", "Other", "Value"},
		`{{ index . "Object" }}`:                             {"Object", "Other", "Value"},
		`{{ (.).Object }}`:                                   {"Object", "Other", "Value"},
	} {
		parsed := parse(t, template)
		var got []string
		for _, variable := range []string{"Object", "Other", "Value"} {
			if parsed.Uses(variable) {
				got = append(got, variable)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s uses %v, not %v", template, want, got)
		}
	}
}

func FuzzTemplate(f *testing.F) {
	for _, text := range []string{`{{ define "text" }}{{ end }}`, `{{/* a */}}`, `{{ .Object.metadata.name | upper }}`, `{{ range $k, $v := .Object.metadata.labels }}{{ $k }}{{ end }}`, `{{ toJson .Object }}`, `{{ with .Value }}{{ . }}{{ else }}{{ $.Object }}{{ end }}`,
		`{{ $x := list 1 }}{{ range 9 }}{{ $x = list $x $x }}{{ end }}{{ len $x }}`, `{{ printf "%v%5s" .Object.spec.ports "a" | trunc 5 | b64enc }}`, `{{ keys .Object | sortAlpha | join "," | replace "a" "b" | indent 3 }}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := expression.ParseTemplate(text, "Value", "Object", "Other")
		if err != nil {
			return
		}
		given := fields(t)
		got, err := parsed.Render(given)
		if !reflect.DeepEqual(given, fields(t)) {
			t.Fatalf("%q changes the variables", text)
		}
		again, errAgain := parsed.Render(fields(t))
		if got != again || (err == nil) != (errAgain == nil) {
			t.Fatalf("%q yields %q, %v and then %q, %v", text, got, err, again, errAgain)
		}
	})
}
