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

package decoding

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// readAhead is how much of a watch is read at once, in bytes. Each watch has a buffer of that size, also while it is quiet.
const readAhead = 4 << 10

// space is what may stand between two values of JSON.
const space = " \t\r\n"

// framer cuts what a watch sends into events.
type framer struct{ runtime.Framer }

// NewFrameReader returns a reader of which each read returns one event, or as much of it as there is room for with
// [io.ErrShortBuffer].
func (framer) NewFrameReader(stream io.ReadCloser) io.ReadCloser {
	reader := &frames{Closer: stream, in: bufio.NewReaderSize(stream, readAhead), limit: math.MaxInt64}
	if bounded, ok := stream.(claimable); ok {
		reader.limit, reader.exceeded = bounded.ClaimFrames()
	}
	return reader
}

// claimable is a stream that bounds its events unless its reader says that it does.
type claimable interface {
	ClaimFrames() (limit int64, exceeded func() error)
}

// frames reads one JSON object after the other. It looks only where each ends, since whoever decodes it sees what is wrong in it.
type frames struct {
	io.Closer
	in *bufio.Reader
	// begun is how far the object that was begun has been followed.
	begun Extent
	// length is how long it is so far, limit how long it may be, and exceeded the error if it is longer.
	length, limit int64
	exceeded      func() error
}

// Read reads an object, or the next part of one that is longer than there is room for.
func (f *frames) Read(into []byte) (read int, err error) {
	if f.begun == (Extent{}) {
		if err := f.begin(); err != nil {
			return 0, err
		}
	}
	for read < len(into) {
		if _, err := f.in.Peek(1); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
		// What is buffered can be had without an error.
		ahead, _ := f.in.Peek(min(f.in.Buffered(), len(into)-read))
		length, ended := f.begun.Follow(ahead)
		read += copy(into[read:], ahead[:length])
		if _, err := f.in.Discard(length); err != nil {
			return 0, err
		}
		if f.length += int64(length); f.length > f.limit {
			return 0, f.exceeded()
		}
		if ended {
			f.begun, f.length = Extent{}, 0
			return read, nil
		}
	}
	return read, io.ErrShortBuffer
}

// begin skips white space up to the next object.
func (f *frames) begin() error {
	for {
		next, err := f.in.ReadByte()
		switch {
		case err != nil:
			return err
		case strings.IndexByte(space, next) >= 0:
		case next == '{':
			return f.in.UnreadByte()
		default:
			return fmt.Errorf("a watch sent %q where an object should begin", next)
		}
	}
}

// Extent tells where an object of JSON ends. It begins with the object's first brace.
type Extent struct {
	depth           int
	quoted, escaped bool
}

// Follow goes through the next part of a text, and returns how much of it belongs to the object, and whether that ends there.
func (e *Extent) Follow(text []byte) (length int, ended bool) {
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
