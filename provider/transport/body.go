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
	case !b.json || read == 0:
	case b.read <= decoding.Unsuspicious:
		b.strings.Skip(into[:read])
	default:
		if b.values -= b.strings.Values(into[:read]); b.values < 0 {
			b.left = -1
			_, limit := b.asked.Limits.of(b.asked.request, b.asked.kind)
			return 0, b.asked.exceeded(limit, "values")
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = explain(err)
	}
	return read, err
}

func (b *body) Close() error {
	err := b.ReadCloser.Close()
	if b.cancel != nil {
		b.cancel()
	}
	return err
}

// stream is the body of a watch. It bounds each event, by itself unless its reader does.
type stream struct {
	io.ReadCloser
	cancel context.CancelFunc
	// limit is how many bytes an event may have, and values how many values.
	limit, values int64
	asked         asked
	// measure follows where events end; nil if the reader does.
	measure interface {
		follow(part []byte) (size, values int64)
	}
	// failed is why nothing more is read.
	failed error
}

// ClaimFrames says that the reader bounds events itself: by the limit, and with the error if one is longer.
func (s *stream) ClaimFrames() (bytes, values int64, exceeded func(limit int64, unit string) error) {
	s.measure = nil
	return s.limit, s.values, s.asked.exceeded
}

func (s *stream) Read(into []byte) (int, error) {
	if s.failed != nil {
		return 0, s.failed
	}
	read, err := s.ReadCloser.Read(into)
	if s.measure != nil {
		switch size, values := s.measure.follow(into[:read]); {
		case size > s.limit:
			s.failed = s.asked.exceeded(s.limit, "bytes")
		case values > s.values:
			s.failed = s.asked.exceeded(s.values, "values")
		}
		if s.failed != nil {
			return 0, s.failed
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
	return err
}

// objects follows JSON objects. What stands between two counts for the next.
type objects struct {
	extent       decoding.Extent
	size, values int64
}

// follow returns the size of the largest object of which the part is one, and how many values it has if it is large.
func (o *objects) follow(part []byte) (size, values int64) {
	for len(part) > 0 {
		if o.extent == (decoding.Extent{}) {
			begin := bytes.IndexByte(part, '{')
			if begin < 0 {
				o.size += int64(len(part))
				return max(size, o.size), values
			}
			o.size, part = o.size+int64(begin), part[begin:]
		}
		before := o.extent.Strings
		length, ended := o.extent.Follow(part)
		o.size += int64(length)
		if o.size > decoding.Unsuspicious {
			o.values += before.Values(part[:length])
		}
		part = part[length:]
		size, values = max(size, o.size), max(values, o.values)
		if ended {
			*o = objects{}
		}
	}
	return size, values
}

// frames follows messages that are preceded by their lengths in four bytes.
type frames struct {
	header [4]byte
	had    int
	left   int64
}

func (f *frames) follow(part []byte) (size, values int64) {
	for len(part) > 0 {
		if f.left > 0 {
			length := min(f.left, int64(len(part)))
			f.left, part = f.left-length, part[length:]
			continue
		}
		copied := copy(f.header[f.had:], part)
		f.had, part = f.had+copied, part[copied:]
		if f.had == len(f.header) {
			f.had, f.left = 0, int64(binary.BigEndian.Uint32(f.header[:]))
			size = max(size, f.left)
		}
	}
	return size, 0
}
