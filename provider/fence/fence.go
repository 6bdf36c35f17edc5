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

package fence

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/utils/clock"
)

// ErrClosed is returned for a write that was not sent, because the replica does not hold the Lease for it.
var ErrClosed = errors.New("this replica does not hold the Lease for this write")

// Fence holds the time until which this replica may write. A new Fence is closed. A nil Fence is open.
type Fence struct {
	clock clock.PassiveClock
	until atomic.Pointer[deadline]
}

// deadline is a time by both clocks of a machine. The monotonic one may stand still while a virtual machine is paused, and the wall clock
// may be set back.
type deadline struct{ monotonic, wall time.Time }

func (d *deadline) isOver(now time.Time) bool {
	return !now.Before(d.monotonic) || !now.Round(0).Before(d.wall)
}

// New returns a closed fence.
func New(clock clock.PassiveClock) *Fence { return &Fence{clock: clock} }

// OpenUntil lets writes through until the given time of the fence's clock.
func (f *Fence) OpenUntil(until time.Time) { f.until.Store(&deadline{until, until.Round(0)}) }

// Close lets no more writes through.
func (f *Fence) Close() { f.until.Store(nil) }

// IsOpen reports whether writes are let through now.
func (f *Fence) IsOpen() bool {
	if f == nil {
		return true
	}
	until := f.until.Load()
	return until != nil && !until.isOver(f.clock.Now())
}

type contextKey struct{}

// NewContext returns a context with a fence that replaces the fence of the transport for the requests of this context. The client
// for kcp serves many shards, each with its own Lease.
func NewContext(ctx context.Context, fence *Fence) context.Context {
	return context.WithValue(ctx, contextKey{}, fence)
}

// Wrap returns a transport that sends writes only while the fence is open, and reads always. The error is [ErrClosed]
// otherwise. If the context of a request has a fence, that fence decides instead of f.
func (f *Fence) Wrap(next http.RoundTripper) http.RoundTripper {
	if f == nil {
		return next
	}
	return &roundTripper{f, next}
}

type roundTripper struct {
	fence *Fence
	next  http.RoundTripper
}

var _ utilnet.RoundTripperWrapper = &roundTripper{}

func (r *roundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	if !isWrite(request) {
		return r.next.RoundTrip(request)
	}
	fence := r.fenceOf(request.Context())
	if !fence.IsOpen() {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, fmt.Errorf("%s %s was not sent: %w", request.Method, request.URL.Path, ErrClosed)
	}
	return r.next.RoundTrip(withFencedBody(request, fence))
}

// withFencedBody returns a request whose body is sent only while the fence is open.
func withFencedBody(request *http.Request, fence *Fence) *http.Request {
	if request.Body == nil || request.Body == http.NoBody {
		return request
	}
	fenced := request.WithContext(request.Context())
	fenced.Body = fencedBody{request.Body, fence}
	if again := request.GetBody; again != nil {
		fenced.GetBody = func() (io.ReadCloser, error) {
			body, err := again()
			return fencedBody{body, fence}, err
		}
	}
	return fenced
}

// fencedBody is the body of a write. The fence may have closed while the request waited for a connection, and no server acts on a request
// without the body that it announces.
type fencedBody struct {
	io.ReadCloser
	fence *Fence
}

// Read implements [io.Reader].
func (b fencedBody) Read(into []byte) (int, error) {
	if !b.fence.IsOpen() {
		return 0, fmt.Errorf("the body was not sent: %w", ErrClosed)
	}
	return b.ReadCloser.Read(into)
}

func (r *roundTripper) fenceOf(ctx context.Context) *Fence {
	if fence, ok := ctx.Value(contextKey{}).(*Fence); ok {
		return fence
	}
	return r.fence
}

// WrappedRoundTripper lets client-go find the transport that dials.
func (r *roundTripper) WrappedRoundTripper() http.RoundTripper { return r.next }

// isWrite reports whether a request may change something. Reviews are created, but only ask a question.
func isWrite(request *http.Request) bool {
	switch request.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	case http.MethodPost:
		return !reviews[path.Base(strings.TrimSuffix(request.URL.Path, "/"))]
	default:
		return true
	}
}

// reviews are the resources of authentication.k8s.io and authorization.k8s.io that are never stored.
var reviews = map[string]bool{
	"selfsubjectreviews": true, "selfsubjectaccessreviews": true, "selfsubjectrulesreviews": true,
	"tokenreviews": true, "subjectaccessreviews": true, "localsubjectaccessreviews": true,
}
