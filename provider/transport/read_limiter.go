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

// ReadLimiter limits the rate at which the hub reads all lists and watches of one server together. All servers share the
// processors that decode them. Above the rate, reads wait.
type ReadLimiter struct {
	clock clock.Clock
	// perSecond is the rate in bytes per second. burst is the time that the rate would need for the burst.
	perSecond int64
	burst     time.Duration

	lock sync.Mutex
	// reservedUntil is the time at which all bytes so far would have been read at a constant rate.
	reservedUntil time.Time
}

// NewReadLimiter returns a limiter for a rate of perSecond bytes per second. After a pause, burst bytes are read at once.
func NewReadLimiter(clock clock.Clock, perSecond, burst int64) *ReadLimiter {
	return &ReadLimiter{clock: clock, perSecond: perSecond, burst: time.Duration(burst) * time.Second / time.Duration(perSecond)}
}

// wait waits until the rate allows the bytes that were just read. It returns the error of ctx if ctx ends first.
func (l *ReadLimiter) wait(ctx context.Context, bytes int) error {
	wait := l.reserve(bytes)
	if wait <= 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-l.clock.After(wait):
		return nil
	}
}

// reserve counts bytes that were read, and returns how long to wait.
func (l *ReadLimiter) reserve(bytes int) time.Duration {
	now := l.clock.Now()
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.reservedUntil.Before(now) {
		l.reservedUntil = now
	}
	l.reservedUntil = l.reservedUntil.Add(time.Duration(bytes) * time.Second / time.Duration(l.perSecond))
	return l.reservedUntil.Sub(now) - l.burst
}

// readLimitedBody is a body whose reads wait for a limiter.
type readLimitedBody struct {
	io.ReadCloser
	limiter *ReadLimiter
	ctx     context.Context
}

func (b *readLimitedBody) Read(into []byte) (int, error) {
	read, err := b.ReadCloser.Read(into)
	if waitErr := b.limiter.wait(b.ctx, read); waitErr != nil {
		return 0, waitErr
	}
	return read, err
}
