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

package kcp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Watches makes all informers of kcp list their objects again. An informer whose kcp was restored from a backup continues its
// watch from the lost history: kcp accepts that and sends no event, so the informer would keep objects that kcp no longer
// has. The zero value is ready to use. All methods may be called concurrently.
type Watches struct {
	lock sync.Mutex
	// restarts counts the calls of Restart.
	restarts int
	// running has the functions that end the running watches.
	running map[*context.CancelFunc]struct{}
	// lists maps the collections whose watch was refused to the number of restarts when their last list began.
	lists map[string]int
}

// Restart ends all running watches. From then on a watch of a collection continues only from a list that began after the restart.
func (w *Watches) Restart() {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.restarts++
	w.lists = map[string]int{}
	for end := range w.running {
		(*end)()
	}
}

// Wrap returns a transport whose watches Restart ends.
func (w *Watches) Wrap(next http.RoundTripper) http.RoundTripper { return &watchTransport{w, next} }

type watchTransport struct {
	watches *Watches
	next    http.RoundTripper
}

// WrappedRoundTripper returns the wrapped transport. client-go closes its idle connections.
func (t *watchTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip refuses a watch that would continue from before the last restart.
func (t *watchTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		return t.next.RoundTrip(request)
	}
	if !strings.Contains(request.URL.RawQuery, "watch=") {
		restarts := t.watches.count()
		response, err := t.next.RoundTrip(request)
		if restarts > 0 && err == nil && response.StatusCode == http.StatusOK {
			t.watches.noteList(request.URL, restarts)
		}
		return response, err
	}
	ctx, end := context.WithCancel(request.Context())
	if !t.watches.add(request.URL, &end) {
		end()
		return expired(request)
	}
	response, err := t.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		t.watches.remove(&end)
		return nil, err
	}
	response.Body = &watchBody{response.Body, func() { t.watches.remove(&end) }}
	return response, nil
}

func (w *Watches) count() int {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.restarts
}

// add adds a watch to the running ones. It reports whether the watch may be sent.
func (w *Watches) add(target *url.URL, end *context.CancelFunc) bool {
	query := target.Query()
	version := query.Get("resourceVersion")
	continues := version != "" && version != "0" && query.Get("sendInitialEvents") != "true"
	key := collectionOf(target, query)
	w.lock.Lock()
	defer w.lock.Unlock()
	if listed, ok := w.lists[key]; continues && w.restarts > 0 && (!ok || listed < w.restarts) {
		w.lists[key] = listed
		return false
	}
	if !continues && w.restarts > 0 {
		w.lists[key] = w.restarts
	}
	if w.running == nil {
		w.running = map[*context.CancelFunc]struct{}{}
	}
	w.running[end] = struct{}{}
	return true
}

func (w *Watches) remove(end *context.CancelFunc) {
	(*end)()
	w.lock.Lock()
	defer w.lock.Unlock()
	delete(w.running, end)
}

// noteList records the list of a collection whose watch was refused. restarts is the number of restarts when the list began.
// A later page belongs to the time of the first one.
func (w *Watches) noteList(target *url.URL, restarts int) {
	query := target.Query()
	key := collectionOf(target, query)
	w.lock.Lock()
	defer w.lock.Unlock()
	if _, refused := w.lists[key]; refused && !query.Has("continue") {
		w.lists[key] = restarts
	}
}

// collectionOf returns a text that identifies the objects of a list or a watch.
func collectionOf(target *url.URL, query url.Values) string {
	return target.Host + target.Path + "?" + query.Get("labelSelector") + "&" + query.Get("fieldSelector")
}

// expired returns the response of an API server that no longer has the version of a watch. Informers list again then.
func expired(request *http.Request) (*http.Response, error) {
	status := apierrors.NewResourceExpired("kcp went back to an earlier state").Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	body, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusGone, Status: "410 Gone", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: request,
	}, nil
}

// watchBody is the body of a running watch.
type watchBody struct {
	io.ReadCloser
	closed func()
}

// Close implements [io.Closer].
func (b *watchBody) Close() error {
	b.closed()
	return b.ReadCloser.Close()
}
