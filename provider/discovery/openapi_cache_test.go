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
	"crypto/sha512"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	utilclock "k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/provider/discovery"
)

// openAPIServer starts a server with one OpenAPI document and any hash. It returns a client, and the number of reads of
// the document.
func openAPIServer(t *testing.T, document, hash string) (*discovery.Client, *atomic.Int32) {
	t.Helper()
	var read atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch request.URL.Path {
		case "/openapi/v3":
			_, _ = fmt.Fprintf(w, `{"paths": {"apis/apps/v1": {"serverRelativeURL": "/openapi/v3/apis/apps/v1?hash=%s"}}}`, hash)
		case "/openapi/v3/apis/apps/v1":
			read.Add(1)
			_, _ = fmt.Fprint(w, document)
		default:
			http.NotFound(w, request)
		}
	}))
	t.Cleanup(server.Close)
	return discoveryClient(t, &rest.Config{Host: server.URL}), &read
}

// openAPIDocument returns a document that describes a kind of apps/v1 with one field.
func openAPIDocument(plural, kind, field string) string {
	return fmt.Sprintf(`{"paths": {"/apis/apps/v1/namespaces/{namespace}/%s": {}}, "components": {"schemas": {"k": {"type": "object",
		"x-kubernetes-group-version-kind": [{"group": "apps", "version": "v1", "kind": %q}],
		"properties": {"metadata": {"type": "object", "default": {}}, %q: {"type": "string"}}}}}}`, plural, kind, field)
}

func hashOf(content string) string { return fmt.Sprintf("%X", sha512.Sum512([]byte(content))) }

func fieldsOf(t *testing.T, documents *discovery.OpenAPICache, cluster *discovery.Client) (served discovery.ServedSchema, fields map[string]bool) {
	t.Helper()
	served, err := documents.NewSchemaReader(cluster).ServedSchema(t.Context(), schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "widgets"}, "Widget")
	if err != nil {
		t.Fatal(err)
	}
	read, err := served.Schema(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fields = map[string]bool{}
	for name := range read.Properties {
		fields[name] = true
	}
	return served, fields
}

// The document of equal clusters is read once, but no cluster can change the result for another one.
func TestOpenAPIDocumentsAreCachedByVerifiedHash(t *testing.T) {
	documents := discovery.NewOpenAPICache(utilclock.RealClock{})
	honest, lie := openAPIDocument("widgets", "Widget", "honest"), openAPIDocument("widgets", "Widget", "lie")
	liar, _ := openAPIServer(t, lie, hashOf(honest))
	lied, fields := fieldsOf(t, documents, liar)
	if !fields["lie"] || !lied.BuiltIn {
		t.Errorf("%+v, %v", lied, fields)
	}
	first, reads := openAPIServer(t, honest, hashOf(honest))
	true1, fields := fieldsOf(t, documents, first)
	if !fields["honest"] || true1.Key == lied.Key || reads.Load() != 1 {
		t.Errorf("%v, %v, read %d times", fields, true1.Key == lied.Key, reads.Load())
	}
	second, reads := openAPIServer(t, honest, hashOf(honest))
	if true2, fields := fieldsOf(t, documents, second); !fields["honest"] || true2.Key != true1.Key || reads.Load() != 0 {
		t.Errorf("%v, read %d times", fields, reads.Load())
	}
}

func TestServedWithoutTheResource(t *testing.T) {
	content := openAPIDocument("gadgets", "Gadget", "a")
	cluster, _ := openAPIServer(t, content, hashOf(content))
	ask := func(group, version string) error {
		_, err := discovery.NewOpenAPICache(utilclock.RealClock{}).NewSchemaReader(cluster).ServedSchema(t.Context(), schema.GroupVersionResource{Group: group, Version: version, Resource: "gadgets"}, "Gadget")
		return err
	}
	if err := ask("batch", "v1"); !errors.Is(err, discovery.ErrNotServed) {
		t.Errorf("of another group: %v", err)
	}
	other, ok := errors.AsType[*discovery.VersionNotServedError](ask("apps", "v2"))
	if !ok || len(other.Versions) != 1 || other.Versions[0] != "v1" {
		t.Errorf("in another version: %v", other)
	}
	empty, _ := openAPIServer(t, "", hashOf(""))
	_, err := discovery.NewOpenAPICache(utilclock.RealClock{}).NewSchemaReader(empty).ServedSchema(t.Context(), schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "gadgets"}, "Gadget")
	if _, unusable := errors.AsType[*discovery.UnusableError](err); err == nil || unusable || errors.Is(err, discovery.ErrNotServed) {
		t.Errorf("an empty document: %v", err)
	}
}
