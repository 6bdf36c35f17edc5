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
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/provider/discovery"
)

// startServer starts a server with one response for each path, and returns a client for it. requested returns the
// requested paths since its last call.
func startServer(t *testing.T, responses map[string]string) (client *discovery.Client, requested func() []string) {
	t.Helper()
	var lock sync.Mutex
	var paths []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		lock.Lock()
		paths = append(paths, request.URL.Path)
		lock.Unlock()
		if body, ok := responses[request.URL.Path]; ok {
			_, _ = io.WriteString(w, body)
			return
		}
		http.NotFound(w, request)
	}))
	t.Cleanup(server.Close)
	return discoveryClient(t, &rest.Config{Host: server.URL, QPS: -1}), func() []string {
		lock.Lock()
		defer lock.Unlock()
		seen := paths
		paths = nil
		return seen
	}
}

func TestVersions(t *testing.T) {
	many := make([]string, 40)
	for i := range many {
		many[i] = fmt.Sprintf("v%d", i+1)
	}
	client, requested := startServer(t, map[string]string{
		"/apis/example.com": `{"kind":"APIGroup","versions":[{"version":"v1"},{"version":".."},{"version":"v2"},{}],"preferredVersion":{"version":"v2"}}`,
		"/apis/many.com":    `{"kind":"APIGroup","versions":[{"version":"` + strings.Join(many, `"},{"version":"`) + `"}]}`,
	})
	for group, expected := range map[string][]string{"": {"v1"}, "example.com": {"v2", "v1"}, "many.com": many[:32]} {
		if versions, err := client.Versions(t.Context(), group); err != nil || !slices.Equal(versions, expected) {
			t.Errorf("%q is served in %v, %v", group, versions, err)
		}
	}
	if paths := requested(); slices.Contains(paths, "/api") || len(paths) != 2 {
		t.Errorf("requested %v", paths)
	}
	for _, group := range []string{"missing.com", "..", "a/b"} {
		if versions, err := client.Versions(t.Context(), group); !errors.Is(err, discovery.ErrNotServed) || len(versions) > 0 {
			t.Errorf("%q is served in %v, %v", group, versions, err)
		}
	}
	if paths := requested(); !slices.Equal(paths, []string{"/apis/missing.com"}) {
		t.Errorf("requested %v", paths)
	}
}

func TestFindResource(t *testing.T) {
	client, requested := startServer(t, map[string]string{
		"/apis/example.com":    `{"kind":"APIGroup","versions":[{"version":"v3"},{"version":"v2"},{"version":"v1"}]}`,
		"/apis/example.com/v2": `{"kind":"APIResourceList","resources":[{"name":"gears"}]}`,
		"/apis/example.com/v1": `{"kind":"APIResourceList","resources":[{"name":"gears"},{"name":"wheels","group":"elsewhere.com","version":"v9"}]}`,
		"/apis/other.com/v1":   `{"kind":"Status"}`,
	})
	find := func(group, version, name string) (string, error) {
		found, err := client.FindResource(t.Context(), schema.GroupVersion{Group: group, Version: version}, func(r metav1.APIResource) bool { return r.Name == name })
		return found.Group + "/" + found.Version, err
	}
	for _, test := range []struct {
		group, version, name, expected string
		requests                       int
	}{
		{"example.com", "", "gears", "example.com/v2", 3},
		{"example.com", "", "wheels", "example.com/v1", 4},
		{"example.com", "v1", "gears", "example.com/v1", 1},
		{"example.com", "v2", "wheels", "", 1},
		{"example.com", "v3", "gears", "", 1},
		{"example.com", "../..", "gears", "", 0},
	} {
		found, err := find(test.group, test.version, test.name)
		if test.expected == "" && !errors.Is(err, discovery.ErrNotServed) || test.expected != "" && (err != nil || found != test.expected) {
			t.Errorf("%+v: found %q, %v", test, found, err)
		}
		if paths := requested(); len(paths) != test.requests {
			t.Errorf("%+v: requested %v", test, paths)
		}
	}
	// A response of another kind is no evidence that the server does not serve the resource.
	if _, err := find("other.com", "v1", "gears"); err == nil || errors.Is(err, discovery.ErrNotServed) {
		t.Errorf("a response of another kind: %v", err)
	}
}
