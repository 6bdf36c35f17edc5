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
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/synchub-dev/synchub/provider/redact"
)

// Options say how answers of one server are bounded.
type Options struct {
	Limits Limits
	// OnMisbehaviour is told of each answer that no server that means well gives: an [*ExceededError], unless less can be
	// asked for, or a [*ContentTypeError]. It must return at once. Nil does nothing.
	OnMisbehaviour func(error)
	// ReadLimiter is that at which lists and watches are read. Nil is any.
	ReadLimiter *ReadLimiter
	// Credentials are withheld from the texts of the server. Nil are none.
	Credentials *redact.Credentials
	// LargeSlots are those of large answers.
	LargeSlots Slots
	// OnBufferChange is told how much more room is kept for events of watches, negative when a watch ends. Nil does nothing.
	OnBufferChange func(bytes int64)
	// BasePath is the path before those of the API, as a kubeconfig has it.
	BasePath string
}

// LimitResponses returns a wrapper that must be the innermost of a client's, so that none reads answers before it.
func LimitResponses(options Options) func(http.RoundTripper) http.RoundTripper {
	if options.OnMisbehaviour == nil {
		options.OnMisbehaviour = func(error) {}
	}
	return func(next http.RoundTripper) http.RoundTripper {
		if transport, ok := next.(*http.Transport); ok {
			transport.MaxResponseHeaderBytes = options.Limits.Headers
		}
		return &limitingTransport{Options: options, next: next}
	}
}

type limitingTransport struct {
	Options
	next http.RoundTripper
}

// WrappedRoundTripper lets client-go close idle connections.
func (b *limitingTransport) WrappedRoundTripper() http.RoundTripper { return b.next }

// RoundTrip sends the request, and returns an answer whose body can be read without a bound.
func (b *limitingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if before, ok := request.Context().Value(slotKey{}).(*slot); ok {
		before.releaseManyValues()
	}
	kind := requestKindOf(request, b.BasePath)
	if b.Limits.JSON {
		request = withoutProtobuf(request)
	}
	var cancel context.CancelFunc
	if _, limited := request.Context().Deadline(); !limited {
		ctx, stop := context.WithTimeout(request.Context(), b.Limits.timeoutFor(request, kind))
		request, cancel = request.WithContext(ctx), stop
		// It also bounds how long a watch waits to begin.
		headerTimer := time.AfterFunc(b.Limits.HeaderTime, stop)
		defer headerTimer.Stop()
	}
	response, err := b.next.RoundTrip(request)
	if err == nil {
		err = b.limitResponse(request, response, kind, cancel)
	} else {
		err = asConnectionError(err)
		if exceeded, ok := errors.AsType[*ExceededError](err); ok {
			b.OnMisbehaviour(exceeded)
		}
	}
	if err != nil {
		if cancel != nil {
			cancel()
		}
		return nil, err
	}
	return response, nil
}

// limitResponse makes the response one that can be read without a bound. If it returns an error the body is closed.
func (b *limitingTransport) limitResponse(request *http.Request, response *http.Response, kind requestKind, cancel context.CancelFunc) error {
	if response.StatusCode == http.StatusSwitchingProtocols {
		// Nobody asked for it. What follows is a connection that obeys no deadline.
		_ = response.Body.Close()
		return &ConnectionError{Class: ProtocolError, cause: errProtocolSwitched}
	}
	// Texts of anybody for people who did not ask, and ways to other servers, which would be sent the credentials.
	delete(response.Header, "Warning")
	delete(response.Header, "Location")
	if response.StatusCode < http.StatusOK || response.StatusCode >= http.StatusMultipleChoices {
		redactErrorResponse(response, b.Limits.Text, b.Credentials)
		capRetryAfter(response.Header)
		if cancel != nil {
			cancel()
		}
		return nil
	}
	mediaType := mediaTypeOf(response)
	if mediaType == "" && response.ContentLength != 0 || mediaType != "" && !b.isExpectedMediaType(mediaType, kind) {
		_ = response.Body.Close()
		err := &ContentTypeError{Request: describeRequest(request, kind), ContentType: b.Credentials.Text(response.Header.Get("Content-Type"))}
		b.OnMisbehaviour(err)
		return err
	}
	if b.ReadLimiter != nil && (kind == kindWatch || kind == kindList || kind == kindMetadata) {
		response.Body = &readLimitedBody{response.Body, b.ReadLimiter, request.Context()}
	}
	isJSON := !strings.HasSuffix(mediaType, "protobuf")
	asked := responseContext{b, request, kind}
	if kind == kindWatch {
		watched := &watchBody{ReadCloser: response.Body, cancel: cancel, response: asked, scanner: &lengthPrefixedScanner{}}
		if isJSON {
			watched.scanner = &jsonEventScanner{}
		}
		response.Body = watched
		return nil
	}
	bytes, values := b.Limits.forRequest(request, kind)
	response.Body = &limitedBody{ReadCloser: response.Body, cancel: cancel, bytesLeft: bytes, valuesLeft: values, json: isJSON, response: asked}
	return nil
}

// maxRetryAfterSeconds is how many seconds a server can have clients wait for. They obey, and lists and watches have no other deadline.
const maxRetryAfterSeconds = 30

// capRetryAfter has clients try again before long, whatever the server says.
func capRetryAfter(header http.Header) {
	const field = "Retry-After"
	if text := header.Get(field); text != "" {
		switch seconds, err := strconv.Atoi(text); {
		case err != nil:
			// Clients ignore it.
			header.Del(field)
		case seconds > maxRetryAfterSeconds:
			header.Set(field, strconv.Itoa(maxRetryAfterSeconds))
		}
	}
}

var errProtocolSwitched = errors.New("the server wants to speak another protocol")

// responseContext is what an answer belongs to.
type responseContext struct {
	*limitingTransport
	request *http.Request
	kind    requestKind
}

func (a responseContext) exceededBytes() error {
	limit, _ := a.Limits.forRequest(a.request, a.kind)
	return a.exceeded(limit, "bytes")
}

// exceeded returns the error for an answer of more than the limit, and tells of it.
func (a responseContext) exceeded(limit int64, unit string) error {
	err := &ExceededError{Request: describeRequest(a.request, a.kind), Limit: limit, Unit: unit, Divisible: isDivisible(a.request, a.kind)}
	if !err.Divisible {
		a.OnMisbehaviour(err)
	}
	return err
}

// mediaTypeOf returns the media type of an answer, without parameters.
func mediaTypeOf(response *http.Response) string {
	mediaType, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(mediaType))
}

// isExpectedMediaType reports whether an answer is of a type that clients of API servers ask for. Others that client-go could decode, as
// YAML, can stand for much more than they are long.
func (b *limitingTransport) isExpectedMediaType(mediaType string, kind requestKind) bool {
	// API servers say so of health, and of the index of OpenAPI documents, which nobody but the hub itself decodes.
	plain := mediaType == "text/plain" && (kind == kindHealth || kind == kindOpenAPI)
	return plain || strings.HasSuffix(mediaType, "json") || !b.Limits.JSON && strings.HasSuffix(mediaType, "protobuf")
}

// withoutProtobuf returns the request without the wish for protobuf that some clients have before that for JSON.
func withoutProtobuf(request *http.Request) *http.Request {
	first, others, _ := strings.Cut(request.Header.Get("Accept"), ",")
	if !strings.HasPrefix(first, runtime.ContentTypeProtobuf) {
		return request
	}
	request = request.Clone(request.Context())
	request.Header.Set("Accept", others)
	return request
}
