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

package targets

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/provider/decoding"
	"github.com/synchub-dev/synchub/test/specimen"
)

// answering is a target that answers each request with the same object.
type answering struct {
	answer   []byte
	requests int
}

func (a *answering) RoundTrip(request *http.Request) (*http.Response, error) {
	a.requests++
	if _, err := io.Copy(io.Discard, request.Body); err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Request: request, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(a.answer)),
	}, request.Body.Close()
}

// applying returns an apply of a specimen, from what is desired to what was answered, but for the way to the target and back.
func applying(tb testing.TB, kind specimen.Specimen) (target *answering, apply func()) {
	tb.Helper()
	source := kind.Above(tb)
	delete(source.Object, "status")
	answer, err := kind.Below(tb, "hub", source).MarshalJSON()
	if err != nil {
		tb.Fatal(err)
	}
	target = &answering{answer: answer}
	client, err := decoding.NewDynamic(&rest.Config{Host: "https://target.example.com", QPS: -1}, &http.Client{Transport: target})
	if err != nil {
		tb.Fatal(err)
	}
	connection := &Connection{client: client, fieldManager: "hub"}
	return target, func() {
		if _, err := connection.Apply(tb.Context(), kind.Resource, source, "uid"); err != nil {
			tb.Fatal(err)
		}
	}
}

func BenchmarkApply(b *testing.B) {
	for _, kind := range specimen.All() {
		b.Run(kind.Kind, func(b *testing.B) {
			_, apply := applying(b, kind)
			b.ReportAllocs()
			for b.Loop() {
				apply()
			}
		})
	}
}
