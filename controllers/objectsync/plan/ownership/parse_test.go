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

package ownership

import (
	"strings"
	"testing"
)

// marks are one with all that a mark can have, and one with no more than it must.
var marks = map[string]Mark{
	"full": {
		Version: MarkVersion, Hub: "3c1f7d0e-hub", SyncTarget: "8a0b-target", Mailbox: "2f5wd0xyz",
		Source: Source{Group: "apps", Resource: "deployments", Namespace: "shop", Name: "web", UID: "77"},
		Self:   Self{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"},
		Policy: PolicyDelete, Hash: "1:abc", Direction: DirectionUp, Adopted: true, Ignored: "spec.replicas", Relation: "deployments/config",
	},
	"bare": {
		Version: MarkVersion, Hub: "3c1f7d0e-hub", SyncTarget: "8a0b-target", Mailbox: "2f5wd0xyz",
		Source: Source{Resource: "namespaces", Name: "shop", UID: "78"}, Self: Self{Kind: "Namespace", Name: "shop"},
		Policy: PolicyDelete, Hash: "1:abc",
	},
	"empty": {Version: MarkVersion},
	"odd": {
		Version: MarkVersion, Source: Source{Name: "a\"b\\c"}, Self: Self{Name: "<é&\u2028>\t"},
		Ignored: "spec.replicas\nmetadata.annotations[\"example.org/x\"]",
	},
}

func TestParseCanonicalMark(t *testing.T) {
	for name, mark := range marks {
		for _, text := range []string{mark.String(), Owner{Sealer: NewSealer([]byte("key"))}.Seal(mark)} {
			if read, ok := parseCanonicalMark(text); !ok || read != mark {
				t.Errorf("%s: wrote %+v, read %+v, %t", name, mark, read, ok)
			}
		}
	}
}

// What stands otherwise is for the reader of any JSON.
func TestParseCanonicalMarkRefusesOtherForms(t *testing.T) {
	good := marks["full"].String()
	for name, text := range map[string]string{
		"a tab":          strings.Replace(good, "shop", "sh\top", 1),
		"a blank":        strings.Replace(good, `,"self"`, `, "self"`, 1),
		"another order":  strings.Replace(good, `"policy":"Delete","hash":"1:abc"`, `"hash":"1:abc","policy":"Delete"`, 1),
		"no comma":       strings.Replace(good, `,"policy"`, `"policy"`, 1),
		"two commas":     strings.Replace(good, `,"policy"`, `,,"policy"`, 1),
		"a first comma":  strings.Replace(good, `"source":{`, `"source":{,`, 1),
		"a last comma":   strings.Replace(good, `},"self"`, `,},"self"`, 1),
		"not adopted":    strings.Replace(good, `"adopted":true`, `"adopted":false`, 1),
		"no escape":      strings.Replace(good, "shop", `sh\op`, 1),
		"an open escape": good[:len(good)-2] + `\`,
		"half":           good[:len(good)/2],
		"no end":         strings.TrimSuffix(good, "}"),
		"more":           good + "}",
		"a later format": strings.Replace(good, `"v":2`, `"v":22`, 1),
	} {
		if text == good {
			t.Fatalf("%s: the case does not change the mark", name)
		}
		if mark, ok := parseCanonicalMark(text); ok {
			t.Errorf("%s: read %+v from %s", name, mark, text)
		}
	}
}

// What is read as it was written is read like any JSON.
func FuzzParseCanonicalMark(f *testing.F) {
	for _, mark := range marks {
		f.Add(mark.String())
		f.Add(Owner{}.Seal(mark))
	}
	f.Add(strings.Replace(marks["bare"].String(), `"source":{`, `"source":{"group":"",`, 1))
	f.Fuzz(func(t *testing.T, annotation string) {
		mark, ok := parseCanonicalMark(annotation)
		if !ok {
			return
		}
		if want, err := parseMarkJSON(annotation, MarkVersion); err != nil || mark != want {
			t.Errorf("%q: read %+v, want %+v, %v", annotation, mark, want, err)
		}
	})
}
