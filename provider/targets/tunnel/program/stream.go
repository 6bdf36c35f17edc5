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
	"strconv"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// stream is one request of the hub with its response. A response ends at the hub, and a request at the API server.
type stream struct {
	relay       *relay
	hub, server half
	// waiting are the headers of a request that waits for a connection to the API server.
	waiting []hpack.HeaderField
	// isAnswered is true once the hub has the headers of the response.
	isAnswered bool
}

// half is what one connection has of a stream.
type half struct {
	stream *stream
	// link is nil while there is no connection, and when its part of the stream has ended.
	link *link
	id   uint32
	// sendWindow is how many bytes this end takes. receiveWindow is how many it may send, and credit how many of those that it sent are
	// forwarded.
	sendWindow, receiveWindow, credit int64
	// queue and then trailers wait for this end to take them. isComplete is true if nothing follows them, and isSent once this end
	// has got all.
	queue              []byte
	trailers           []hpack.HeaderField
	isComplete, isSent bool
	isPending          bool
}

// other returns the half at the other connection.
func (h *half) other() *half {
	if h == &h.stream.hub {
		return &h.stream.server
	}
	return &h.stream.hub
}

// forward sends data to this end, and keeps what it does not take yet.
func (h *half) forward(data []byte, isLast bool) {
	h.isComplete = h.isComplete || isLast
	if h.isSent {
		h.other().forwarded(int64(len(data)))
		return
	}
	if len(h.queue) == 0 {
		count, isAll := h.writeData(data)
		if isAll {
			h.sent()
			return
		}
		data = data[count:]
	}
	h.queue = append(h.queue, data...)
	h.wait()
}

// wait makes the connection send the rest as soon as it can.
func (h *half) wait() {
	if !h.isPending && h.link != nil && h.waits() {
		h.isPending = true
		h.link.pending = append(h.link.pending, h)
	}
}

func (h *half) waits() bool { return !h.isSent && (len(h.queue) > 0 || h.isComplete) }

// advance sends one frame of what waits, and reports whether it did.
func (h *half) advance() bool {
	if h.link == nil || !h.waits() {
		return false
	}
	count, isAll := h.writeData(h.queue)
	if h.queue = h.queue[count:]; len(h.queue) == 0 {
		h.queue = nil
	}
	if isAll {
		h.sent()
	}
	if count > 0 || isAll {
		return true
	}
	if len(h.queue) == 0 && h.trailers != nil {
		h.link.writeHeaders(h.id, h.trailers, true)
		h.sent()
		return true
	}
	return false
}

// writeData writes one frame with as much of the data as this end takes, and returns how much. isAll is true if nothing follows.
func (h *half) writeData(data []byte) (written int, isAll bool) {
	if h.link == nil {
		return 0, false
	}
	count := max(0, min(int64(len(data)), maxFrame, h.sendWindow, h.link.sendWindow, softOutgoing-int64(len(h.link.outgoing))))
	isAll = count == int64(len(data)) && h.isComplete && h.trailers == nil
	if count == 0 && !isAll {
		return 0, false
	}
	h.link.write(h.link.framer.WriteData(h.id, isAll, data[:count]))
	h.sendWindow -= count
	h.link.sendWindow -= count
	h.other().forwarded(count)
	return int(count), isAll
}

// forwarded lets this end send as many bytes more.
func (h *half) forwarded(count int64) {
	if h.link == nil || count == 0 {
		return
	}
	h.link.forwarded(count)
	if h.other().isComplete {
		return
	}
	if h.credit += count; h.credit >= h.link.bufferSize/4 {
		h.link.write(h.link.framer.WriteWindowUpdate(h.id, uint32(h.credit))) //nolint:gosec // at most the window
		h.receiveWindow += h.credit
		h.credit = 0
	}
}

// sent ends the stream when both ends have got all. A request that the API server did not want to the end is given up.
func (h *half) sent() {
	h.isSent = true
	s := h.stream
	if !s.hub.isSent || !s.server.isSent {
		return
	}
	if !s.server.isComplete {
		s.hub.reset(http2.ErrCodeNo)
	}
	s.hub.leave()
	s.server.leave()
}

// discard drops what waits for this end, and sends it nothing more.
func (h *half) discard() {
	if other := h.other(); other.link != nil {
		other.link.forwarded(int64(len(h.queue)))
	}
	h.queue, h.trailers, h.isSent = nil, nil, true
}

// leave removes the stream from the connection.
func (h *half) leave() {
	h.discard()
	if h.link == nil {
		return
	}
	// What this end sent and the other one has not got yet is not on this connection any more.
	h.link.forwarded(int64(len(h.other().queue)))
	delete(h.link.streams, h.id)
	isHub := h.link.isHub
	h.link = nil
	if !isHub {
		h.stream.relay.assignWaiting()
	}
}

func (h *half) reset(code http2.ErrCode) {
	if h.link != nil {
		h.link.write(h.link.framer.WriteRSTStream(h.id, code))
	}
}

// abort ends the stream at both ends.
func (s *stream) abort(code http2.ErrCode) {
	s.hub.reset(code)
	s.server.reset(code)
	s.hub.leave()
	s.server.leave()
}

// onReset is called when one end has given the stream up.
func (h *half) onReset(code http2.ErrCode) {
	s := h.stream
	if h == &s.server && s.hub.isComplete {
		// The API server has responded, and does not want the rest of the request.
		s.server.leave()
		s.server.sent()
		return
	}
	h.leave()
	h.other().reset(code)
	h.other().leave()
}

// fail ends a stream whose connection to the API server has ended, or never began.
func (s *stream) fail(status int, text string) {
	s.server.leave()
	switch {
	case s.hub.isComplete:
		s.server.sent()
	case s.isAnswered:
		s.abort(http2.ErrCodeInternal)
	default:
		s.isAnswered = true
		if s.hub.link != nil {
			s.hub.link.writeHeaders(s.hub.id, []hpack.HeaderField{
				{Name: ":status", Value: strconv.Itoa(status)}, {Name: "content-type", Value: "text/plain; charset=utf-8"},
			}, false)
		}
		s.hub.forward([]byte(text), true)
	}
}
