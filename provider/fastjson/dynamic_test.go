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

package fastjson

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/test/fixtures"
)

// defaultSerializer returns the JSON serializer of the dynamic client.
func defaultSerializer(tb testing.TB) runtime.Serializer {
	tb.Helper()
	for _, info := range dynamic.ConfigFor(&rest.Config{}).NegotiatedSerializer.SupportedMediaTypes() {
		if info.MediaType == runtime.ContentTypeJSON {
			return info.Serializer
		}
	}
	tb.Fatal("the dynamic client does not speak JSON")
	return nil
}

// Any data is decoded as the dynamic client decodes it, and refused if the dynamic client refuses it.
func FuzzDecode(f *testing.F) {
	for _, kind := range fixtures.All() {
		text, err := kind.TargetObject(f, "hub", kind.MailboxObject(f)).MarshalJSON()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
		f.Add(fmt.Sprintf(`{"apiVersion": "v1", "kind": "%sList", "metadata": {"resourceVersion": "7"}, "items": [%s, {"data": {}}]}`, kind.Kind, text))
	}
	for _, text := range []string{
		`{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "Conflict", "code": 409}`,
		`{"kind": "Status", "status": "Failure"}`, `{"apiVersion": "example.com/v1", "kind": "Status", "code": 1}`,
		`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"resourceVersion": "7"}}`, `{"apiVersion": "v1", "kind": "ConfigMap", "n": [1, 1.0, 1e30, null]}`,
		`{"kind": "ConfigMap"}`, `{"apiVersion": "v1"}`, `{}`, `[]`, `null`, `"a"`, "", "no JSON", `{"apiVersion": "v1", "kind": "A"} {}`,
		`{"apiVersion": 1, "kind": "A"}`, `{"apiVersion": "a/b/c", "kind": "A"}`, `{"apiVersion": "v1", "kind": "AList", "items": 1}`,
	} {
		f.Add(text)
	}
	plain := defaultSerializer(f)
	f.Fuzz(func(t *testing.T, text string) {
		for name, into := range map[string]func() runtime.Object{
			"nothing":   func() runtime.Object { return nil },
			"an object": func() runtime.Object { return &unstructured.Unstructured{} },
			"a list":    func() runtime.Object { return &unstructured.UnstructuredList{} },
		} {
			defaults := &schema.GroupVersionKind{Version: "v1"}
			want, wantKind, wantErr := plain.Decode([]byte(text), defaults, into())
			got, kind, err := fastSerializer{plain}.Decode([]byte(text), defaults, into())
			if (err == nil) != (wantErr == nil) {
				t.Fatalf("%q into %s: want error %v, got %v", text, name, wantErr, err)
			}
			if err == nil && (!reflect.DeepEqual(got, want) || *kind != *wantKind) {
				t.Errorf("%q into %s: want %T %v of kind %v, got %T %v of kind %v", text, name, want, want, wantKind, got, got, kind)
			}
		}
	})
}

// Requests read the media types concurrently. They never change, and the default ones are not modified.
func TestMediaTypes(t *testing.T) {
	usual := dynamic.ConfigFor(&rest.Config{}).NegotiatedSerializer
	before := slices.Clone(usual.SupportedMediaTypes())
	ours := withFastDecoders(usual, nil)
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			for _, info := range ours.SupportedMediaTypes() {
				if serializer, ok := info.Serializer.(fastSerializer); !ok || reflect.TypeOf(serializer.Serializer) == reflect.TypeFor[fastSerializer]() {
					t.Errorf("%s is decoded by %T", info.MediaType, info.Serializer)
				}
				if _, ok := info.StreamSerializer.Serializer.(watchEventSerializer); !ok {
					t.Errorf("events of a watch with %s are decoded by %T", info.MediaType, info.StreamSerializer.Serializer)
				}
				if _, ok := info.StreamSerializer.Framer.(framer); !ok {
					t.Errorf("events of a watch with %s are split by %T", info.MediaType, info.StreamSerializer.Framer)
				}
			}
		})
	}
	asking.Wait()
	if !reflect.DeepEqual(usual.SupportedMediaTypes(), before) {
		t.Error("the usual media types have changed")
	}
}

func BenchmarkDecode(b *testing.B) {
	plain := defaultSerializer(b)
	for _, kind := range fixtures.All() {
		text, err := kind.TargetObject(b, "hub", kind.MailboxObject(b)).MarshalJSON()
		if err != nil {
			b.Fatal(err)
		}
		for name, decoder := range map[string]runtime.Decoder{"usual": plain, "once": fastSerializer{plain}} {
			b.Run(name+"/"+kind.Kind, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, _, err := decoder.Decode(text, nil, nil); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
