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

	"github.com/synchub-dev/synchub/provider/decoding"
)

// body is that of an answer. It ends with an error where its limit is passed.
type body struct {
	io.ReadCloser
	cancel context.CancelFunc
	// left are the bytes that may still be read, and values the values.
	left, values int64
	read         int64
	json         bool
	strings      decoding.Strings
	asked        asked
	// turn is the answer's own unless somebody holds one for it until it is decoded: then kept is true.
	turn *turn
	kept bool
}

func (b *body) Read(into []byte) (int, error) {
	if b.left < 0 {
		return 0, b.asked.exceededBytes()
	}
	// One more than is allowed shows that there is more.
	if int64(len(into)) > b.left+1 {
		into = into[:b.left+1]
	}
	read, err := b.ReadCloser.Read(into)
	b.left -= int64(read)
	b.read += int64(read)
	if b.left < 0 {
		return 0, b.asked.exceededBytes()
	}
	switch {
	case b.read <= decoding.Unsuspicious:
		if b.json {
			b.strings.Skip(into[:read])
		}
	default:
		if turnErr := b.large(into[:read], errors.Is(err, io.EOF)); turnErr != nil {
			return 0, turnErr
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = explain(err)
	}
	return read, err
}

// large bounds the next part of a large answer.
func (b *body) large(part []byte, ended bool) error {
	_, limit := b.asked.Limits.of(b.asked.request, b.asked.kind)
	if b.json {
		if b.values -= b.strings.Values(part); b.values < 0 {
			b.left = -1
			return b.asked.exceeded(limit, "values")
		}
	}
	ctx := b.asked.request.Context()
	if b.turn == nil {
		b.turn, b.kept = ctx.Value(wholeKey{}).(*turn)
		if !b.kept {
			b.turn = &turn{}
		}
	}
	if ended && b.kept && limit-b.values > heavyValues {
		return b.turn.takeHeavy(ctx)
	}
	return b.turn.takeLarge(ctx, b.asked.Turns)
}

func (b *body) Close() error {
	err := b.ReadCloser.Close()
	if b.cancel != nil {
		b.cancel()
	}
	if b.turn != nil && !b.kept {
		b.turn.giveBack()
	}
	return err
}

// stream is the body of a watch. It bounds each event, by itself unless its reader does.
type stream struct {
	io.ReadCloser
	cancel context.CancelFunc
	asked  asked
	// measure follows where events end; nil if the reader does.
	measure measure
	// turn is that of a large event, until something is read after it: then it was decoded.
	turn turn
	// decoded is true if the measure has seen such an event end.
	decoded bool
	// failed is why nothing more is read.
	failed error
}

// ClaimFrames says that the reader bounds events itself, by telling how they grow.
func (s *stream) ClaimFrames() decoding.Growth {
	s.measure = nil
	return s
}

// Grown is told of an event that is not short: how long it is so far, how many values it has, and whether it ends there.
func (s *stream) Grown(size, values int64, ended bool) error {
	limits, ctx := s.asked.Limits, s.asked.request.Context()
	switch {
	case size > limits.Event:
		return s.asked.exceeded(limits.Event, "bytes")
	case values > limits.EventValues:
		return s.asked.exceeded(limits.EventValues, "values")
	}
	if err := s.turn.takeLarge(ctx, s.asked.Turns); err != nil {
		return err
	}
	if !ended {
		return nil
	}
	if s.asked.OnRoom != nil {
		s.asked.OnRoom(s.turn.keepRoom(roomFactor * size))
	}
	if values > heavyValues {
		return s.turn.takeHeavy(ctx)
	}
	return nil
}

// Decoded is called when more is to be read after a large event.
func (s *stream) Decoded() { s.turn.giveBack() }

func (s *stream) Read(into []byte) (int, error) {
	if s.failed != nil {
		return 0, s.failed
	}
	if s.decoded {
		s.decoded = false
		s.Decoded()
	}
	read, err := s.ReadCloser.Read(into)
	if s.measure != nil {
		if size, values, ended := s.measure.follow(into[:read]); size > decoding.Unsuspicious {
			s.decoded = ended
			if s.failed = s.Grown(size, values, ended); s.failed != nil {
				return 0, s.failed
			}
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = explain(err)
	}
	return read, err
}

func (s *stream) Close() error {
	err := s.ReadCloser.Close()
	if s.cancel != nil {
		s.cancel()
	}
	if room := s.turn.end(); room > 0 {
		s.asked.OnRoom(-room)
	}
	return err
}

// measure follows events, whatever the parts in which they come.
type measure interface {
	// follow returns the size of the largest event of which the part is one, how many values it has if it is large, and whether one
	// has ended.
	follow(part []byte) (size, values int64, ended bool)
}

// roomFactor is how much room who reads a watch keeps for each byte of the largest event so far, for as long as the watch lasts.
const roomFactor = 2

// objects follows JSON objects. What stands between two counts for the next.
type objects struct {
	extent       decoding.Extent
	size, values int64
}

func (o *objects) follow(part []byte) (size, values int64, ended bool) {
	for len(part) > 0 {
		if o.extent == (decoding.Extent{}) {
			begin := bytes.IndexByte(part, '{')
			if begin < 0 {
				o.size += int64(len(part))
				return max(size, o.size), values, ended
			}
			o.size, part = o.size+int64(begin), part[begin:]
		}
		before := o.extent.Strings
		length, ends := o.extent.Follow(part)
		o.size += int64(length)
		if o.size > decoding.Unsuspicious {
			o.values += before.Values(part[:length])
		}
		part = part[length:]
		size, values = max(size, o.size), max(values, o.values)
		if ends {
			*o, ended = objects{}, true
		}
	}
	return size, values, ended
}

// frames follows messages that are preceded by their lengths in four bytes.
type frames struct {
	header [4]byte
	had    int
	size   int64
	left   int64
}

func (f *frames) follow(part []byte) (size, values int64, ended bool) {
	for len(part) > 0 {
		if f.left > 0 {
			length := min(f.left, int64(len(part)))
			f.left, part = f.left-length, part[length:]
			size, ended = max(size, f.size), ended || f.left == 0
			continue
		}
		copied := copy(f.header[f.had:], part)
		f.had, part = f.had+copied, part[copied:]
		if f.had == len(f.header) {
			f.had, f.left = 0, int64(binary.BigEndian.Uint32(f.header[:]))
			f.size = f.left
			size = max(size, f.left)
		}
	}
	return size, 0, ended
}
