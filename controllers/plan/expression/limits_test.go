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

package expression

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/Masterminds/sprig/v3"
)

// excludedSprigFunctions are the functions of sprig that templates cannot call, by reason.
var excludedSprigFunctions = map[string]string{
	"depends on the environment or the platform": "env expandenv osBase osClean osDir osExt osIsAbs",
	"depends on the network":                     "getHostByName",
	"depends on the clock or a time zone": `ago date date_in_zone date_modify dateInZone dateModify htmlDate htmlDateInZone must_date_modify
		mustDateModify mustToDate now toDate unixEpoch`,
	"is random": `randAlpha randAlphaNum randAscii randBytes randInt randNumeric shuffle uuidv4 bcrypt htpasswd encryptAES genCA genCAWithKey
		genPrivateKey genSelfSignedCert genSelfSignedCertWithKey genSignedCert genSignedCertWithKey`,
	"is for secrets, which have no place in a template": "buildCustomCert decryptAES derivePassword",
	"changes its argument":                              "set unset merge mergeOverwrite mustMerge mustMergeOverwrite",
	"serves only what changes its argument":             "deepCopy mustDeepCopy",
	"makes much of little":                              "repeat seq until untilStep toPrettyJson mustToPrettyJson wrapWith",
	"is of no use":                                      "hello",
}

// A new version of sprig may add functions. Each must be added to one of the lists.
func TestEverySprigFunctionIsListed(t *testing.T) {
	all := sprig.GenericFuncMap()
	decided := map[string]bool{}
	for name, function := range templateFunctions() {
		if function == nil {
			t.Errorf("sprig has no function %s", name)
		}
		decided[name] = true
	}
	for reason, names := range excludedSprigFunctions {
		for name := range strings.FieldsSeq(names) {
			if decided[name] {
				t.Errorf("%s can be called, although it %s", name, reason)
			}
			if all[name] == nil {
				t.Errorf("sprig has no function %s to leave out", name)
			}
			decided[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !decided[name] {
			t.Errorf("no limit is decided for %s", name)
		}
	}
	if listed := Functions(); len(listed) != len(templateFunctions()) || !slices.IsSorted(listed) || !slices.Contains(listed, "sha3short") {
		t.Errorf("%v", listed)
	}
}

// Work that the limits do not foresee ends with the timeout, which is zero here.
func TestTimeout(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	compiled, err := CompileCEL(`lists.range(1000).all(x, x >= start)`, "start")
	if err != nil {
		t.Fatal(err)
	}
	variables := map[string]any{"start": int64(0)}
	if result, err := compiled.evaluate(ended, variables); err == nil || !strings.Contains(err.Error(), "context canceled") {
		t.Errorf("yields %v, %v", result, err)
	}
	if result, err := compiled.evaluate(t.Context(), variables); err != nil || result != true {
		t.Errorf("yields %v, %v", result, err)
	}

	for _, text := range []string{`{{ range 3 }}{{ end }}`, `{{ print .start }}`} {
		parsed, err := ParseTemplate(text, "start")
		if err != nil {
			t.Fatal(err)
		}
		if result, err := parsed.render(ended, variables); err == nil || !strings.Contains(err.Error(), "takes too long") {
			t.Errorf("%s yields %v, %v", text, result, err)
		}
		if result, err := parsed.render(t.Context(), variables); err != nil {
			t.Errorf("%s yields %v, %v", text, result, err)
		}
	}
}

// A panic that Go's templates do not recover is an error, and the template stays usable.
func TestPanic(t *testing.T) {
	parsed, err := ParseTemplate(`{{ range .value }}{{ . }}{{ end }}`, "value")
	if err != nil {
		t.Fatal(err)
	}
	panics := func(func(int) bool) { panic("out of order") }
	for range 2 {
		if got, err := parsed.Render(map[string]any{"value": panics}); got != "" || err == nil || !strings.Contains(err.Error(), "out of order") {
			t.Errorf("yields %q, %v", got, err)
		}
		if got, err := parsed.Render(map[string]any{"value": []any{"a"}}); err != nil || got != "a" {
			t.Errorf("yields %q, %v", got, err)
		}
	}
}

func FuzzReplaceAll(f *testing.F) {
	f.Add("a(.)", "abac", "${1}x")
	f.Add("", "abc", "-")
	f.Add("a*", "baac", "$0$0")
	f.Add(`(?P<first>\w)\w*`, "some words", "${first}.")
	f.Fuzz(func(t *testing.T, pattern, text, replacement string) {
		compiled, err := regexp.Compile(pattern)
		if err != nil {
			return
		}
		got, err := ReplaceAll(compiled, text, replacement)
		want := compiled.ReplaceAllString(text, replacement)
		// Results that may be refused although they would just fit.
		large := (len(text)+1)*(len(text)+1)*(len(replacement)+1) > maxSize
		if err != nil && !large || err == nil && got != want {
			t.Errorf("want %q, got %q, %v", want, got, err)
		}
		literal, err := regexReplaceLiteral(pattern, text, replacement)
		if want := compiled.ReplaceAllLiteralString(text, replacement); err == nil && literal != want {
			t.Errorf("want %q, got %q", want, literal)
		}
	})
}
