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

package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/provider/targets/tunnel/protocol"
)

const (
	// serverStreamBuffer and serverConnectionBuffer bound what an API server may send before the hub takes it. The first bounds the second.
	serverStreamBuffer, serverConnectionBuffer = 64 << 10, 1 << 30
	// maxServerLinks bounds the connections to the API server.
	maxServerLinks = 64
	// idleTimeout is how long an unused connection to the API server stays open.
	idleTimeout = 90 * time.Second
	// checkInterval is how often silent connections are looked for.
	checkInterval = 2 * time.Second

	// unreachable is the response if the API server does not respond. It has no cause, since that has addresses of the cluster, which
	// the hub would show to tenants.
	unreachable = "the tunnel is open, but its end in the cluster does not reach the API server"
)

// replicasHeader is [protocol.HeaderReplicas] in HTTP/2.
var replicasHeader = strings.ToLower(protocol.HeaderReplicas)

var errNoHTTP2 = errors.New("the hub does not speak HTTP/2")

// relay carries the requests of one session to the API server.
type relay struct {
	apiServer  *APIServer
	onReplicas func(int)
	clock      clock.WithTicker
	log        *slog.Logger
	running    sync.WaitGroup

	// lock guards what follows, and all streams. No goroutine holds it while it reads or writes.
	lock sync.Mutex
	ctx  context.Context //nolint:containedctx // it ends with the session
	hub  *link
	// servers are the connections to the API server, and waiting the streams that have none yet.
	servers   []*link
	waiting   []*stream
	isDialing bool
	// dirty are the connections with frames to be written.
	dirty []*link
}

// newRelay returns the relay for a session on the connection.
func newRelay(connection netConn, apiServer *APIServer, onReplicas func(int), clock clock.WithTicker, log *slog.Logger) *relay {
	r := &relay{apiServer: apiServer, onReplicas: onReplicas, clock: clock, log: log}
	r.hub = r.newLink(connection, true, protocol.StreamBuffer, protocol.ConnectionBuffer)
	return r
}

// serve returns when the session has ended, and closes all of its connections.
func (r *relay) serve(ctx context.Context) error {
	var cancel context.CancelFunc
	r.ctx, cancel = context.WithCancel(ctx)
	defer r.running.Wait()
	defer cancel()
	context.AfterFunc(r.ctx, r.closeAll)
	r.running.Go(r.keepAlive)
	r.running.Go(r.hub.writeAll)
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull((*incoming)(r.hub), preface); err != nil {
		return fmt.Errorf("cannot start HTTP/2: %w", err)
	}
	if string(preface) != http2.ClientPreface {
		return errNoHTTP2
	}
	return r.read(r.hub)
}

func (r *relay) closeAll() {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.hub.close()
	for _, one := range r.servers {
		one.close()
	}
}

// keepAlive looks for silent and unused connections until the session ends.
func (r *relay) keepAlive() {
	ticker := r.clock.NewTicker(checkInterval)
	defer ticker.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-ticker.C():
		}
		r.lock.Lock()
		now := r.clock.Now()
		r.hub.keepAlive(now)
		for _, one := range r.servers {
			one.keepAlive(now)
			one.closeIdle(now)
		}
		r.lock.Unlock()
		r.flush()
	}
}

// flush informs the writers of all connections with outgoing frames.
func (r *relay) flush() {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.flushLocked()
}

func (r *relay) flushLocked() {
	for _, one := range r.dirty {
		one.isDirty = false
		one.ready.Signal()
	}
	r.dirty = r.dirty[:0]
}

// read handles all frames of a connection until it ends.
func (r *relay) read(l *link) error {
	for {
		frame, err := l.framer.ReadFrame()
		r.lock.Lock()
		if broken, ok := errors.AsType[http2.StreamError](err); ok {
			err = nil
			r.onBrokenStream(l, broken)
		} else if err == nil {
			err = r.handle(l, frame)
		}
		r.lock.Unlock()
		if err != nil {
			return err
		}
	}
}

func (r *relay) handle(l *link, frame http2.Frame) error {
	switch frame := frame.(type) {
	case *http2.MetaHeadersFrame:
		if one := l.streams[frame.StreamID]; one != nil {
			one.onHeaders(frame)
			return nil
		}
		if l.isHub {
			return r.onRequest(frame)
		}
	case *http2.DataFrame:
		return l.onData(frame)
	case *http2.RSTStreamFrame:
		if one := l.streams[frame.StreamID]; one != nil {
			one.onReset(frame.ErrCode)
		}
	case *http2.WindowUpdateFrame:
		return l.onWindowUpdate(frame)
	case *http2.SettingsFrame:
		err := l.onSettings(frame)
		r.assignWaiting()
		return err
	case *http2.PingFrame:
		if !frame.IsAck() {
			l.write(l.framer.WritePing(true, frame.Data))
		}
	case *http2.GoAwayFrame:
		l.onGoAway(frame)
	case *http2.PushPromiseFrame:
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	return nil
}

// onBrokenStream ends a stream on which a malformed frame arrived.
func (r *relay) onBrokenStream(l *link, broken http2.StreamError) {
	if l.isHub {
		l.lastID = max(l.lastID, broken.StreamID)
	}
	if one := l.streams[broken.StreamID]; one != nil {
		one.stream.abort(broken.Code)
	} else {
		l.write(l.framer.WriteRSTStream(broken.StreamID, broken.Code))
	}
}

// onRequest begins a stream.
func (r *relay) onRequest(frame *http2.MetaHeadersFrame) error {
	id, hub := frame.StreamID, r.hub
	if id%2 == 0 {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	if id <= hub.lastID {
		// The stream was reset.
		return nil
	}
	hub.lastID = id
	if len(hub.streams) >= protocol.MaxStreams {
		hub.write(hub.framer.WriteRSTStream(id, http2.ErrCodeRefusedStream))
		return nil
	}
	s := &stream{relay: r}
	s.hub = half{stream: s, link: hub, id: id, sendWindow: hub.streamWindow, receiveWindow: hub.bufferSize}
	s.server = half{stream: s, isComplete: frame.StreamEnded()}
	hub.streams[id] = &s.hub
	switch {
	case frame.Truncated:
		s.fail(http.StatusRequestHeaderFieldsTooLarge, "the headers of the request are too large for the tunnel")
	case frame.PseudoValue("method") == http.MethodConnect:
		s.fail(http.StatusMethodNotAllowed, "the tunnel leads to the API server only")
	case !strings.HasPrefix(frame.PseudoValue("path"), "/"):
		s.fail(http.StatusBadRequest, "the request has no path")
	default:
		for _, field := range frame.RegularFields() {
			if field.Name == replicasHeader {
				r.onReplicas(protocol.Replicas(field.Value))
			}
		}
		var err error
		if s.waiting, err = r.apiServer.request(frame); err != nil {
			r.log.Error("a request cannot be forwarded", "error", err)
			s.fail(http.StatusBadGateway, unreachable)
			return nil
		}
		r.waiting = append(r.waiting, s)
		r.assignWaiting()
	}
	return nil
}

// assignWaiting sends the requests that wait to the API server, and opens another connection if that is needed.
func (r *relay) assignWaiting() {
	for len(r.waiting) > 0 {
		next := r.waiting[0]
		if next.hub.link != nil {
			free := slices.IndexFunc(r.servers, (*link).hasRoom)
			if free < 0 {
				r.dialLocked()
				return
			}
			next.open(r.servers[free])
		}
		next.waiting = nil
		r.waiting[0] = nil
		r.waiting = r.waiting[1:]
	}
}

// open begins the request at the API server.
func (s *stream) open(server *link) {
	server.lastID += 2
	h := &s.server
	h.link, h.id, h.sendWindow, h.receiveWindow = server, server.lastID-1, server.streamWindow, server.bufferSize
	server.streams[h.id] = h
	isLast := h.isComplete && len(h.queue) == 0 && h.trailers == nil
	server.writeHeaders(h.id, s.waiting, isLast)
	if isLast {
		h.sent()
		return
	}
	h.wait()
	for h.advance() {
	}
}

// dialLocked opens another connection to the API server in the background.
func (r *relay) dialLocked() {
	if r.isDialing || len(r.servers) >= maxServerLinks || r.ctx.Err() != nil {
		return
	}
	r.isDialing = true
	r.running.Go(func() {
		connection, err := r.apiServer.dial(r.ctx, r.log)
		r.lock.Lock()
		r.isDialing = false
		if err == nil && r.ctx.Err() != nil {
			err = r.ctx.Err()
			_ = connection.Close()
		}
		if err != nil {
			waiting := r.waiting
			r.waiting = nil
			for _, one := range waiting {
				one.fail(http.StatusBadGateway, unreachable)
			}
			r.lock.Unlock()
			if r.ctx.Err() == nil {
				r.log.Error("cannot reach the API server of this cluster", "error", err)
			}
			r.flush()
			return
		}
		server := r.newLink(connection, false, serverStreamBuffer, serverConnectionBuffer)
		r.servers = append(r.servers, server)
		r.assignWaiting()
		r.lock.Unlock()
		r.serveLink(server)
	})
}

// serveLink reads from a connection to the API server until it ends.
func (r *relay) serveLink(server *link) {
	r.running.Go(server.writeAll)
	err := r.read(server)
	r.lock.Lock()
	server.close()
	r.servers = slices.DeleteFunc(r.servers, func(one *link) bool { return one == server })
	for _, one := range server.streams {
		one.stream.fail(http.StatusBadGateway, unreachable)
	}
	r.assignWaiting()
	r.lock.Unlock()
	r.log.Debug("a connection to the API server has ended", "error", err)
	r.flush()
}

// onGoAway takes the message that the other end takes no further streams. The hub closes the connection itself.
func (l *link) onGoAway(frame *http2.GoAwayFrame) {
	if l.isHub {
		return
	}
	l.isDraining = true
	for id, one := range l.streams {
		if id > frame.LastStreamID {
			one.stream.fail(http.StatusBadGateway, unreachable)
		}
	}
}

// onHeaders takes the headers of a response, or trailers.
func (h *half) onHeaders(frame *http2.MetaHeadersFrame) {
	s, to := h.stream, h.other()
	status := frame.PseudoValue("status")
	isLast := frame.StreamEnded()
	switch isResponse := h == &s.server && !s.isAnswered; {
	case frame.Truncated, to.isComplete, isResponse == (status == ""), status == "" && !isLast:
		s.abort(http2.ErrCodeProtocol)
	case isResponse && status[0] == '1' && !isLast:
		to.link.writeHeaders(to.id, frame.Fields, false)
	case isResponse:
		s.isAnswered = true
		to.isComplete = isLast
		to.link.writeHeaders(to.id, frame.Fields, isLast)
		if isLast {
			to.sent()
		}
	default:
		to.trailers, to.isComplete = frame.RegularFields(), true
		to.wait()
		for to.advance() {
		}
	}
}

// onData takes data of a request or response.
func (l *link) onData(frame *http2.DataFrame) error {
	size := int64(frame.Length)
	if l.receiveWindow -= size; l.receiveWindow < 0 || frame.StreamID > l.lastID {
		return http2.ConnectionError(http2.ErrCodeFlowControl)
	}
	from := l.streams[frame.StreamID]
	if from == nil {
		// The stream was reset.
		l.forwarded(size)
		return nil
	}
	to := from.other()
	if from.receiveWindow -= size; from.receiveWindow < 0 {
		return http2.ConnectionError(http2.ErrCodeFlowControl)
	}
	if to.isComplete || !l.isHub && !from.stream.isAnswered {
		l.forwarded(size)
		from.stream.abort(http2.ErrCodeProtocol)
		return nil
	}
	data := frame.Data()
	from.forwarded(size - int64(len(data)))
	to.forward(data, frame.StreamEnded())
	return nil
}
