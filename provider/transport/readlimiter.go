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
	"io"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// ReadLimiter bounds how fast the lists and watches of one server are read, all together: what a server sends without an end is decoded
// on processors that all servers share. Who is over it waits, and the server with him.
type ReadLimiter struct {
	clock clock.Clock
	// perSecond is in bytes, ahead how long a server may be ahead of it.
	perSecond int64
	burst     time.Duration

	lock sync.Mutex
	// reservedUntil is when all that was read would have been read at an even pace.
	reservedUntil time.Time
}

// NewReadLimiter returns a pace of so many bytes per second, of which burst may come at once after a quiet time.
func NewReadLimiter(clock clock.Clock, perSecond, burst int64) *ReadLimiter {
	return &ReadLimiter{clock: clock, perSecond: perSecond, burst: time.Duration(burst) * time.Second / time.Duration(perSecond)}
}

// wait returns when so many bytes that were read may be used, or with the error of ctx.
func (p *ReadLimiter) wait(ctx context.Context, bytes int) error {
	wait := p.reserve(bytes)
	if wait <= 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.clock.After(wait):
		return nil
	}
}

// reserve notes that so many bytes were read, and returns how long to wait for that.
func (p *ReadLimiter) reserve(bytes int) time.Duration {
	now := p.clock.Now()
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.reservedUntil.Before(now) {
		p.reservedUntil = now
	}
	p.reservedUntil = p.reservedUntil.Add(time.Duration(bytes) * time.Second / time.Duration(p.perSecond))
	return p.reservedUntil.Sub(now) - p.burst
}

// readLimitedBody is a body that is read at a pace until ctx ends.
type readLimitedBody struct {
	io.ReadCloser
	limiter *ReadLimiter
	ctx     context.Context
}

func (p *readLimitedBody) Read(into []byte) (int, error) {
	read, err := p.ReadCloser.Read(into)
	if headerTimer := p.limiter.wait(p.ctx, read); headerTimer != nil {
		return 0, headerTimer
	}
	return read, err
}
