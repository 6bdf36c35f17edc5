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

package mailboxes_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	"github.com/synchub-dev/synchub/test/framework/suite"
)

// sliceDouble plays kcp's server for the provider workspace, as far as the export's APIExportEndpointSlice goes: a kcp
// with as many shards as a test wants.
type sliceDouble struct {
	server *httptest.Server

	lock    sync.Mutex
	version int
	urls    []string
	// changed is closed by the next change.
	changed chan struct{}
}

func newSliceDouble(t *testing.T) *sliceDouble {
	t.Helper()
	d := &sliceDouble{version: 1, changed: make(chan struct{})}
	routes := http.NewServeMux()
	routes.HandleFunc("GET /clusters/"+providerWorkspace+"/apis/apis.kcp.io/v1alpha1/apiexportendpointslices", d.serve)
	d.server = suite.ServeTLS(t, routes)
	return d
}

// set changes the URLs of the slice.
func (d *sliceDouble) set(urls ...string) {
	d.lock.Lock()
	defer d.lock.Unlock()
	d.version++
	d.urls = urls
	close(d.changed)
	d.changed = make(chan struct{})
}

// now returns the slice, its version, and a channel that is closed by the next change.
func (d *sliceDouble) now() (slice map[string]any, version int, changed <-chan struct{}) {
	d.lock.Lock()
	defer d.lock.Unlock()
	endpoints := []any{}
	for _, url := range d.urls {
		endpoints = append(endpoints, map[string]any{"url": url})
	}
	return map[string]any{
		"apiVersion": "apis.kcp.io/v1alpha1",
		"kind":       "APIExportEndpointSlice",
		"metadata":   map[string]any{"name": exportName, "uid": "a", "resourceVersion": strconv.Itoa(d.version)},
		"status":     map[string]any{"endpoints": endpoints},
	}, d.version, d.changed
}

func (d *sliceDouble) serve(response http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	response.Header().Set("Content-Type", "application/json")
	switch {
	case query.Get("fieldSelector") != "metadata.name="+exportName:
		http.Error(response, "only the mailbox export's slice is served", http.StatusForbidden)
	case query.Get("sendInitialEvents") != "":
		http.Error(response, "watches do not list here", http.StatusBadRequest)
	case query.Get("watch") != "":
		d.watch(response, request)
	default:
		slice, version, _ := d.now()
		_ = json.NewEncoder(response).Encode(map[string]any{
			"apiVersion": "apis.kcp.io/v1alpha1",
			"kind":       "APIExportEndpointSliceList",
			"metadata":   map[string]any{"resourceVersion": strconv.Itoa(version)},
			"items":      []any{slice},
		})
	}
}

// watch sends each change since the version that the request names. Of several changes at once it sends the last.
func (d *sliceDouble) watch(response http.ResponseWriter, request *http.Request) {
	flush := http.NewResponseController(response).Flush
	seen := request.URL.Query().Get("resourceVersion")
	for flush() == nil {
		slice, version, changed := d.now()
		if current := strconv.Itoa(version); current != seen {
			seen = current
			if json.NewEncoder(response).Encode(map[string]any{"type": "MODIFIED", "object": slice}) != nil {
				return
			}
			continue
		}
		select {
		case <-changed:
		case <-request.Context().Done():
			return
		}
	}
}
