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

// Pace bounds how fast the lists and watches of one server are read, all together: what a server sends without an end is decoded
// on processors that all servers share. Who is over it waits, and the server with him.
type Pace struct {
	clock clock.Clock
	// perSecond is in bytes, ahead how long a server may be ahead of it.
	perSecond int64
	ahead     time.Duration

	lock sync.Mutex
	// paid is when all that was read would have been read at an even pace.
	paid time.Time
}

// NewPace returns a pace of so many bytes per second, of which burst may come at once after a quiet time.
func NewPace(clock clock.Clock, perSecond, burst int64) *Pace {
	return &Pace{clock: clock, perSecond: perSecond, ahead: time.Duration(burst) * time.Second / time.Duration(perSecond)}
}

// keep returns when so many bytes that were read may be used, or with the error of ctx.
func (p *Pace) keep(ctx context.Context, bytes int) error {
	wait := p.take(bytes)
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

// take notes that so many bytes were read, and returns how long to wait for that.
func (p *Pace) take(bytes int) time.Duration {
	now := p.clock.Now()
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.paid.Before(now) {
		p.paid = now
	}
	p.paid = p.paid.Add(time.Duration(bytes) * time.Second / time.Duration(p.perSecond))
	return p.paid.Sub(now) - p.ahead
}

// paced is a body that is read at a pace until ctx ends.
type paced struct {
	io.ReadCloser
	pace *Pace
	ctx  context.Context
}

func (p *paced) Read(into []byte) (int, error) {
	read, err := p.ReadCloser.Read(into)
	if late := p.pace.keep(p.ctx, read); late != nil {
		return 0, late
	}
	return read, err
}
