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
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/provider/discovery"
	"github.com/synchub-dev/synchub/provider/transport"
)

// The shown version of a target is short and printable, for any answer.
func FuzzVersion(f *testing.F) {
	for _, result := range []string{`{"gitVersion":"v1.35.4"}`, `{"gitVersion":"\u001b[31m"}`, `{"gitVersion":1}`, `{"GITVERSION":"v1","gitversion":"v2"}`, `null`, `[`, ``, "\xff"} {
		f.Add([]byte(result))
	}
	f.Fuzz(func(t *testing.T, result []byte) {
		version, err := parseVersion(result, nil)
		if len(version) > maxShownVersion || !utf8.ValidString(version) || strings.ContainsAny(version, "\x1b\n\u202e") {
			t.Errorf("%q is the version %q", result, version)
		}
		if err != nil && strings.ContainsAny(err.Error(), "\x1b\n") {
			t.Errorf("%q gives %q", result, err)
		}
	})
}

// The result of a lookup matches the lookup, for any discovery document.
func FuzzDiscovery(f *testing.F) {
	for _, result := range []string{
		`{"kind":"APIGroup","apiVersion":"v1","name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"version":"v1"}}`,
		`{"kind":"APIResourceList","groupVersion":"apps/v1","resources":[{"name":"deployments","kind":"Deployment","namespaced":true,"verbs":["get"]},{"name":"deployments/scale","kind":"Scale"}]}`,
		`{"kind":"APIResourceList","resources":[{"name":"../../version","kind":"Deployment"}]}`, `{"kind":"Status","code":200}`, `null`, `{"resources":{}}`, "\xff",
	} {
		f.Add([]byte(result), "Deployment", "deployments", "v1")
	}
	f.Fuzz(func(t *testing.T, result []byte, kind, resource, version string) {
		server := roundTripperFunc(func(request *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(result)), ContentLength: -1, Request: request}, nil
		})
		httpClient := &http.Client{Transport: transport.LimitResponses(transport.Options{Limits: transport.TargetLimits()})(server)}
		key, err := discovery.NewClient(&rest.Config{Host: "https://host", QPS: -1}, httpClient)
		if err != nil {
			t.Fatal(err)
		}
		c := &APIs{client: &client{discovery: key}}
		group := schema.GroupVersion{Group: "apps", Version: version}
		if found, err := c.discover(t.Context(), lookup{GroupVersion: group, resource: resource}); err == nil && (found.resource.Resource != resource || strings.Contains(resource, "/")) {
			t.Errorf("%q: looked up %q, got %v", result, resource, found.resource)
		}
		if found, err := c.discover(t.Context(), lookup{GroupVersion: group, kind: kind}); err == nil && (found.kind != kind || strings.Contains(found.resource.Resource, "/")) {
			t.Errorf("%q: looked up the kind %q, got %v of %q", result, kind, found.resource, found.kind)
		}
		found, err := c.discover(t.Context(), lookup{GroupVersion: schema.GroupVersion{Group: "apps"}, resource: resource, versions: true})
		if err == nil && slices.Contains(found.versions, "") {
			t.Errorf("%q: got the versions %q", result, found.versions)
		}
	})
}
