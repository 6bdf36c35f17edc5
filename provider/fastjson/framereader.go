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

// readBufferSize is how much of a watch is read at once, in bytes. Each watch has a buffer of that size, also while it is quiet.
const readBufferSize = 4 << 10

// whitespace is what may stand between two values of JSON.
const whitespace = " \t\r\n"

// framer cuts what a watch sends into events.
type framer struct{ runtime.Framer }

// NewFrameReader returns a reader of which each read returns one event, or as much of it as there is room for with
// [io.ErrShortBuffer].
func (framer) NewFrameReader(stream io.ReadCloser) io.ReadCloser {
	reader := &frameReader{Closer: stream, buffered: bufio.NewReaderSize(stream, readBufferSize), limiter: unlimited{}}
	if bounded, ok := stream.(eventLimiterSource); ok {
		reader.limiter = bounded.TakeEventLimiter()
	}
	return reader
}

// eventLimiterSource is a stream that bounds its events unless its reader says that it does.
type eventLimiterSource interface {
	TakeEventLimiter() EventLimiter
}

// EventLimiter is told of events that are longer than [LargeThreshold].
type EventLimiter interface {
	// CheckEvent is told how long an event is so far, how many values it has, and whether it ends there. With an error nothing more is read.
	CheckEvent(size, values int64, ended bool) error
	// EventDecoded is called when more is to be read after such an event has ended.
	EventDecoded()
}

type unlimited struct{}

func (unlimited) CheckEvent(int64, int64, bool) error { return nil }
func (unlimited) EventDecoded()                       {}

// frameReader reads one JSON object after the other. It looks only where each ends, since whoever decodes it sees what is wrong in it.
type frameReader struct {
	io.Closer
	buffered *bufio.Reader
	// scanner is how far the object that was begun has been followed.
	scanner ObjectScanner
	// length is how long it is so far, and values how many values were counted of a long one.
	length, values int64
	limiter        EventLimiter
	// lastWasLarge is true if the last object was a long one.
	lastWasLarge bool
}

// Read reads an object, or the next part of one that is longer than there is room for.
func (f *frameReader) Read(into []byte) (read int, err error) {
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
		// What is buffered can be had without an error.
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

// LargeThreshold is how long a text may be without its values being counted: short ones cannot have many.
const LargeThreshold = 64 << 10

// StringScanner tells whether a place in a JSON text is in a string. It begins where the text does.
type StringScanner struct{ quoted, escaped bool }

// Skip goes through the next part of the text.
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

// CountValues goes through the next part of the text, and returns at least how many fields and items it has. What is in strings
// does not count: it is not decoded into more than itself.
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

// ObjectScanner tells where an object of JSON ends. It begins with the object's first brace.
type ObjectScanner struct {
	StringScanner
	depth int
}

// Scan goes through the next part of a text, and returns how much of it belongs to the object, and whether that ends there.
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
