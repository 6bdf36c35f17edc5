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
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/synchub-dev/synchub/provider/redact"
)

// The body of any error response becomes a short printable text.
func FuzzRefusal(f *testing.F) {
	for _, content := range []string{
		"", "no", "\x1b[1m\xff", `{"kind":"Status","message":"` + strings.Repeat("x", 1000) + `","details":{"causes":[{"message":"a"}],"retryAfterSeconds":-1}}`,
		"k8s\x00\x0a\x0c\x0a\x02v1\x12\x06Status\x12\x00",
	} {
		for _, mediaType := range []string{"", "text/html", "application/json", "application/vnd.kubernetes.protobuf"} {
			f.Add([]byte(content), mediaType)
		}
	}
	f.Fuzz(func(t *testing.T, content []byte, mediaType string) {
		const limit, most = 256, 16 << 10
		response := &http.Response{
			StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": {mediaType}}, Body: io.NopCloser(bytes.NewReader(content)),
		}
		redactErrorResponse(response, limit, redact.CredentialsOf("a token of somebody"))
		shown, err := io.ReadAll(response.Body)
		if err != nil || int64(len(shown)) != response.ContentLength || len(shown) > most || !utf8.Valid(shown) || bytes.ContainsAny(shown, "\x1b") {
			t.Errorf("%q of type %q became %d bytes: %q, %v", content, mediaType, len(shown), shown, err)
		}
	})
}

// The scanners find the sizes of events, for any division of the stream into reads.
func FuzzEventSizes(f *testing.F) {
	f.Add([]byte(`{"type":"ADDED","object":{"a":"}\"{"}} {"b":1}`), uint8(3))
	f.Add([]byte(`{""}0`), uint8(3))
	f.Add([]byte("\x00\x00\x00\x02ab\x00\x00\x00\x01c"), uint8(1))
	f.Fuzz(func(t *testing.T, stream []byte, size uint8) {
		for name, fresh := range map[string]func() eventScanner{
			"JSON":   func() eventScanner { return &jsonEventScanner{} },
			"frames": func() eventScanner { return &lengthPrefixedScanner{} },
		} {
			whole, _, wholeEnded := fresh().scan(stream)
			inParts, largest, ended := fresh(), int64(0), false
			for rest := stream; len(rest) > 0; {
				length := min(len(rest), int(size)+1)
				bytes, _, ends := inParts.scan(rest[:length])
				largest, ended, rest = max(largest, bytes), ended || ends, rest[length:]
			}
			if largest != whole || ended != wholeEnded {
				t.Errorf("%s: the largest event of %q has %d bytes, in parts of %d it has %d", name, stream, whole, int(size)+1, largest)
			}
		}
	})
}

// With any names of objects and namespaces, and any path of the server, a request for an object has the limits of objects.
func FuzzKindOf(f *testing.F) {
	f.Add("", "a", "b")
	f.Add("/openapi", "apis", "version")
	f.Add("/api/x", "namespaces", "token")
	f.Fuzz(func(t *testing.T, base, namespace, name string) {
		if namespace == "" || name == "" || strings.ContainsRune(namespace+name, '/') || strings.HasSuffix(base, "/") {
			return
		}
		for _, api := range []string{"/api/v1", "/apis/apps/v1"} {
			for path, want := range map[string]requestKind{"/pods/" + name: kindObject, "/namespaces/" + namespace + "/pods/" + name: kindObject, "/namespaces/" + namespace + "/pods": kindList} {
				request := &http.Request{Method: http.MethodGet, URL: &url.URL{Path: base + api + path}}
				if got := requestKindOf(request, base); got != want {
					t.Errorf("%s is %s, not %s", request.URL.Path, got, want)
				}
			}
		}
	})
}

// Any Retry-After header is removed or small.
func FuzzPauses(f *testing.F) {
	for _, value := range []string{"", "5", "31", "-1", "999999999999999999999", "+7", "0x10", " 3", "Wed, 21 Oct 2099 07:28:00 GMT"} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		header := http.Header{"Retry-After": {value}}
		capRetryAfter(header)
		left := header.Get("Retry-After")
		if seconds, err := strconv.Atoi(left); left != "" && (err != nil || seconds > maxRetryAfterSeconds) {
			t.Errorf("%q became %q", value, left)
		}
	})
}
