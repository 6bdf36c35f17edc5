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

package mailboxes

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/test/framework/connections"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

const (
	// nowhere is an address at which nothing listens.
	nowhere = "https://127.0.0.1:1/services/apiexport/a/b"
	// firstVersion is the resource version of a shard's first lists. It is higher than the versions of objects in tests.
	firstVersion = 1_000_000
)

// fakeShard plays the virtual workspace of one kcp shard, as far as wildcard lists, watches and discovery go.
type fakeShard struct {
	server *httptest.Server

	lock    sync.Mutex
	refuses bool
	// listed names the mailbox, or all, and the resource of each list that was answered.
	listed []string
	// lists is how many lists wait to be released.
	lists  int
	caches caches
	// versions counts, for each resource, how often the served objects were replaced: it is the version of its lists. Watches
	// of older lists have expired, since they got no events for the replaced objects.
	versions map[schema.GroupVersionResource]int
	held     map[schema.GroupVersionResource]chan struct{}
	watches  map[schema.GroupVersionResource]map[chan metav1.WatchEvent]struct{}
}

func newFakeShard(t *testing.T, served caches) *fakeShard {
	t.Helper()
	s := &fakeShard{
		caches:   maps.Clone(served),
		versions: map[schema.GroupVersionResource]int{},
		held:     map[schema.GroupVersionResource]chan struct{}{},
		watches:  map[schema.GroupVersionResource]map[chan metav1.WatchEvent]struct{}{},
	}
	s.server = suite.ServeTLS(t, s)
	return s
}

func (s *fakeShard) url() string { return s.server.URL + "/services/apiexport/a/b" }

func (s *fakeShard) serve(resource schema.GroupVersionResource, objects ...*unstructured.Unstructured) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.caches[resource] = objects
	s.versions[resource]++
}

// hold makes lists of a resource wait until they are released.
func (s *fakeShard) hold(resource schema.GroupVersionResource) (release func()) {
	s.lock.Lock()
	defer s.lock.Unlock()
	held := make(chan struct{})
	s.held[resource] = held
	return sync.OnceFunc(func() { close(held) })
}

// refuse makes the shard answer all requests with errors, and end the running ones, or stop doing so.
func (s *fakeShard) refuse(refuses bool) {
	s.lock.Lock()
	s.refuses = refuses
	s.lock.Unlock()
	if refuses {
		s.server.CloseClientConnections()
	}
}

// send sends an event to all current watches of a resource.
func (s *fakeShard) send(resource schema.GroupVersionResource, event string, object *unstructured.Unstructured) {
	encoded, err := object.MarshalJSON()
	if err != nil {
		panic(err)
	}
	sent := metav1.WatchEvent{Type: event}
	sent.Object.Raw = encoded
	s.lock.Lock()
	defer s.lock.Unlock()
	for watch := range s.watches[resource] {
		watch <- sent
	}
}

// watchers returns the number of current watches of a resource.
func (s *fakeShard) watchers(resource schema.GroupVersionResource) int {
	s.lock.Lock()
	defer s.lock.Unlock()
	return len(s.watches[resource])
}

func (s *fakeShard) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	_, path, ok := strings.Cut(request.URL.Path, "/services/apiexport/a/b/clusters/")
	mailbox, path, _ := strings.Cut(path, "/")
	request.SetPathValue("mailbox", mailbox)
	parts := strings.Split(path, "/")
	switch {
	case !ok:
		http.NotFound(response, request)
	case parts[0] == "api":
		s.api(response, request, "", parts[1:])
	case parts[0] == "apis" && len(parts) > 1:
		s.api(response, request, parts[1], parts[2:])
	default:
		http.NotFound(response, request)
	}
}

func (s *fakeShard) api(response http.ResponseWriter, request *http.Request, group string, parts []string) {
	switch len(parts) {
	case 0:
		s.discoverGroup(response, request, group)
	case 1:
		s.discoverVersion(response, request, schema.GroupVersion{Group: group, Version: parts[0]})
	default:
		s.objects(response, request, schema.GroupVersionResource{Group: group, Version: parts[0], Resource: parts[1]})
	}
}

func (s *fakeShard) discoverGroup(response http.ResponseWriter, request *http.Request, group string) {
	found := metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: group}
	for resource := range s.served() {
		version := metav1.GroupVersionForDiscovery{GroupVersion: resource.GroupVersion().String(), Version: resource.Version}
		if resource.Group == group && !slices.Contains(found.Versions, version) {
			found.Versions = append(found.Versions, version)
		}
	}
	if len(found.Versions) == 0 {
		http.NotFound(response, request)
		return
	}
	// As kcp does, the newest first.
	slices.SortFunc(found.Versions, func(a, b metav1.GroupVersionForDiscovery) int { return strings.Compare(b.Version, a.Version) })
	answer(response, found)
}

func (s *fakeShard) discoverVersion(response http.ResponseWriter, request *http.Request, version schema.GroupVersion) {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: version.String()}
	for resource := range s.served() {
		if resource.GroupVersion() == version {
			kind := "Kind of " + resource.Resource
			list.APIResources = append(list.APIResources,
				metav1.APIResource{Name: resource.Resource + "/status", Kind: kind, Verbs: metav1.Verbs{"get"}},
				metav1.APIResource{Name: resource.Resource, Kind: kind, Verbs: metav1.Verbs{"get", "list"}})
		}
	}
	// kcp answers for the core group even when nothing of it is served.
	if len(list.APIResources) == 0 && version.Group != "" {
		http.NotFound(response, request)
		return
	}
	answer(response, list)
}

func (s *fakeShard) served() caches {
	s.lock.Lock()
	defer s.lock.Unlock()
	return maps.Clone(s.caches)
}

func (s *fakeShard) objects(response http.ResponseWriter, request *http.Request, resource schema.GroupVersionResource) {
	s.lock.Lock()
	objects, ok := s.caches[resource]
	version, held, refuses := s.versions[resource], s.held[resource], s.refuses
	s.lock.Unlock()
	query := request.URL.Query()
	switch {
	case refuses:
		http.Error(response, "refused", http.StatusServiceUnavailable)
	case !ok:
		http.NotFound(response, request)
	case query.Get("sendInitialEvents") != "":
		http.Error(response, "watches do not list here", http.StatusBadRequest)
	case query.Get("watch") != "" && isOlder(query.Get("resourceVersion"), version):
		http.Error(response, "these events are gone", http.StatusGone)
	case query.Get("watch") != "":
		s.stream(response, request, resource)
	default:
		if held != nil && !s.wait(request.Context(), held) {
			return
		}
		mailbox := request.PathValue("mailbox")
		s.lock.Lock()
		s.listed = append(s.listed, mailbox+" "+resource.Resource)
		s.lock.Unlock()
		list := unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": strconv.Itoa(firstVersion + version)}}}
		for _, object := range objects {
			if mailbox == "*" || mailboxOf(object).String() == mailbox {
				list.Items = append(list.Items, *object)
			}
		}
		answer(response, &list)
	}
}

// isOlder reports whether a watch begins at a list of an earlier version than the current one.
func isOlder(resourceVersion string, version int) bool {
	begins, err := strconv.Atoi(resourceVersion)
	return err == nil && begins >= firstVersion && begins < firstVersion+version
}

// wait returns false if the client does not wait that long.
func (s *fakeShard) wait(ctx context.Context, held <-chan struct{}) bool {
	count := func(change int) {
		s.lock.Lock()
		defer s.lock.Unlock()
		s.lists += change
	}
	count(1)
	defer count(-1)
	select {
	case <-held:
		return true
	case <-ctx.Done():
		return false
	}
}

// waiting returns how many lists wait to be released.
func (s *fakeShard) waiting() int {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.lists
}

func (s *fakeShard) stream(response http.ResponseWriter, request *http.Request, resource schema.GroupVersionResource) {
	watch := make(chan metav1.WatchEvent, 100)
	s.lock.Lock()
	if s.watches[resource] == nil {
		s.watches[resource] = map[chan metav1.WatchEvent]struct{}{}
	}
	s.watches[resource][watch] = struct{}{}
	s.lock.Unlock()
	defer func() {
		s.lock.Lock()
		defer s.lock.Unlock()
		delete(s.watches[resource], watch)
	}()
	response.Header().Set("Content-Type", "application/json")
	flush := http.NewResponseController(response).Flush
	for {
		if flush() != nil {
			return
		}
		select {
		case <-request.Context().Done():
			return
		case event := <-watch:
			if json.NewEncoder(response).Encode(event) != nil {
				return
			}
		}
	}
}

func answer(response http.ResponseWriter, object any) {
	response.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(response).Encode(object) // a client that has gone gets no response
}

// startMailboxes returns mailboxes that reach the shards, without endpoints.
func startMailboxes(t *testing.T, always ...schema.GroupVersionResource) *Mailboxes {
	t.Helper()
	// All servers of this kind have the same certificate.
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	access := connections.KCP(t, suite.Kubeconfig(t, "https://127.0.0.1:1", suite.CertificateOf(server), "x"))
	mailboxes := newMailboxes(always...)
	mailboxes.kcpConfig, mailboxes.ctx, mailboxes.endpointsKnown = access, t.Context(), true
	t.Cleanup(mailboxes.stopEndpoints)
	return mailboxes
}
