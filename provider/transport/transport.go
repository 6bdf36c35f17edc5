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

// Options configure the limits for one server.
type Options struct {
	Limits Limits
	// OnMisbehaviour is called for each response that no correct server sends, with a [*ContentTypeError], or with an
	// [*ExceededError] that is not divisible. It must return at once. It may be nil.
	OnMisbehaviour func(error)
	// ReadLimiter limits the rate at which lists and watches are read. Nil sets no limit.
	ReadLimiter *ReadLimiter
	// Credentials are redacted in error texts of the server. They may be nil.
	Credentials *redact.Credentials
	// LargeSlots limit the large responses that are read and decoded at the same time.
	LargeSlots Slots
	// OnBufferChange is called with the change of the size of the watches' buffers, in bytes. The change is negative when a
	// watch ends. It may be nil.
	OnBufferChange func(bytes int64)
	// BasePath is the path of the server's URL in the kubeconfig.
	BasePath string
}

// LimitResponses returns a wrapper for the transport of a client. It must be the innermost wrapper, so that no other wrapper
// reads a response without limits.
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

// WrappedRoundTripper returns the wrapped transport. client-go closes its idle connections.
func (b *limitingTransport) WrappedRoundTripper() http.RoundTripper { return b.next }

// RoundTrip sends a request, and returns a response that ends with an error if it exceeds the limits.
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
		// The context lasts as long as the body, so the time until the headers has its own timer.
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

// limitResponse replaces the body of a response by one with limits. If limitResponse returns an error, it has closed the
// body.
func (b *limitingTransport) limitResponse(request *http.Request, response *http.Response, kind requestKind, cancel context.CancelFunc) error {
	if response.StatusCode == http.StatusSwitchingProtocols {
		// The hub never requests it. The connection would ignore all deadlines.
		_ = response.Body.Close()
		return &ConnectionError{Class: ProtocolError, cause: errProtocolSwitched}
	}
	// Warnings are texts of an untrusted server. A client that follows Location would send the credentials to another server.
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
	limited := responseContext{b, request, kind}
	if kind == kindWatch {
		watched := &watchBody{ReadCloser: response.Body, cancel: cancel, response: limited, scanner: &lengthPrefixedScanner{}}
		if isJSON {
			watched.scanner = &jsonEventScanner{}
		}
		response.Body = watched
		return nil
	}
	bytes, values := b.Limits.forRequest(request, kind)
	response.Body = &limitedBody{ReadCloser: response.Body, cancel: cancel, bytesLeft: bytes, valuesLeft: values, json: isJSON, response: limited}
	return nil
}

// maxRetryAfterSeconds is the maximum of the Retry-After header. Clients obey it, and lists and watches have no deadline.
const maxRetryAfterSeconds = 30

// capRetryAfter limits the Retry-After header to maxRetryAfterSeconds, and removes an invalid one.
func capRetryAfter(header http.Header) {
	const field = "Retry-After"
	if text := header.Get(field); text != "" {
		switch seconds, err := strconv.Atoi(text); {
		case err != nil:
			header.Del(field)
		case seconds > maxRetryAfterSeconds:
			header.Set(field, strconv.Itoa(maxRetryAfterSeconds))
		}
	}
}

var errProtocolSwitched = errors.New("the server switched to another protocol")

// responseContext holds the request of a response and the limits for it.
type responseContext struct {
	*limitingTransport
	request *http.Request
	kind    requestKind
}

func (a responseContext) exceededBytes() error {
	limit, _ := a.Limits.forRequest(a.request, a.kind)
	return a.exceeded(limit, "bytes")
}

// exceeded returns the error for a response that exceeds a limit, and calls OnMisbehaviour unless the error is divisible.
func (a responseContext) exceeded(limit int64, unit string) error {
	err := &ExceededError{Request: describeRequest(a.request, a.kind), Limit: limit, Unit: unit, Divisible: isDivisible(a.request, a.kind)}
	if !err.Divisible {
		a.OnMisbehaviour(err)
	}
	return err
}

// mediaTypeOf returns the media type of a response in lower case, without parameters.
func mediaTypeOf(response *http.Response) string {
	mediaType, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(mediaType))
}

// isExpectedMediaType reports whether clients of API servers request the media type. client-go could decode other types, such
// as YAML, whose decoded size can exceed their length by far.
func (b *limitingTransport) isExpectedMediaType(mediaType string, kind requestKind) bool {
	// API servers send health and the index of OpenAPI documents as text/plain. client-go decodes neither.
	plain := mediaType == "text/plain" && (kind == kindHealth || kind == kindOpenAPI)
	return plain || strings.HasSuffix(mediaType, "json") || !b.Limits.JSON && strings.HasSuffix(mediaType, "protobuf")
}

// withoutProtobuf returns a request that does not accept protobuf, even if its client prefers protobuf to JSON.
func withoutProtobuf(request *http.Request) *http.Request {
	first, others, _ := strings.Cut(request.Header.Get("Accept"), ",")
	if !strings.HasPrefix(first, runtime.ContentTypeProtobuf) {
		return request
	}
	request = request.Clone(request.Context())
	request.Header.Set("Accept", others)
	return request
}
