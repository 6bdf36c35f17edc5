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

	"github.com/synchub-dev/synchub/provider/fastjson"
	"github.com/synchub-dev/synchub/test/fixtures"
)

// fakeTransport is a target that answers each request with the same object.
type fakeTransport struct {
	answer   []byte
	requests int
}

func (a *fakeTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	a.requests++
	if _, err := io.Copy(io.Discard, request.Body); err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Request: request, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(a.answer)),
	}, request.Body.Close()
}

// newApplier returns a function that applies a fixture, from the desired object to the decoded answer, without a network.
func newApplier(tb testing.TB, kind fixtures.Fixture) (target *fakeTransport, apply func()) {
	tb.Helper()
	source := kind.MailboxObject(tb)
	delete(source.Object, "status")
	answer, err := kind.TargetObject(tb, "hub", source).MarshalJSON()
	if err != nil {
		tb.Fatal(err)
	}
	target = &fakeTransport{answer: answer}
	dynamicClient, err := fastjson.NewDynamicClient(&rest.Config{Host: "https://target.example.com", QPS: -1}, &http.Client{Transport: target})
	if err != nil {
		tb.Fatal(err)
	}
	objects := &Objects{client: &client{objects: dynamicClient}, fieldManager: "hub"}
	return target, func() {
		if _, err := objects.Apply(tb.Context(), kind.Resource, source, "uid"); err != nil {
			tb.Fatal(err)
		}
	}
}

func BenchmarkApply(b *testing.B) {
	for _, kind := range fixtures.All() {
		b.Run(kind.Kind, func(b *testing.B) {
			_, apply := newApplier(b, kind)
			b.ReportAllocs()
			for b.Loop() {
				apply()
			}
		})
	}
}
