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
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	restclientwatch "k8s.io/client-go/rest/watch"

	"github.com/synchub-dev/synchub/test/fixtures"
)

// dropsForeign drops the objects of one mailbox.
var dropsForeign = &Filter{Annotation: "kcp.io/cluster", Drops: func(value []byte) bool { return string(value) == "foreign" }}

func TestDropsEvent(t *testing.T) {
	const foreign = `"metadata":{"annotations":{"kcp.io/cluster":"foreign"}}`
	for event, want := range map[string]bool{
		`{"type":"ADDED","object":{` + foreign + `}}`: true,
		`{"type":"MODIFIED","object":{"data":{"a":"}\"{\\"},"n":[1,-2.5e3,{"x":[]}],"b":true,"z":null,` + foreign + `,"status":{}}}`:           true,
		"{\n \"object\" : { " + foreign + " } , \"type\" : \"DELETED\" }\n":                                                                    true,
		`{"type":"ADDED","object":{"metadata":{"annotations":{"kcp.io/cluster":"own"}}}}`:                                                      false,
		`{"type":"BOOKMARK","object":{` + foreign + `}}`:                                                                                       false,
		`{"type":"ERROR","object":{"kind":"Status","code":410}}`:                                                                               false,
		`{"type":"ADDED","object":{"metadata":{}}}`:                                                                                            false,
		`{"type":"ADDED","object":{"metadata":{"annotations":null}}}`:                                                                          false,
		`{"type":"ADDED","object":{"metadata":{"annotations":{"kcp.io/cluster":1}}}}`:                                                          false,
		`{"type":"ADDED","object":{"spec":{` + foreign + `},"metadata":{"annotations":{"kcp.io/cluster":"own"}}}}`:                             false,
		`{"type":"ADDED","object":{"metadata":{"labels":{"kcp.io/cluster":"foreign"},"annotations":{"a":"\",\"kcp.io/cluster\":\"foreign"}}}}`: false,
		`{"type":"ADDED","object":{"metadata":{"annotations":{"kcp.io/cluster":"foreign`:                                                       false,
		`{"type":"ADDED","object":{"a":}}`:                                                                                                     false,
		`{"type":"ADDED","object":[`:                                                                                                           false,
		`{"type":"ADDED"`:                                                                                                                      false,
		``:                                                                                                                                     false,
	} {
		if got := dropsForeign.dropsEvent([]byte(event)); got != want {
			t.Errorf("%s: want %t, got %t", event, want, got)
		}
	}
}

// The annotation of an object alone decides whether the object is dropped, and a list keeps all other objects.
func FuzzFilter(f *testing.F) {
	f.Add("key", "value", "foreign", "own")
	f.Add(`"kcp.io/cluster":"foreign"`, `\"},{`, "own", "foreign")
	f.Add("kcp.io/cluster", "foreign", `\"`, "")
	f.Add("]", "[", "foreign", "foreign")
	f.Fuzz(func(t *testing.T, key, value, first, second string) {
		var items, want []any
		for _, mailbox := range []string{first, second, first} {
			object := map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{key: value}, "spec": map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}},
				"metadata": map[string]any{"labels": map[string]any{key: value}, "annotations": map[string]any{key + "!": value, "kcp.io/cluster": mailbox}},
			}
			items = append(items, object)
			text, err := json.Marshal(map[string]any{"type": "ADDED", "object": object})
			if err != nil {
				t.Fatal(err)
			}
			isForeign := mailbox == "foreign"
			if got := dropsForeign.dropsEvent(text); got != isForeign {
				t.Errorf("%s: want %t, got %t", text, isForeign, got)
			}
			if !isForeign {
				want = append(want, object)
			}
		}
		list := func(items []any) []byte {
			if items == nil {
				items = []any{}
			}
			text, err := json.Marshal(map[string]any{"apiVersion": "v1", "items": items, "kind": "List", "metadata": map[string]any{"continue": key}})
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		if got, want := dropsForeign.dropItems(list(items)), list(want); !bytes.Equal(got, want) {
			t.Errorf("want %s, got %s", want, got)
		}
	})
}

// A list that cannot be read is refused by its decoder.
func TestDropItemsOfAnUnreadableList(t *testing.T) {
	const foreign = `{"metadata":{"annotations":{"kcp.io/cluster":"foreign"}}}`
	for _, text := range []string{`{"items":[` + foreign, `{"items":[` + foreign + `,`, `{"items":[` + foreign + `,}`, `{"items":[` + foreign + `,]}`, `{"items":[` + foreign + ` ` + foreign + `]}`, `{"items":{}`, `[`, ``} {
		if got := dropsForeign.dropItems([]byte(text)); json.Valid(got) {
			t.Errorf("%q became %q", text, got)
		}
	}
	for text, want := range map[string]string{`{"items":[]}`: `{"items":[]}`, `{"kind":"Status"}`: `{"kind":"Status"}`, `{ "items" : [ ` + foreign + ` , 1 ] , "a":2}`: `{ "items" : [1 ] , "a":2}`} {
		if got := dropsForeign.dropItems([]byte(text)); string(got) != want {
			t.Errorf("%q: want %q, got %q", text, want, got)
		}
	}
}

// decodingOf returns the watch decoder of a client with the filter.
func decodingOf(tb testing.TB, filter *Filter, stream io.Reader) *restclientwatch.Decoder {
	tb.Helper()
	reader := framer{filter: filter}.NewFrameReader(io.NopCloser(stream))
	return restclientwatch.NewDecoder(streaming.NewDecoder(reader, watchEventSerializer{defaultStreamSerializer(tb).Serializer}), fastSerializer{defaultSerializer(tb)})
}

// eventOf returns an event of a ConfigMap of a mailbox at a resource version.
func eventOf(tb testing.TB, mailbox string, version int) []byte {
	tb.Helper()
	kind := fixtures.All()[0]
	object := kind.MailboxObject(tb)
	object.SetAnnotations(map[string]string{"kcp.io/cluster": mailbox})
	object.SetResourceVersion(fmt.Sprint(version))
	text, err := object.MarshalJSON()
	if err != nil {
		tb.Fatal(err)
	}
	return fmt.Appendf(nil, `{"type":"MODIFIED","object":%s}`+"\n", bytes.TrimSpace(text))
}

// The reader of a watch gets all kept events, in order, and bookmarks in place of dropped ones.
func TestAWatchDropsEvents(t *testing.T) {
	var stream bytes.Buffer
	stream.Write(eventOf(t, "own", 1))
	for version := range 2*bookmarkInterval + 1 {
		stream.Write(eventOf(t, "foreign", 10+version))
	}
	stream.Write(eventOf(t, "own", 1000))
	stream.WriteString(`{"type":"ADDED","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"kcp.io/cluster":"foreign"},"a":"` +
		strings.Repeat("x", 1<<20) + `","resourceVersion":"1001"}}}`)
	watched := decodingOf(t, dropsForeign, &stream)
	var got []string
	for {
		kind, object, err := watched.Decode()
		if err != nil {
			if err != io.EOF { //nolint:errorlint // as client-go compares it
				t.Error(err)
			}
			break
		}
		got = append(got, fmt.Sprint(kind, " ", object.(*unstructured.Unstructured).GetResourceVersion()))
	}
	// The last one is larger than the buffer was, so that it is not dropped.
	want := []string{"MODIFIED 1", "BOOKMARK 10", "BOOKMARK 110", "BOOKMARK 210", "MODIFIED 1000", "ADDED 1001"}
	if !slices.Equal(got, want) {
		t.Errorf("want %q, got %q", want, got)
	}
}

// Large events are released although they are dropped.
func TestDroppedEventsReleaseTheLimiter(t *testing.T) {
	long := `{"type":"ADDED","object":{"metadata":{"annotations":{"kcp.io/cluster":"foreign"}},"a":"` + strings.Repeat("x", LargeThreshold) + `"}}`
	stream := &recordingLimiter{ReadCloser: io.NopCloser(strings.NewReader(long + long + `{"a":1}`))}
	into := make([]byte, 2*LargeThreshold)
	read, err := framer{filter: dropsForeign}.NewFrameReader(stream).Read(into)
	checked := fmt.Sprint(len(long), " bytes, 0 values")
	if want := []string{checked, "decoded", checked, "decoded"}; string(into[:read]) != `{"a":1}` || err != nil || !slices.Equal(stream.calls, want) {
		t.Errorf("want %q, got %q, %q, %v", want, stream.calls, into[:read], err)
	}
}

// A dropped event allocates nothing; one in bookmarkInterval becomes a bookmark.
func TestDroppedEventsAreNotDecoded(t *testing.T) {
	foreign, own := eventOf(t, "foreign", 1), eventOf(t, "own", 1)
	countOf := func(filter *Filter, text []byte) float64 {
		watched := decodingOf(t, filter, &endlessReader{text: text})
		decode := func() {
			if _, _, err := watched.Decode(); err != nil {
				t.Fatal(err)
			}
		}
		for range 10 {
			decode() // until the buffer is large enough
		}
		return testing.AllocsPerRun(100, decode)
	}
	// The reader gets a bookmark for each bookmarkInterval dropped events, and at the end one kept event.
	mixed := countOf(dropsForeign, append(bytes.Repeat(foreign, 10*bookmarkInterval), own...))
	decoded, bookmark := countOf(nil, own), countOf(nil, []byte(`{"type":"BOOKMARK","object":{"kind":"Bookmark","apiVersion":"v1","metadata":{"resourceVersion":"1"}}}`))
	t.Logf("allocations: decoded %v, bookmark %v, of %d events %v", decoded, bookmark, bookmarkInterval, mixed)
	if mixed > decoded || mixed/bookmarkInterval > 1 {
		t.Errorf("%d dropped events take %v allocations, one that is decoded %v", bookmarkInterval, mixed, decoded)
	}
	if unfiltered := countOf(nil, foreign); unfiltered != decoded {
		t.Errorf("without a filter an event takes %v allocations, want %v", unfiltered, decoded)
	}
}

// BenchmarkFilter compares a decoded event, with and without a filter, with a dropped one.
func BenchmarkFilter(b *testing.B) {
	for name, one := range map[string]struct {
		filter *Filter
		event  []byte
	}{"own/unfiltered": {nil, eventOf(b, "own", 1)}, "own/filtered": {dropsForeign, eventOf(b, "own", 1)}, "foreign/filtered": {dropsForeign, eventOf(b, "foreign", 1)}} {
		b.Run(name, func(b *testing.B) {
			stream := &endlessReader{text: one.event}
			watched := decodingOf(b, one.filter, stream)
			b.ReportAllocs()
			b.SetBytes(int64(len(one.event)))
			perDecode := 1
			if name == "foreign/filtered" {
				perDecode = bookmarkInterval
			}
			for i := 0; b.Loop(); i++ {
				if i%perDecode != 0 {
					continue
				}
				if kind, _, err := watched.Decode(); err != nil || perDecode > 1 && kind != watch.Bookmark && i > 0 {
					b.Fatal(kind, err)
				}
			}
		})
	}
}

// A list is filtered in place.
func TestDroppedItemsAllocateNothing(t *testing.T) {
	event := eventOf(t, "foreign", 1)
	at := cursor{rest: event}
	if !at.find("object") {
		t.Fatal(string(event))
	}
	item := bytes.TrimSuffix(bytes.TrimSpace(at.rest), []byte("}"))
	list := fmt.Appendf(nil, `{"apiVersion":"v1","items":[%s],"kind":"List"}`, bytes.Join(slices.Repeat([][]byte{item}, 100), []byte(",")))
	text := make([]byte, len(list))
	var left []byte
	count := testing.AllocsPerRun(10, func() {
		copy(text, list)
		left = dropsForeign.dropItems(text)
	})
	if want := `{"apiVersion":"v1","items":[],"kind":"List"}`; string(left) != want || count > 0 {
		t.Errorf("want %s, got %s with %v allocations", want, left, count)
	}
}

// The end of an event is not an event, even if a tenant made it look like one.
func TestPartsOfAnEventAreKept(t *testing.T) {
	const begin, end = `{"a":`, `{"type":"ADDED","object":{"metadata":{"annotations":{"kcp.io/cluster":"foreign"}}}}}`
	reader := framer{filter: dropsForeign}.NewFrameReader(io.NopCloser(strings.NewReader(begin + end)))
	for _, want := range []string{begin, end} {
		into := make([]byte, len(want))
		if read, err := reader.Read(into); string(into[:read]) != want || (err != nil) != (want == begin) {
			t.Errorf("want %q, got %q, %v", want, into[:read], err)
		}
	}
}
