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

package transport

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"

	"github.com/synchub-dev/synchub/provider/fastjson"
)

// limitedBody is that of an answer. It ends with an error where its limit is passed.
type limitedBody struct {
	io.ReadCloser
	cancel context.CancelFunc
	// bytesLeft are the bytes that may still be read, and values the values.
	bytesLeft, valuesLeft int64
	read                  int64
	json                  bool
	scanner               fastjson.StringScanner
	response              responseContext
	// slot is the answer's own unless somebody holds one for it until it is decoded: then kept is true.
	slot         *slot
	isSlotShared bool
}

func (b *limitedBody) Read(into []byte) (int, error) {
	if b.bytesLeft < 0 {
		return 0, b.response.exceededBytes()
	}
	// One more than is allowed shows that there is more.
	if int64(len(into)) > b.bytesLeft+1 {
		into = into[:b.bytesLeft+1]
	}
	read, err := b.ReadCloser.Read(into)
	b.bytesLeft -= int64(read)
	b.read += int64(read)
	if b.bytesLeft < 0 {
		return 0, b.response.exceededBytes()
	}
	switch {
	case b.read <= fastjson.LargeThreshold:
		if b.json {
			b.scanner.Skip(into[:read])
		}
	default:
		if turnErr := b.checkLarge(into[:read], errors.Is(err, io.EOF)); turnErr != nil {
			return 0, turnErr
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = asConnectionError(err)
	}
	return read, err
}

// checkLarge bounds the next part of a large answer.
func (b *limitedBody) checkLarge(part []byte, ended bool) error {
	_, limit := b.response.Limits.forRequest(b.response.request, b.response.kind)
	if b.json {
		if b.valuesLeft -= b.scanner.CountValues(part); b.valuesLeft < 0 {
			b.bytesLeft = -1
			return b.response.exceeded(limit, "values")
		}
	}
	ctx := b.response.request.Context()
	if b.slot == nil {
		b.slot, b.isSlotShared = ctx.Value(slotKey{}).(*slot)
		if !b.isSlotShared {
			b.slot = &slot{}
		}
	}
	if ended && b.isSlotShared && limit-b.valuesLeft > manyValues {
		return b.slot.acquireManyValues(ctx)
	}
	return b.slot.acquireLarge(ctx, b.response.LargeSlots)
}

func (b *limitedBody) Close() error {
	err := b.ReadCloser.Close()
	if b.cancel != nil {
		b.cancel()
	}
	if b.slot != nil && !b.isSlotShared {
		b.slot.release()
	}
	return err
}

// watchBody is the body of a watch. It bounds each event, by itself unless its reader does.
type watchBody struct {
	io.ReadCloser
	cancel   context.CancelFunc
	response responseContext
	// scanner follows where events end; nil if the reader does.
	scanner eventScanner
	// slot is that of a large event, until something is read after it: then it was decoded.
	slot slot
	// lastWasLarge is true if the measure has seen such an event end.
	lastWasLarge bool
	// failed is why nothing more is read.
	failed error
}

// TakeEventLimiter says that the reader bounds events itself, by telling how they grow.
func (s *watchBody) TakeEventLimiter() fastjson.EventLimiter {
	s.scanner = nil
	return s
}

// CheckEvent is told of an event that is not short: how long it is so far, how many values it has, and whether it ends there.
func (s *watchBody) CheckEvent(size, values int64, ended bool) error {
	limits, ctx := s.response.Limits, s.response.request.Context()
	switch {
	case size > limits.Event:
		return s.response.exceeded(limits.Event, "bytes")
	case values > limits.EventValues:
		return s.response.exceeded(limits.EventValues, "values")
	}
	if err := s.slot.acquireLarge(ctx, s.response.LargeSlots); err != nil {
		return err
	}
	if !ended {
		return nil
	}
	if s.response.OnBufferChange != nil {
		s.response.OnBufferChange(s.slot.growBuffer(bufferFactor * size))
	}
	if values > manyValues {
		return s.slot.acquireManyValues(ctx)
	}
	return nil
}

// EventDecoded is called when more is to be read after a large event.
func (s *watchBody) EventDecoded() { s.slot.release() }

func (s *watchBody) Read(into []byte) (int, error) {
	if s.failed != nil {
		return 0, s.failed
	}
	if s.lastWasLarge {
		s.lastWasLarge = false
		s.EventDecoded()
	}
	read, err := s.ReadCloser.Read(into)
	if s.scanner != nil {
		if size, values, ended := s.scanner.scan(into[:read]); size > fastjson.LargeThreshold {
			s.lastWasLarge = ended
			if s.failed = s.CheckEvent(size, values, ended); s.failed != nil {
				return 0, s.failed
			}
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = asConnectionError(err)
	}
	return read, err
}

func (s *watchBody) Close() error {
	err := s.ReadCloser.Close()
	if s.cancel != nil {
		s.cancel()
	}
	if room := s.slot.close(); room > 0 {
		s.response.OnBufferChange(-room)
	}
	return err
}

// eventScanner follows events, whatever the parts in which they come.
type eventScanner interface {
	// scan returns the size of the largest event of which the part is one, how many values it has if it is large, and whether one
	// has ended.
	scan(part []byte) (size, values int64, ended bool)
}

// bufferFactor is how much room who reads a watch keeps for each byte of the largest event so far, for as long as the watch lasts.
const bufferFactor = 2

// jsonEventScanner follows JSON objects. What stands between two counts for the next.
type jsonEventScanner struct {
	object       fastjson.ObjectScanner
	size, values int64
}

func (o *jsonEventScanner) scan(part []byte) (size, values int64, ended bool) {
	for len(part) > 0 {
		if o.object == (fastjson.ObjectScanner{}) {
			begin := bytes.IndexByte(part, '{')
			if begin < 0 {
				o.size += int64(len(part))
				return max(size, o.size), values, ended
			}
			o.size, part = o.size+int64(begin), part[begin:]
		}
		before := o.object.StringScanner
		length, ends := o.object.Scan(part)
		o.size += int64(length)
		if o.size > fastjson.LargeThreshold {
			o.values += before.CountValues(part[:length])
		}
		part = part[length:]
		size, values = max(size, o.size), max(values, o.values)
		if ends {
			*o, ended = jsonEventScanner{}, true
		}
	}
	return size, values, ended
}

// lengthPrefixedScanner follows messages that are preceded by their lengths in four bytes.
type lengthPrefixedScanner struct {
	header     [4]byte
	headerRead int
	size       int64
	left       int64
}

func (f *lengthPrefixedScanner) scan(part []byte) (size, values int64, ended bool) {
	for len(part) > 0 {
		if f.left > 0 {
			length := min(f.left, int64(len(part)))
			f.left, part = f.left-length, part[length:]
			size, ended = max(size, f.size), ended || f.left == 0
			continue
		}
		copied := copy(f.header[f.headerRead:], part)
		f.headerRead, part = f.headerRead+copied, part[copied:]
		if f.headerRead == len(f.header) {
			f.headerRead, f.left = 0, int64(binary.BigEndian.Uint32(f.header[:]))
			f.size = f.left
			size = max(size, f.left)
		}
	}
	return size, 0, ended
}
