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

// limitedBody is the body of a response to a request that is not a watch. Read fails when the body exceeds its limits.
type limitedBody struct {
	io.ReadCloser
	cancel context.CancelFunc
	// bytesLeft and valuesLeft are how many bytes and values the rest of the body may have.
	bytesLeft, valuesLeft int64
	read                  int64
	json                  bool
	scanner               fastjson.StringScanner
	response              responseContext
	// slot is nil until the response is large. If isSlotShared is true, it belongs to the context of [WithSlot], which
	// releases it after the response is decoded. Otherwise Close releases it.
	slot         *slot
	isSlotShared bool
}

func (b *limitedBody) Read(into []byte) (int, error) {
	if b.bytesLeft < 0 {
		return 0, b.response.exceededBytes()
	}
	// One byte beyond the limit shows that the body exceeds it.
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
		if slotErr := b.checkLarge(into[:read], errors.Is(err, io.EOF)); slotErr != nil {
			return 0, slotErr
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = asConnectionError(err)
	}
	return read, err
}

// checkLarge counts the values in the next part of a large response, and acquires the slots that the response needs.
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

// watchBody is the body of a watch. It bounds each event, either with its own scanner or with its reader's.
type watchBody struct {
	io.ReadCloser
	cancel   context.CancelFunc
	response responseContext
	// scanner finds the ends of events. It is nil if the reader calls CheckEvent itself.
	scanner eventScanner
	// slot is acquired for a large event. The next read releases it, since it shows that the event was decoded.
	slot slot
	// lastWasLarge is true if the last read ended a large event.
	lastWasLarge bool
	// failed is the error of all further reads.
	failed error
}

// TakeEventLimiter returns the limiter for a reader that scans events itself. The body stops to scan them.
func (s *watchBody) TakeEventLimiter() fastjson.EventLimiter {
	s.scanner = nil
	return s
}

// CheckEvent returns an error if a large event exceeds its limits. size and values count the event so far, and ended is true
// if the event is complete.
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

// EventDecoded releases the slot of a large event. The reader calls it before it reads the next event.
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

// eventScanner finds the events in a stream that is read in parts.
type eventScanner interface {
	// scan returns the size of the largest event in the part, including the event's earlier parts. values is the number of
	// values in a large event. ended is true if an event ends in the part.
	scan(part []byte) (size, values int64, ended bool)
}

// bufferFactor is the size of a watch reader's buffers, relative to the largest event so far. The reader keeps them until
// the watch ends.
const bufferFactor = 2

// jsonEventScanner scans a stream of JSON objects. Bytes between two objects count for the second one.
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

// lengthPrefixedScanner scans a stream of messages, each with its length in four bytes before it.
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
