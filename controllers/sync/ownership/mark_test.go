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

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/sync/ownership"
)

var (
	owner = ownership.Owner{Hub: "3c1f7d0e-hub", SyncTarget: "8a0b-target"}
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
	odd := full
	odd.Self.Name, odd.Source.Name = `a"b\c`, "<é&\u2028>"

	for name, mark := range map[string]ownership.Mark{
		"namespaced": full, "cluster-scoped core": cluster, "orphan": orphan, "create only": createOnly, "odd characters": odd,
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

// Every field must survive: one without a JSON name of its own would be lost or would shadow another.
func TestMarkKeepsEveryField(t *testing.T) {
	zero := markOf(owner, self)
	paths := fieldPaths(reflect.TypeFor[ownership.Mark](), nil)
	if len(paths) < 15 {
		t.Fatalf("found only %d fields: %v", len(paths), paths)
	}
	for _, path := range paths {
		changed := zero
		field := reflect.ValueOf(&changed).Elem().FieldByIndex(path)
		if field.Kind() != reflect.String {
			continue // the version, which has its own tests
		}
		field.SetString("changed")
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
	good := markOf(owner, self).String()
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
		"a later version":    {annotation: strings.Replace(good, `"v":1`, `"v":2`, 1), unknownVersion: true},
		"a negative version": {annotation: strings.Replace(good, `"v":1`, `"v":-1`, 1), unknownVersion: true},
		"a later version with fields of its own": {
			annotation: strings.Replace(good, `"v":1`, `"v":2,"shard":"x"`, 1), unknownVersion: true,
		},
		"a version as text":      {annotation: strings.Replace(good, `"v":1`, `"v":"1"`, 1)},
		"a fractional version":   {annotation: strings.Replace(good, `"v":1`, `"v":1.5`, 1)},
		"an unknown field":       {annotation: strings.Replace(good, `"v":1`, `"v":1,"shard":"x"`, 1)},
		"an unknown inner field": {annotation: strings.Replace(good, `"self":{`, `"self":{"uid":"1",`, 1)},
		"a wrong type":           {annotation: strings.Replace(good, `"mailbox":"2f5wd0xyz"`, `"mailbox":7`, 1)},
		"half a mark":            {annotation: good[:len(good)-1]},
		"two marks":              {annotation: good + good},
		"text after the mark":    {annotation: good + " x"},
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

// A mark that is read must be one that this hub could have written, so that writing it again loses nothing.
func FuzzParseMark(f *testing.F) {
	f.Add(markOf(owner, self).String())
	for _, seed := range []string{
		"", "null", "{}", "[]", `{"v":1}`, `{"v":2}`, `{"v":1,"x":1}`, `{"v":1,"V":1}`, `{"v":1}{"v":1}`,
		`{"v":1,"self":{"kind":null}}`, `{"v":9999999999999999999}`, "{\"v\":1,\"hub\":\"\xff\"}",
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

func TestVerify(t *testing.T) {
	otherHub, otherTarget := owner, owner
	otherHub.Hub, otherTarget.SyncTarget = "another", "another"
	// What a Deployment's controller makes carries the Deployment's annotations.
	replicaSet := ownership.Self{Group: "apps", Kind: "ReplicaSet", Namespace: "shop", Name: "web-5d9"}
	marked := func(mark ownership.Mark) map[string]string {
		return map[string]string{"a": "b", ownership.MarkAnnotation: mark.String()}
	}
	for name, test := range map[string]struct {
		annotations map[string]string
		self        ownership.Self
		want        error
	}{
		"ours":                        {marked(markOf(owner, self)), self, nil},
		"no annotations":              {nil, self, ownership.ErrUnmarked},
		"no mark":                     {map[string]string{"a": "b"}, self, ownership.ErrUnmarked},
		"ensured is not owned":        {map[string]string{ownership.EnsuredAnnotation: owner.LabelValue()}, self, ownership.ErrUnmarked},
		"another hub":                 {marked(markOf(otherHub, self)), self, ownership.ErrForeign},
		"another SyncTarget":          {marked(markOf(otherTarget, self)), self, ownership.ErrForeign},
		"copied to a child":           {marked(markOf(owner, self)), replicaSet, ownership.ErrCopied},
		"copied to another group":     {marked(markOf(owner, self)), ownership.Self{Group: "extensions", Kind: self.Kind, Namespace: self.Namespace, Name: self.Name}, ownership.ErrCopied},
		"copied to another kind":      {marked(markOf(owner, self)), ownership.Self{Group: self.Group, Kind: "StatefulSet", Namespace: self.Namespace, Name: self.Name}, ownership.ErrCopied},
		"copied to another namespace": {marked(markOf(owner, self)), ownership.Self{Group: self.Group, Kind: self.Kind, Namespace: "shop2", Name: self.Name}, ownership.ErrCopied},
		"copied to another name":      {marked(markOf(owner, self)), ownership.Self{Group: self.Group, Kind: self.Kind, Namespace: self.Namespace, Name: "web2"}, ownership.ErrCopied},
		"of a newer hub":              {map[string]string{ownership.MarkAnnotation: `{"v":2}`}, self, ownership.ErrUnknownVersion},
	} {
		t.Run(name, func(t *testing.T) {
			mark, err := owner.Verify(test.annotations, test.self)
			if !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
				t.Fatalf("want %v, got %v", test.want, err)
			}
			if want := markOf(owner, self); err == nil && mark != want {
				t.Errorf("want %+v, got %+v", want, mark)
			}
			if err != nil && mark != (ownership.Mark{}) {
				t.Errorf("returned %+v with the error", mark)
			}
		})
	}
	if _, err := owner.Verify(map[string]string{ownership.MarkAnnotation: "{"}, self); err == nil {
		t.Error("accepted a mark that cannot be read")
	}
}

func FuzzVerify(f *testing.F) {
	f.Add(markOf(owner, self).String(), self.Group, self.Kind, self.Namespace, self.Name)
	f.Add(markOf(owner, self).String(), self.Group, "ReplicaSet", self.Namespace, self.Name)
	f.Add("{}", "", "", "", "")
	f.Fuzz(func(t *testing.T, annotation, group, kind, namespace, name string) {
		bearer := ownership.Self{Group: group, Kind: kind, Namespace: namespace, Name: name}
		mark, err := owner.Verify(map[string]string{ownership.MarkAnnotation: annotation}, bearer)
		if err == nil && (mark.Self != bearer || mark.Hub != owner.Hub || mark.SyncTarget != owner.SyncTarget) {
			t.Errorf("took %+v for ours on %+v", mark, bearer)
		}
	})
}

func TestLabelValueAndFieldManager(t *testing.T) {
	uids := []types.UID{"", "a", "b", "ab", "3c1f7d0e-0000-4000-8000-000000000001", types.UID(strings.Repeat("x", 4096)), "ünïcode\x00"}
	labels := map[string]ownership.Owner{}
	managers := map[string]types.UID{}
	for _, hub := range uids {
		manager := ownership.FieldManager(hub)
		// The limit and the alphabet are those of the API server for fieldManager.
		if len(manager) > 128 || strings.ContainsFunc(manager, func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.Errorf("hub %q: illegal field manager %q", hub, manager)
		}
		if !strings.HasPrefix(manager, "synchub-") || manager != ownership.FieldManager(hub) {
			t.Errorf("hub %q: field manager %q", hub, manager)
		}
		if other, taken := managers[manager]; taken {
			t.Errorf("hubs %q and %q share the field manager %q", hub, other, manager)
		}
		managers[manager] = hub
		for _, syncTarget := range uids {
			candidate := ownership.Owner{Hub: hub, SyncTarget: syncTarget}
			label := candidate.LabelValue()
			if problems := content.IsLabelValue(label); label == "" || len(problems) > 0 {
				t.Errorf("%+v: illegal label value %q: %v", candidate, label, problems)
			}
			if label != candidate.LabelValue() {
				t.Errorf("%+v: the label value changes", candidate)
			}
			if other, taken := labels[label]; taken {
				t.Errorf("%+v and %+v share the label value %q", candidate, other, label)
			}
			labels[label] = candidate
		}
	}
	for _, key := range []string{ownership.OwnerLabel, ownership.MarkAnnotation, ownership.EnsuredAnnotation} {
		if problems := content.IsLabelKey(key); len(problems) > 0 {
			t.Errorf("illegal key %q: %v", key, problems)
		}
	}
}
