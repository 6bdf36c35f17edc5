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

package get

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
)

func TestObjectFilter(t *testing.T) {
	for name, test := range map[string]struct {
		fields, namespace string
		names             []string
		server            string
		want              []string
	}{
		"nothing":               {want: []string{"a/x", "a/y", "b/x"}},
		"a namespace":           {namespace: "a", want: []string{"a/x", "a/y"}},
		"a name":                {names: []string{"x"}, want: []string{"a/x", "b/x"}},
		"names and a namespace": {names: []string{"x", "z"}, namespace: "b", want: []string{"b/x"}},
		"metadata fields":       {fields: "metadata.namespace!=b,metadata.name=x", want: []string{"a/x"}},
		"other fields":          {fields: "type=a,metadata.name!=x,reason!=b", server: "reason!=b,type=a", want: []string{"a/y"}},
	} {
		t.Run(name, func(t *testing.T) {
			filter := newObjectFilter("", fields.ParseSelectorOrDie(test.fields), test.names)
			filter.namespace = test.namespace
			var got []string
			for _, key := range []string{"a/x", "a/y", "b/x"} {
				namespace, name, _ := strings.Cut(key, "/")
				if filter.matches(&metav1.ObjectMeta{Namespace: namespace, Name: name}) {
					got = append(got, key)
				}
			}
			g := NewWithT(t)
			g.Expect(got).To(Equal(test.want))
			g.Expect(filter.listOptions(false, "").FieldSelector).To(Equal(test.server))
		})
	}
}

func TestWithUniqueNames(t *testing.T) {
	got := withUniqueNames(map[string]string{"one": "florin", "two": "florin", "three": "guilder"})
	NewWithT(t).Expect(got).To(Equal(map[string]string{"one": "florin@one", "two": "florin@two", "three": "guilder"}))
}

func TestEndpointsMustBeServers(t *testing.T) {
	for _, url := range []string{"http://kcp.example.com/services", "https:///services", "https://user@kcp.example.com", "kcp.example.com", "\x00"} {
		if _, err := newMailboxesEndpoint(&rest.Config{}, url); err == nil {
			t.Errorf("%q is an endpoint", url)
		}
	}
}
