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

package ui

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// refreshEvery is the shortest time between two contents of a live page, and requestEvery if each needs requests.
	refreshEvery = time.Second
	requestEvery = 5 * time.Second
	// agesEvery is how often a live page gets new ages of what has not changed.
	agesEvery = 10 * time.Second
)

// live sends the content of a page after each change, as server-sent events.
func (s *server) live(w http.ResponseWriter, r *http.Request) {
	address, err := url.Parse(r.FormValue("page"))
	if err != nil || address.IsAbs() || address.Host != "" || address.Path == comparePath {
		http.Error(w, "There is no such page.", http.StatusBadRequest)
		return
	}
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		http.Error(w, "Too many pages are open.", http.StatusServiceUnavailable)
		return
	}
	notified, unsubscribe := s.changes.subscribe()
	defer unsubscribe()
	w.Header().Set("Content-Type", "text/event-stream")
	stream := &stream{ResponseWriter: w, server: s, address: address}
	if version, err := strconv.ParseUint(r.FormValue("version"), 10, 64); err == nil {
		stream.version = version
	}
	if stream.begin() == nil {
		stream.follow(r.Context(), notified)
	}
}

// stream is the connection of one live page.
type stream struct {
	http.ResponseWriter
	server  *server
	address *url.URL
	// version is the number of changes that the browser has.
	version uint64
	// makesRequests is true if the last content needed requests.
	makesRequests bool
}

func (s *stream) begin() error {
	s.WriteHeader(http.StatusOK)
	return http.NewResponseController(s.ResponseWriter).Flush()
}

// follow sends content until the browser is gone. The browser may already lack changes since it loaded the page.
func (s *stream) follow(ctx context.Context, notified <-chan struct{}) {
	ages := time.NewTicker(agesEvery)
	defer ages.Stop()
	for {
		if s.server.changes.version() == s.version {
			select {
			case <-ctx.Done():
				return
			case <-notified:
				continue
			case <-ages.C:
				if s.makesRequests {
					continue
				}
			}
		}
		if s.send(ctx) != nil {
			return
		}
		pause := refreshEvery
		if s.makesRequests {
			pause = requestEvery
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// send sends the present content.
func (s *stream) send(ctx context.Context) error {
	shown := s.server.view(ctx, s.address)
	content, err := render(shown, "main")
	if err != nil {
		return err
	}
	s.version, s.makesRequests = shown.Version, shown.makesRequests
	var event bytes.Buffer
	event.WriteString("event: main\n")
	for line := range strings.Lines(string(content)) {
		fmt.Fprintf(&event, "data: %s\n", strings.TrimRight(line, "\r\n"))
	}
	event.WriteString("\n")
	if _, err := s.Write(event.Bytes()); err != nil {
		return err
	}
	return http.NewResponseController(s.ResponseWriter).Flush()
}
