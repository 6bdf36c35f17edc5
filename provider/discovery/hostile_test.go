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

package discovery_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/provider/discovery"
	"github.com/synchub-dev/synchub/provider/schemas/structural"
)

// clusterResponses are the responses of a cluster that serves widgets, by path.
var clusterResponses = map[string]string{
	"/apis/example.com":    `{"kind":"APIGroup","name":"example.com","versions":[{"version":"v1"}]}`,
	"/apis/example.com/v1": `{"kind":"APIResourceList","resources":[{"name":"widgets","kind":"Widget","verbs":["get","list","watch"]}]}`,
	"/openapi/v3/apis/example.com/v1": `{"components":{"schemas":{"Widget":{"type":"object","properties":{"a":{"type":"string"}},` +
		`"x-kubernetes-group-version-kind":[{"group":"example.com","version":"v1","kind":"Widget"}]}}}}`,
}

const crdPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com"

// For every response the error has the right type: the resource is not served, it is unusable, or the request failed and
// can be repeated.
func TestCRDForWithUnusualResponses(t *testing.T) {
	for name, test := range map[string]struct {
		path, body string
		status     int
		check      func(error) bool
	}{
		"valid ones":                     {check: func(err error) bool { return err == nil }},
		"a group that is broken":         {path: "/apis/example.com", status: 503, check: transient},
		"a group that is no JSON":        {path: "/apis/example.com", body: "<html>", check: transient},
		"a group of another kind":        {path: "/apis/example.com", body: `{"kind":"Status"}`, check: transient},
		"a group of many versions":       {path: "/apis/example.com", body: groupOfVersions(33), check: unusable("in 33 versions")},
		"a removed version":              {path: "/apis/example.com/v1", status: 404, check: notServed},
		"a version of another kind":      {path: "/apis/example.com/v1", body: `{}`, check: transient},
		"an aggregated server down":      {path: "/apis/example.com/v1", status: 503, check: transient},
		"a definition that is broken":    {path: crdPath, status: 500, check: transient},
		"a definition that is no object": {path: crdPath, body: `[]`, check: transient},
		"a definition without a kind":    {path: crdPath, body: `{}`, check: transient},
		"no document":                    {path: "/openapi/v3/apis/example.com/v1", status: 404, check: unusable("publishes no OpenAPI v3")},
		"a document that is broken":      {path: "/openapi/v3/apis/example.com/v1", status: 500, check: transient},
		"a document that is no JSON":     {path: "/openapi/v3/apis/example.com/v1", body: "openapi: 3", check: unusable("reading the OpenAPI document")},
		"a document of something else":   {path: "/openapi/v3/apis/example.com/v1", body: `{}`, check: unusable("does not describe")},
		"a document without end":         {path: "/openapi/v3/apis/example.com/v1", body: "endless", check: tooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
				body, ok := clusterResponses[request.URL.Path]
				switch {
				case request.URL.Path == test.path && test.body == "endless":
					endless(w)
				case request.URL.Path == test.path && test.body != "":
					_, _ = io.WriteString(w, test.body)
				case request.URL.Path == test.path && test.status > 0:
					w.WriteHeader(test.status)
				case !ok:
					w.WriteHeader(http.StatusNotFound)
				default:
					_, _ = io.WriteString(w, body)
				}
			}))
			defer server.Close()
			_, err := discoveryClient(t, &rest.Config{Host: server.URL}).CRDFor(t.Context(), synchubv1alpha1.ResourceDescriptor{Group: "example.com", Resource: "widgets"})
			if !test.check(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// groupOfVersions returns an APIGroup with n versions.
func groupOfVersions(n int) string {
	var versions strings.Builder
	for i := range n {
		_, _ = fmt.Fprintf(&versions, `,{"version":"v%d"}`, i+1)
	}
	return `{"kind":"APIGroup","versions":[` + versions.String()[1:] + `]}`
}

// endless writes until the client closes the connection.
func endless(w io.Writer) {
	spaces := bytes.Repeat([]byte{' '}, 1<<20)
	for range 1 << 10 {
		if _, err := w.Write(spaces); err != nil {
			return
		}
	}
}

func tooLarge(err error) bool {
	_, ok := errors.AsType[*structural.TooLargeError](err)
	return ok
}

func notServed(err error) bool { return errors.Is(err, discovery.ErrNotServed) }

func unusable(reason string) func(error) bool {
	return func(err error) bool {
		unusable, ok := errors.AsType[*discovery.UnusableError](err)
		return ok && strings.Contains(unusable.Reason, reason)
	}
}

func transient(err error) bool { return err != nil && !notServed(err) && !unusable("")(err) }
