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
	"bufio"
	"bytes"
	"errors"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/synchub-dev/synchub/provider/targets/tunnel/protocol"
)

const (
	// maxFrame is the payload of a frame that every end of HTTP/2 takes.
	maxFrame = 16 << 10
	// defaultWindow is the flow control window that HTTP/2 begins with, and headerTable the size of its table for headers.
	defaultWindow = 1<<16 - 1
	headerTable   = 4 << 10
	// readBuffer holds a TLS record.
	readBuffer = 16 << 10
	// softOutgoing is how many bytes wait for a write before data waits in the streams, and maxOutgoing closes the connection of an
	// end that sends frames and does not read the responses.
	softOutgoing, maxOutgoing = 32 << 10, 4 << 20
	// assumedStreams is how many streams an API server takes at once until it reports it.
	assumedStreams = 100
)

var errNotRead = errors.New("the other end does not read")

// netConn is a connection with TLS.
type netConn interface {
	net.Conn
	// NetConn returns the connection below TLS.
	NetConn() net.Conn
}

// link is one connection with HTTP/2. All fields but the first group are guarded by the lock of the relay.
type link struct {
	relay  *relay
	conn   netConn
	framer *http2.Framer
	isHub  bool
	// lastRead is when bytes arrived last, in nanoseconds.
	lastRead atomic.Int64

	streams map[uint32]*half
	// lastID is the highest stream.
	lastID uint32
	// isDraining is true when no stream may be added, and isClosed when the connection is closed.
	isDraining, isClosed bool
	pinged, idleSince    time.Time

	// outgoing waits for a write, of which ready informs the writer. isDirty is true if the relay has a note to do that.
	outgoing, spare []byte
	ready           *sync.Cond
	isDirty         bool
	encoder         *hpack.Encoder
	block           bytes.Buffer

	// sendWindow is how many bytes the other end takes, and streamWindow how many for a new stream. maxStreams is its limit.
	sendWindow, streamWindow int64
	maxStreams               uint32
	// receiveWindow is how many bytes the other end may send, and credit how many of those that it sent are forwarded.
	receiveWindow, credit int64
	window, bufferSize    int64
	// pending are the streams with data that waits for a window or a write.
	pending []*half
}

// newLink returns a connection. It writes the settings, with the window of each stream and of the connection.
func (r *relay) newLink(conn netConn, isHub bool, streamBuffer, connectionBuffer int64) *link {
	l := &link{
		relay: r, conn: conn, isHub: isHub, streams: map[uint32]*half{}, sendWindow: defaultWindow, streamWindow: defaultWindow,
		maxStreams: assumedStreams, receiveWindow: connectionBuffer, window: connectionBuffer, bufferSize: streamBuffer,
	}
	l.lastRead.Store(r.clock.Now().UnixNano())
	l.ready = sync.NewCond(&r.lock)
	l.encoder = hpack.NewEncoder(&l.block)
	l.framer = http2.NewFramer((*outgoing)(l), bufio.NewReaderSize((*incoming)(l), readBuffer))
	l.framer.SetReuseFrames()
	l.framer.SetMaxReadFrameSize(maxFrame)
	l.framer.ReadMetaHeaders = hpack.NewDecoder(headerTable, nil)
	l.framer.MaxHeaderListSize = protocol.MaxHeaderBytes
	settings := []http2.Setting{{ID: http2.SettingInitialWindowSize, Val: uint32(streamBuffer)}, {ID: http2.SettingMaxHeaderListSize, Val: protocol.MaxHeaderBytes}} //nolint:gosec // constants
	if isHub {
		settings = append(settings, http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: protocol.MaxStreams})
	} else {
		l.outgoing = append(l.outgoing, http2.ClientPreface...)
		settings = append(settings, http2.Setting{ID: http2.SettingEnablePush, Val: 0})
	}
	l.write(l.framer.WriteSettings(settings...))
	l.write(l.framer.WriteWindowUpdate(0, uint32(connectionBuffer-defaultWindow))) //nolint:gosec // constants
	return l
}

// incoming is the link as a reader of bytes.
type incoming link

// Read lets all be written that is outgoing, before it waits for bytes.
func (in *incoming) Read(p []byte) (int, error) {
	in.relay.flush()
	count, err := in.conn.Read(p)
	in.lastRead.Store(in.relay.clock.Now().UnixNano())
	return count, err
}

// outgoing is the link as a writer of frames.
type outgoing link

func (out *outgoing) Write(p []byte) (int, error) {
	out.outgoing = append(out.outgoing, p...)
	if !out.isDirty {
		out.isDirty = true
		out.relay.dirty = append(out.relay.dirty, (*link)(out))
	}
	return len(p), nil
}

// write checks the result of a method of the framer that writes. Such a method fails only if its caller is wrong.
func (l *link) write(err error) {
	if err == nil && len(l.outgoing) > maxOutgoing {
		err = errNotRead
	}
	if err != nil {
		l.close()
	}
}

// close ends the connection, which its reader notices. It sends no alert of TLS, which could block.
func (l *link) close() {
	l.isDraining, l.isClosed = true, true
	_ = l.conn.NetConn().Close()
	l.ready.Broadcast()
}

// writeAll writes what is outgoing until the connection is closed. Only this goroutine writes: a reader that waited for a write could wait
// for the other end, which waits for the reader.
func (l *link) writeAll() {
	l.relay.lock.Lock()
	defer l.relay.lock.Unlock()
	for !l.isClosed {
		if len(l.outgoing) == 0 {
			l.ready.Wait()
			continue
		}
		batch := l.outgoing
		l.outgoing, l.spare = l.spare[:0], nil
		l.relay.lock.Unlock()
		err := l.conn.SetWriteDeadline(time.Now().Add(protocol.WriteTimeout))
		if err == nil {
			_, err = l.conn.Write(batch)
		}
		l.relay.lock.Lock()
		if err != nil {
			l.close()
			return
		}
		if cap(batch) <= 2*softOutgoing {
			l.spare = batch
		}
		l.pump()
		l.relay.flushLocked()
	}
}

// pump forwards data that waits, one frame of each stream after the other.
func (l *link) pump() {
	for stalled := 0; stalled < len(l.pending) && len(l.outgoing) < softOutgoing; {
		next := l.pending[0]
		l.pending = l.pending[1:]
		if stalled++; next.advance() {
			stalled = 0
		}
		if next.isPending = next.waits(); next.isPending {
			l.pending = append(l.pending, next)
		} else {
			stalled = 0
		}
	}
}

// writeHeaders writes a block of headers.
func (l *link) writeHeaders(id uint32, fields []hpack.HeaderField, isLast bool) {
	l.block.Reset()
	for _, field := range fields {
		l.write(l.encoder.WriteField(field))
	}
	block := l.block.Next(maxFrame)
	l.write(l.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndStream: isLast, EndHeaders: l.block.Len() == 0}))
	for l.block.Len() > 0 {
		block = l.block.Next(maxFrame)
		l.write(l.framer.WriteContinuation(id, l.block.Len() == 0, block))
	}
}

// forwarded lets the other end of the connection send as many bytes more.
func (l *link) forwarded(count int64) {
	l.credit += count
	if l.credit >= l.window/4 {
		l.write(l.framer.WriteWindowUpdate(0, uint32(l.credit))) //nolint:gosec // at most the window
		l.receiveWindow += l.credit
		l.credit = 0
	}
}

// onSettings takes settings of the other end.
func (l *link) onSettings(frame *http2.SettingsFrame) error {
	if frame.IsAck() {
		return nil
	}
	err := frame.ForeachSetting(func(setting http2.Setting) error {
		if err := setting.Valid(); err != nil {
			return err
		}
		switch setting.ID { //nolint:exhaustive // others do not concern this end
		case http2.SettingInitialWindowSize:
			difference := int64(setting.Val) - l.streamWindow
			l.streamWindow = int64(setting.Val)
			for _, one := range l.streams {
				if one.sendWindow += difference; one.sendWindow > math.MaxInt32 {
					return http2.ConnectionError(http2.ErrCodeFlowControl)
				}
			}
		case http2.SettingMaxConcurrentStreams:
			l.maxStreams = setting.Val
		case http2.SettingHeaderTableSize:
			l.encoder.SetMaxDynamicTableSize(min(setting.Val, headerTable))
		}
		return nil
	})
	l.write(l.framer.WriteSettingsAck())
	l.pump()
	return err
}

// onWindowUpdate takes the permission to send more.
func (l *link) onWindowUpdate(frame *http2.WindowUpdateFrame) error {
	if frame.StreamID != 0 {
		if one := l.streams[frame.StreamID]; one != nil {
			if one.sendWindow += int64(frame.Increment); one.sendWindow > math.MaxInt32 {
				one.stream.abort(http2.ErrCodeFlowControl)
			}
			for one.advance() {
			}
		}
		return nil
	}
	if l.sendWindow += int64(frame.Increment); l.sendWindow > math.MaxInt32 {
		return http2.ConnectionError(http2.ErrCodeFlowControl)
	}
	l.pump()
	return nil
}

// keepAlive pings a silent connection, and closes it if that gets no response.
func (l *link) keepAlive(now time.Time) {
	silent := now.Sub(time.Unix(0, l.lastRead.Load()))
	switch {
	case silent < protocol.PingAfter:
		l.pinged = time.Time{}
	case l.pinged.IsZero():
		l.pinged = now
		l.write(l.framer.WritePing(false, [8]byte{}))
	case now.Sub(l.pinged) >= protocol.PingTimeout:
		l.close()
	}
}

// hasRoom reports whether another stream may be opened on the connection to an API server.
func (l *link) hasRoom() bool {
	return !l.isDraining && uint32(len(l.streams)) < l.maxStreams && l.lastID < math.MaxInt32-2 //nolint:gosec // it is bounded
}

// closeIdle closes a connection to an API server that has not been used for a while, or must not be used any more.
func (l *link) closeIdle(now time.Time) {
	switch {
	case len(l.streams) > 0:
		l.idleSince = time.Time{}
	case l.isDraining:
		l.close()
	case l.idleSince.IsZero():
		l.idleSince = now
	case now.Sub(l.idleSince) >= idleTimeout:
		l.close()
	}
}
