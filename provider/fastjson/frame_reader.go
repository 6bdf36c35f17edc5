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

package fastjson

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// readBufferSize is the size of the read buffer of a watch, in bytes. Each watch keeps its buffer, even while it is idle, so it is small.
// Below it HTTP/2 has a buffer already, so a larger one saves hardly anything.
const readBufferSize = 1 << 10

// whitespace are the characters that JSON allows between two values.
const whitespace = " \t\r\n"

// framer splits the stream of a watch into events. Its filter may be nil.
type framer struct {
	runtime.Framer
	filter *Filter
}

// NewFrameReader returns a reader that returns one event per Read. If the buffer is too small, Read returns a part of the
// event with [io.ErrShortBuffer].
func (f framer) NewFrameReader(stream io.ReadCloser) io.ReadCloser {
	reader := &frameReader{Closer: stream, buffered: bufio.NewReaderSize(stream, readBufferSize), limiter: unlimited{}, filter: f.filter}
	if bounded, ok := stream.(eventLimiterSource); ok {
		reader.limiter = bounded.TakeEventLimiter()
	}
	return reader
}

// eventLimiterSource is a stream that limits the size of events itself, unless a frame reader takes its limiter.
type eventLimiterSource interface {
	TakeEventLimiter() EventLimiter
}

// EventLimiter limits events that are longer than [LargeThreshold].
type EventLimiter interface {
	// CheckEvent receives the bytes and values of an event so far, and whether the event has ended. After an error the
	// reader stops.
	CheckEvent(size, values int64, ended bool) error
	// EventDecoded is called before the next event is read after a large one.
	EventDecoded()
}

type unlimited struct{}

func (unlimited) CheckEvent(int64, int64, bool) error { return nil }
func (unlimited) EventDecoded()                       {}

// frameReader reads one JSON object after the other. It only finds the end of each object; the decoder finds syntax errors.
type frameReader struct {
	io.Closer
	buffered *bufio.Reader
	// scanner is the state within the current object.
	scanner ObjectScanner
	// length is the number of bytes of the current object so far. values is the number of its values, counted only above
	// LargeThreshold.
	length, values int64
	limiter        EventLimiter
	// lastWasLarge is true if the last object was longer than LargeThreshold.
	lastWasLarge bool
	// filter may be nil. dropped is the number of events that it has dropped.
	filter  *Filter
	dropped int
}

// Read reads the next object that the filter keeps, or the next part of an object that does not fit into the buffer. Such an object
// is kept: the buffer grows to the largest object, so there are few.
func (f *frameReader) Read(into []byte) (read int, err error) {
	for {
		isPart := f.scanner != (ObjectScanner{})
		read, err = f.readPart(into)
		if f.filter == nil || isPart || err != nil || !f.filter.dropsEvent(into[:read]) {
			return read, err
		}
		if f.dropped++; f.dropped%bookmarkInterval == 1 {
			if bookmark := bookmarkFor(into[:read]); bookmark != nil && len(bookmark) <= len(into) {
				return copy(into, bookmark), nil
			}
		}
	}
}

// readPart reads an object, or the next part of one.
func (f *frameReader) readPart(into []byte) (read int, err error) {
	if f.scanner == (ObjectScanner{}) {
		if f.lastWasLarge {
			f.lastWasLarge = false
			f.limiter.EventDecoded()
		}
		if err := f.skipToObject(); err != nil {
			return 0, err
		}
	}
	for read < len(into) {
		if _, err := f.buffered.Peek(1); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
		// Peeking at buffered bytes never fails.
		ahead, _ := f.buffered.Peek(min(f.buffered.Buffered(), len(into)-read))
		before := f.scanner.StringScanner
		length, ended := f.scanner.Scan(ahead)
		read += copy(into[read:], ahead[:length])
		if f.length += int64(length); f.length > LargeThreshold {
			f.values += before.CountValues(ahead[:length])
		}
		if _, err := f.buffered.Discard(length); err != nil {
			return 0, err
		}
		if f.length > LargeThreshold {
			f.lastWasLarge = ended
			if err := f.limiter.CheckEvent(f.length, f.values, ended); err != nil {
				return 0, err
			}
		}
		if ended {
			f.scanner, f.length, f.values = ObjectScanner{}, 0, 0
			return read, nil
		}
	}
	return read, io.ErrShortBuffer
}

// skipToObject skips white space up to the next object.
func (f *frameReader) skipToObject() error {
	for {
		next, err := f.buffered.ReadByte()
		switch {
		case err != nil:
			return err
		case strings.IndexByte(whitespace, next) >= 0:
		case next == '{':
			return f.buffered.UnreadByte()
		default:
			return fmt.Errorf("a watch sent %q where an object should begin", next)
		}
	}
}

// LargeThreshold is the size in bytes up to which the values of a text need not be counted: short texts cannot have many.
const LargeThreshold = 64 << 10

// StringScanner tracks whether a position in a JSON text is inside a string. Its zero value is the start of the text.
type StringScanner struct{ quoted, escaped bool }

// Skip advances over the next part of the text.
func (s *StringScanner) Skip(text []byte) {
	for len(text) > 0 {
		if s.escaped {
			s.escaped, text = false, text[1:]
			continue
		}
		part, rest, escapes := bytes.Cut(text, []byte{'\\'})
		if bytes.Count(part, []byte{'"'})%2 == 1 {
			s.quoted = !s.quoted
		}
		s.escaped, text = escapes, rest
	}
}

// CountValues advances over the next part of the text, and returns a lower bound of the number of its fields and items.
// Characters in strings do not count, since a string is decoded into one value.
func (s *StringScanner) CountValues(text []byte) (values int64) {
	for _, c := range text {
		switch {
		case s.escaped:
			s.escaped = false
		case s.quoted && c == '\\':
			s.escaped = true
		case c == '"':
			s.quoted = !s.quoted
		case s.quoted:
		case c == ',' || c == '{' || c == '[':
			values++
		}
	}
	return values
}

// ObjectScanner finds the end of a JSON object. It starts at the object's first brace.
type ObjectScanner struct {
	StringScanner
	depth int
}

// Scan advances over the next part of a text. It returns how many bytes belong to the object, and whether the object has
// ended.
func (e *ObjectScanner) Scan(text []byte) (length int, ended bool) {
	for i, c := range text {
		switch {
		case e.escaped:
			e.escaped = false
		case e.quoted && c == '\\':
			e.escaped = true
		case c == '"':
			e.quoted = !e.quoted
		case e.quoted:
		case c == '{':
			e.depth++
		case c == '}':
			e.depth--
			if e.depth <= 0 {
				return i + 1, true
			}
		}
	}
	return len(text), false
}
