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
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

var (
	owner = ownership.Owner{Hub: "3c1f7d0e-hub", SyncTarget: "8a0b-target", Sealer: ownership.NewSealer([]byte("key"))}
	self  = ownership.Self{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}
)

func markOf(owner ownership.Owner, self ownership.Self) ownership.Mark {
	return ownership.Mark{
		Version:    ownership.MarkVersion,
		Hub:        owner.Hub,
		SyncTarget: owner.SyncTarget,
		Mailbox:    "2f5wd0xyz",
		Source:     ownership.Source{Group: "apps", Resource: "deployments", Namespace: "shop", Name: "web", UID: "77"},
		Self:       self,
		Policy:     ownership.PolicyDelete,
		Hash:       "1:abc",
	}
}

func TestMarkRoundTrip(t *testing.T) {
	full := markOf(owner, self)
	cluster := full
	cluster.Source = ownership.Source{Resource: "namespaces", Name: "shop", UID: "78"}
	cluster.Self = ownership.Self{Kind: "Namespace", Name: "shop"}
	orphan, createOnly := full, full
	orphan.Policy, createOnly.Policy = ownership.PolicyOrphan, ownership.PolicyCreateOnly
	up, adopted := full, full
	up.Direction, adopted.Adopted = ownership.DirectionUp, true
	odd := full
	odd.Self.Name, odd.Source.Name, odd.Ignored = `a"b\c`, "<é&\u2028>\t", "spec.replicas\nmetadata.annotations[\"example.org/x\"]"

	for name, mark := range map[string]ownership.Mark{
		"namespaced": full, "cluster-scoped core": cluster, "orphan": orphan, "create only": createOnly, "odd characters": odd,
		"up": up, "adopted": adopted,
	} {
		t.Run(name, func(t *testing.T) {
			parsed, err := ownership.ParseMark(mark.String())
			if err != nil {
				t.Fatalf("a mark written by this hub cannot be read: %v", err)
			}
			if parsed != mark {
				t.Errorf("read %+v, wrote %+v", parsed, mark)
			}
			if parsed.String() != mark.String() {
				t.Errorf("equal marks give %s and %s", parsed, mark)
			}
		})
	}
}

// The JSON form must keep every field: two fields with the same JSON name would be lost.
func TestMarkKeepsEveryField(t *testing.T) {
	zero := markOf(owner, self)
	paths := fieldPaths(reflect.TypeFor[ownership.Mark](), nil)
	if len(paths) < 17 {
		t.Fatalf("found only %d fields: %v", len(paths), paths)
	}
	for _, path := range paths {
		changed := zero
		switch field := reflect.ValueOf(&changed).Elem().FieldByIndex(path); field.Kind() {
		case reflect.String:
			field.SetString("changed")
		case reflect.Bool:
			field.SetBool(true)
		default:
			continue // the version has its own tests
		}
		parsed, err := ownership.ParseMark(changed.String())
		if err != nil {
			t.Fatalf("%v: %v", path, err)
		}
		if parsed != changed || parsed == zero {
			t.Errorf("field %v: read %+v, wrote %+v", path, parsed, changed)
		}
	}
}

func fieldPaths(typ reflect.Type, prefix []int) [][]int {
	if typ.Kind() != reflect.Struct {
		return [][]int{prefix}
	}
	var paths [][]int
	for index := range typ.NumField() {
		paths = append(paths, fieldPaths(typ.Field(index).Type, append(append([]int{}, prefix...), index))...)
	}
	return paths
}

func TestParseMarkRefuses(t *testing.T) {
	good := owner.Seal(markOf(owner, self))
	for name, test := range map[string]struct {
		annotation     string
		unknownVersion bool
	}{
		"nothing":            {annotation: ""},
		"text":               {annotation: "synchub"},
		"null":               {annotation: "null", unknownVersion: true},
		"a list":             {annotation: "[]"},
		"a number":           {annotation: "1"},
		"an empty object":    {annotation: "{}", unknownVersion: true},
		"a later version":    {annotation: strings.Replace(good, `"v":2`, `"v":3`, 1), unknownVersion: true},
		"the former version": {annotation: strings.Replace(good, `"v":2`, `"v":1`, 1), unknownVersion: true},
		"a negative version": {annotation: strings.Replace(good, `"v":2`, `"v":-1`, 1), unknownVersion: true},
		"a later version with fields of its own": {
			annotation: strings.Replace(good, `"v":2`, `"v":3,"shard":"x"`, 1), unknownVersion: true,
		},
		"a version as text":      {annotation: strings.Replace(good, `"v":2`, `"v":"2"`, 1)},
		"a fractional version":   {annotation: strings.Replace(good, `"v":2`, `"v":2.5`, 1)},
		"an unknown field":       {annotation: strings.Replace(good, `"v":2`, `"v":2,"shard":"x"`, 1)},
		"an unknown inner field": {annotation: strings.Replace(good, `"self":{`, `"self":{"uid":"1",`, 1)},
		"a wrong type":           {annotation: strings.Replace(good, `"mailbox":"2f5wd0xyz"`, `"mailbox":7`, 1)},
		"half a mark":            {annotation: good[:len(good)-1]},
		"two marks":              {annotation: good + good},
		"text after the mark":    {annotation: good + " x"},
		"a field in capitals":    {annotation: strings.Replace(good, `"hub"`, `"HUB"`, 1)},
		"no comma":               {annotation: strings.Replace(good, `,"policy"`, `"policy"`, 1)},
		"two commas":             {annotation: strings.Replace(good, `,"policy"`, `,,"policy"`, 1)},
		"a tab in a name":        {annotation: strings.Replace(good, "shop", "sh\top", 1)},
		"an unknown escape":      {annotation: strings.Replace(good, "shop", `sh\op`, 1)},
		"very deep":              {annotation: strings.Replace(good, `"self":`, `"self":`+strings.Repeat(`{"x":`, 100_000), 1)},
	} {
		t.Run(name, func(t *testing.T) {
			if test.annotation == good {
				t.Fatal("the case does not change the mark")
			}
			mark, err := ownership.ParseMark(test.annotation)
			if err == nil {
				t.Fatalf("accepted %s", test.annotation)
			}
			if mark != (ownership.Mark{}) {
				t.Errorf("returned %+v with the error", mark)
			}
			if errors.Is(err, ownership.ErrUnknownVersion) != test.unknownVersion {
				t.Errorf("unknown version: want %v, got %v", test.unknownVersion, err)
			}
		})
	}
}

// A parsed mark must be a mark that this hub can write, so that writing it again loses nothing.
func FuzzParseMark(f *testing.F) {
	f.Add(markOf(owner, self).String())
	f.Add(owner.Seal(markOf(owner, self)))
	for _, seed := range []string{
		"", "null", "{}", "[]", `{"v":2}`, `{"v":2,"x":1}`, `{"v":2,"V":1}`, `{"v":2}{"v":1}`,
		`{"v":2,"self":{"kind":null}}`, `{"v":9999999999999999999}`, "{\"v\":2,\"hub\":\"\xff\"}",
		`{"v":2,"self":` + strings.Repeat("[", 20_000), `{"v":2,"source":{"group":""}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, annotation string) {
		mark, err := ownership.ParseMark(annotation)
		if err != nil {
			if mark != (ownership.Mark{}) {
				t.Errorf("%q: %+v with error %v", annotation, mark, err)
			}
			return
		}
		if mark.Version != ownership.MarkVersion {
			t.Errorf("%q: accepted version %d", annotation, mark.Version)
		}
		if !json.Valid([]byte(annotation)) {
			t.Errorf("%q: accepted, but not JSON", annotation)
		}
		again, err := ownership.ParseMark(mark.String())
		if err != nil || again != mark {
			t.Errorf("%q: read %+v, written and read again %+v, %v", annotation, mark, again, err)
		}
	})
}

func TestMarkKeepsTheSourceVersion(t *testing.T) {
	mark := ownership.Mark{Version: ownership.MarkVersion, Hub: "hub", Hash: "1:abc", SourceVersion: 12345}
	parsed, err := ownership.ParseMark(mark.String())
	if err != nil || parsed != mark {
		t.Errorf("got %+v, %v", parsed, err)
	}
}
