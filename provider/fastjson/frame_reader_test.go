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
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/synchub-dev/synchub/test/fixtures"
)

// readFrame reads one frame into a buffer of the given size, which doubles each time that it is too small, as client-go
// reads a watch.
func readFrame(from io.Reader, room int) (frame []byte, err error) {
	for ; ; room *= 2 {
		part := make([]byte, room)
		read, err := from.Read(part)
		frame = append(frame, part[:read]...)
		if !errors.Is(err, io.ErrShortBuffer) {
			return frame, err
		}
	}
}

// A stream is split where the default framer splits it, however it is divided into reads. Input that the default framer
// refuses is refused too, or left to the decoder. Values other than objects are refused, since no event is one.
func FuzzFrames(f *testing.F) {
	for _, text := range []string{
		`{"a":1}` + "\n" + `{"b":"}{"}` + "\n", ` {} {"a":{"b":{}}}{"c":[{}, {}]}`, "{\n  \"a\": {\n  }\n}\r\n\t{}", `{"a":"\"}\\"}{"b":"\\\\"}`,
		`{"a":`, `{"a":"`, `{"a":"\`, `{`, `}`, `[{}]`, `1`, `null{}`, `{]}`, `{"a"}`, `{}}`, "", "\n", `{"a":"` + strings.Repeat("long ", 20) + `"}{}`,
	} {
		f.Add(text, uint8(7))
	}
	f.Fuzz(func(t *testing.T, text string, room uint8) {
		for name, stream := range map[string]func() io.Reader{
			"at once":      func() io.Reader { return strings.NewReader(text) },
			"byte by byte": func() io.Reader { return iotest.OneByteReader(strings.NewReader(text)) },
		} {
			theirs := defaultStreamSerializer(t).NewFrameReader(io.NopCloser(stream()))
			ours := framer{}.NewFrameReader(io.NopCloser(stream()))
			for {
				want, wantErr := readFrame(theirs, 1<<20)
				got, err := readFrame(ours, int(room)+1)
				if wantErr != nil || !bytes.HasPrefix(want, []byte("{")) {
					if err == nil && json.Valid(got) {
						t.Errorf("%q %s: want error %v, got %q", text, name, wantErr, got)
					}
					if errors.Is(wantErr, io.EOF) && !errors.Is(err, io.EOF) {
						t.Errorf("%q %s: want the end, got %q, %v", text, name, got, err)
					}
					break
				}
				if err != nil || !bytes.Equal(got, want) {
					t.Fatalf("%q %s: want %q, got %q, %v", text, name, want, got, err)
				}
			}
		}
	})
}

// An event may be longer than the buffer of the caller and than the read buffer.
func TestFramesOfAnySize(t *testing.T) {
	var events []string
	for size := 1; size <= 4*readBufferSize; size *= 4 {
		events = append(events, fmt.Sprintf(`{"a":"%s"}`, strings.Repeat("x", size)))
	}
	for _, room := range []int{1, 1024, readBufferSize, readBufferSize + 1} {
		ours := framer{}.NewFrameReader(io.NopCloser(strings.NewReader(strings.Join(events, "\n"))))
		for _, want := range events {
			if got, err := readFrame(ours, room); string(got) != want || err != nil {
				t.Fatalf("room for %d: want %d bytes, got %d, %v", room, len(want), len(got), err)
			}
		}
		if _, err := readFrame(ours, room); !errors.Is(err, io.EOF) {
			t.Errorf("room for %d: want the end, got %v", room, err)
		}
	}
}

// A broken watch differs from one that ends.
func TestFramesEnd(t *testing.T) {
	broken := errors.New("broken")
	for name, one := range map[string]struct {
		stream io.Reader
		want   error
	}{
		"between events":                 {strings.NewReader(`{"a":{}}` + "\n"), io.EOF},
		"in an event":                    {strings.NewReader(`{"a":{}}` + "\n" + `{"a`), io.ErrUnexpectedEOF},
		"by an error":                    {io.MultiReader(strings.NewReader(`{"a":{}}`), iotest.ErrReader(broken)), broken},
		"by an error in an event":        {io.MultiReader(strings.NewReader(`{"a":{}}{"`), iotest.ErrReader(broken)), broken},
		"with something that is no JSON": {strings.NewReader(`{"a":{}}<html>`), nil},
	} {
		t.Run(name, func(t *testing.T) {
			ours := framer{}.NewFrameReader(io.NopCloser(one.stream))
			if got, err := readFrame(ours, 100); string(got) != `{"a":{}}` || err != nil {
				t.Fatalf("want the event before, got %q, %v", got, err)
			}
			if got, err := readFrame(ours, 100); len(got) > 0 || err == nil || one.want != nil && !errors.Is(err, one.want) {
				t.Errorf("want error %v, got %q, %v", one.want, got, err)
			}
		})
	}
}

// recordingLimiter records the calls for large events.
type recordingLimiter struct {
	io.ReadCloser
	calls []string
	fail  error
}

func (g *recordingLimiter) TakeEventLimiter() EventLimiter { return g }

func (g *recordingLimiter) CheckEvent(size, values int64, ended bool) error {
	if ended {
		g.calls = append(g.calls, fmt.Sprint(size, " bytes, ", values, " values"))
	}
	return g.fail
}

func (g *recordingLimiter) EventDecoded() { g.calls = append(g.calls, "decoded") }

// The limiter is called while a large event grows, and once more before the next read after the event.
func TestLargeFramesAreReportedToTheLimiter(t *testing.T) {
	long := `{"a":"` + strings.Repeat("x", LargeThreshold) + `","b":[1,2,{}]}`
	stream := &recordingLimiter{ReadCloser: io.NopCloser(strings.NewReader(`{"a":1}` + long + `{}` + long))}
	ours := framer{}.NewFrameReader(stream)
	var want []string
	for _, then := range [][]string{nil, {fmt.Sprint(len(long), " bytes, 5 values")}, {"decoded"}, {fmt.Sprint(len(long), " bytes, 5 values")}} {
		if _, err := readFrame(ours, 1024); err != nil {
			t.Fatal(err)
		}
		if want = append(want, then...); !slices.Equal(stream.calls, want) {
			t.Fatalf("want %q, got %q", want, stream.calls)
		}
	}
	stream.fail = errors.New("too long")
	ours = framer{}.NewFrameReader(&recordingLimiter{ReadCloser: io.NopCloser(strings.NewReader(long)), fail: stream.fail})
	if _, err := readFrame(ours, 1024); !errors.Is(err, stream.fail) {
		t.Errorf("got %v", err)
	}
}

func BenchmarkFrames(b *testing.B) {
	kind := fixtures.All()[0]
	text, err := kind.TargetObject(b, "hub", kind.MailboxObject(b)).MarshalJSON()
	if err != nil {
		b.Fatal(err)
	}
	event := fmt.Appendf(nil, `{"type":"MODIFIED","object":%s}`+"\n", text)
	for name, from := range map[string]interface {
		NewFrameReader(stream io.ReadCloser) io.ReadCloser
	}{"usual": defaultStreamSerializer(b).Framer, "frames": framer{}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(event)))
			stream := from.NewFrameReader(io.NopCloser(&endlessReader{text: event}))
			into := make([]byte, 2*len(event))
			for b.Loop() {
				if _, err := stream.Read(into); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// endlessReader is a stream that repeats a text.
type endlessReader struct {
	text []byte
	sent int
}

func (e *endlessReader) Read(into []byte) (int, error) {
	read := copy(into, e.text[e.sent:])
	e.sent = (e.sent + read) % len(e.text)
	return read, nil
}
