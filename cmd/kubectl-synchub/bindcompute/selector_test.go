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

package bindcompute

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func TestParseSelector(t *testing.T) {
	for text, valid := range map[string]bool{
		"": true, "a": true, "!a": true, "a=b": true, "a==b,c=d": true, "a!=b": true, "a in (b,c),d notin (e)": true, "a=b,a=c": true, "a=": true, "example.com/a=b": true,
		"a>1": false, "a<1": false, "a=b=c": false, "a in b": false, "-=b": false,
	} {
		selector, err := ParseSelector(text)
		if (err == nil) != valid {
			t.Errorf("%q: %v", text, err)
		}
		if err != nil {
			continue
		}
		// Both select the same.
		got, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		want, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, set := range []labels.Set{{}, {"a": "b"}, {"a": "c"}, {"a": ""}, {"a": "b", "c": "d"}, {"a": "b", "d": "e"}, {"d": "e"}, {"example.com/a": "b"}} {
			if got.Matches(set) != want.Matches(set) {
				t.Errorf("%q becomes %q, and they differ on %v", text, got, set)
			}
		}
	}
}
