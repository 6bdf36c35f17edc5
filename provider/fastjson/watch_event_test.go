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
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	restclientwatch "k8s.io/client-go/rest/watch"

	"github.com/synchub-dev/synchub/test/fixtures"
)

// defaultStreamSerializer returns the stream serializer of the dynamic client.
func defaultStreamSerializer(tb testing.TB) *runtime.StreamSerializerInfo {
	tb.Helper()
	for _, info := range dynamic.ConfigFor(&rest.Config{}).NegotiatedSerializer.SupportedMediaTypes() {
		if info.MediaType == runtime.ContentTypeJSON {
			return info.StreamSerializer
		}
	}
	tb.Fatal("the dynamic client does not watch in JSON")
	return nil
}

// hasUnusualKind reports whether a text has a kind or version only if the case of letters is ignored.
func hasUnusualKind(text string) bool {
	var fields map[string]any
	if json.Unmarshal([]byte(text), &fields) != nil {
		return false
	}
	for field := range fields {
		for _, exact := range []string{"kind", "apiVersion"} {
			if field != exact && strings.EqualFold(field, exact) {
				return true
			}
		}
	}
	return false
}

// Any event is decoded as the dynamic client decodes it, and refused if the dynamic client refuses it.
func FuzzDecodeEvent(f *testing.F) {
	for _, text := range []string{
		`{"type": "ADDED", "object": {"apiVersion": "v1", "kind": "ConfigMap", "n": 1}}`, `{"type": "BOOKMARK", "object": {}}`,
		`{"type": "ERROR", "object": {"apiVersion": "v1", "kind": "Status", "code": 410}}`, `{"apiVersion": "v1", "kind": "Status", "code": 410}`,
		`{"apiVersion": "v1", "kind": "WatchEvent", "type": "ADDED", "object": {}}`, `{"kind": "Other", "type": "ADDED", "object": {}}`,
		`{"Type": "ADDED", "OBJECT": {}}`, `{"type": "ADDED"}`, `{"type": "ADDED", "object": null}`, `{"type": 1, "object": {}}`, `{"kind": 1, "type": "ADDED"}`,
		`{"type": "ADDED", "object": {}} {}`, `{"type": "ADDED", "object": {}, "more": [1]}`, `{}`, `[]`, `null`, `"a"`, "", "no JSON", `{"type": "ADDED", "type": "DELETED"}`,
		`{"type":"ADDED","object":{"apiVersion":"v1","kind":"ConfigMap","s":"}\"\\\\"}}` + "\n", `{"type":"ADDED","object":{"n":{}}` + "\n" + `} `,
		`{"type":"ADDED","object":{}}}`, `{"type":"ADDED","object":{},"more":1}`, `{"type":"ADDED","object":{},"type":"DELETED"}`, `{"type":"ADDED","object":null}`,
		`{"type":"ADDED","object":}`, `{"type":"ADDED","object":{"a":]}}`, `{"type":"ADD\u0045D","object":{}}`, `{"type":"","object":{}}`, `{"type":"A","object":{}`,
		`{"type":"A","object":{"apiVersion":"v1","kind":"Status","code":410}}`, "{\"type\":\"A\",\"object\":\u0085{}}", `{"type":"A","object":{},"kind":"B"}`,
	} {
		f.Add(text)
	}
	plain, object := defaultStreamSerializer(f).Serializer, defaultSerializer(f)
	f.Fuzz(func(t *testing.T, text string) {
		if hasUnusualKind(text) {
			return
		}
		var want, got metav1.WatchEvent
		wanted, wantKind, wantErr := plain.Decode([]byte(text), nil, &want)
		decoded, kind, err := watchEventSerializer{plain}.Decode([]byte(text), nil, &got)
		if wantErr != nil && err == nil {
			// The envelope is decoded without the object, which is decoded next.
			_, _, err = fastSerializer{object}.Decode(got.Object.Raw, nil, nil)
		}
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: want error %v, got %v", text, wantErr, err)
		}
		if wantErr == nil && (decoded == &got) != (wanted == &want) {
			t.Fatalf("%q: want the event to be used: %t, got %t", text, wanted == &want, decoded == &got)
		}
		if err == nil && (!reflect.DeepEqual(got, want) || *kind != *wantKind) {
			t.Errorf("%q: want %v of kind %v, got %v of kind %v", text, want, wantKind, got, kind)
		}
	})
}

// A decoded event does not change when the next event is read into the same buffer.
func TestEventsOutliveTheirText(t *testing.T) {
	const events = `{"type":"ADDED","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"},"data":{"a":"1"}}}` + "\n" +
		`{"type":"ADDED","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"two"},"data":{"b":"2"}}}` + "\n"
	stream := framer{}.NewFrameReader(io.NopCloser(strings.NewReader(events)))
	watch := restclientwatch.NewDecoder(streaming.NewDecoder(stream, watchEventSerializer{defaultStreamSerializer(t).Serializer}), fastSerializer{defaultSerializer(t)})
	_, first, err := watch.Decode()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := watch.Decode(); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(first)
	if want := `{"apiVersion":"v1","data":{"a":"1"},"kind":"ConfigMap","metadata":{"name":"one"}}`; err != nil || strings.TrimSpace(string(got)) != want {
		t.Errorf("want %s, got %s, %v", want, got, err)
	}
}

func BenchmarkDecodeEvent(b *testing.B) {
	plain := defaultStreamSerializer(b).Serializer
	kind := fixtures.All()[0]
	text, err := kind.TargetObject(b, "hub", kind.MailboxObject(b)).MarshalJSON()
	if err != nil {
		b.Fatal(err)
	}
	event := fmt.Appendf(nil, `{"type":"MODIFIED","object":%s}`, text)
	for name, decoder := range map[string]runtime.Decoder{"usual": plain, "envelope": watchEventSerializer{plain}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var into metav1.WatchEvent
				if _, _, err := decoder.Decode(event, nil, &into); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
