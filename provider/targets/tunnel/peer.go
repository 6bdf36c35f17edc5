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

package tunnel

import (
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// handshakeRate and handshakeBurst bound the sessions that clients of one SyncTarget open.
	handshakeRate, handshakeBurst = rate.Limit(1), 10
	// refusalPeriod is how long an instance that was refused is refused without another verification.
	refusalPeriod = 30 * time.Second
	// maxReplaced bounds the remembered instances that the current one has replaced.
	maxReplaced = 8
)

// peer is the state of the clients of one SyncTarget on this replica.
type peer struct {
	syncTarget types.UID
	limiter    *rate.Limiter

	lock   sync.Mutex
	tokens acceptedTokens
	closed bool
	// opening is true while a handshake is being verified.
	opening bool
	current *session
	// changed is closed, and replaced, when current changes.
	changed chan struct{}
	// hadSession is true once there was a session.
	hadSession bool
	// replaced are the instances whose session the current one replaced. They must wait until that session ends, so that two
	// clients of one cluster do not replace each other endlessly.
	replaced []string
	refusal  refusal
}

// refusal is the last session that was not verified.
type refusal struct {
	instance string
	err      error
	until    time.Time
}

func newPeer(syncTarget types.UID) *peer {
	return &peer{syncTarget: syncTarget, limiter: rate.NewLimiter(handshakeRate, handshakeBurst), changed: make(chan struct{})}
}

// setTokens replaces the accepted tokens, and closes a session whose token is not among them.
func (p *peer) setTokens(tokens acceptedTokens, now time.Time) {
	p.lock.Lock()
	p.tokens = tokens
	current := p.current
	p.lock.Unlock()
	if current != nil && !tokens.accept(current.token, now) {
		current.close()
	}
}

func (p *peer) accepts(presented tokenHash, now time.Time) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.tokens.accept(presented, now)
}

// reserve admits an authenticated handshake, one at a time. The caller calls unreserve when the handshake has ended.
func (p *peer) reserve(hello hello, now time.Time) *handshakeError {
	p.lock.Lock()
	defer p.lock.Unlock()
	switch current := p.current; {
	case p.refusal.instance == hello.instance && now.Before(p.refusal.until):
		return errRefused
	case current != nil && current.instance == hello.instance && hello.connected:
		return errConnected
	case current != nil && slices.Contains(p.replaced, hello.instance):
		return errReplaced
	case p.opening, !p.limiter.AllowN(now, 1):
		return errTooMany
	}
	p.opening = true
	return nil
}

func (p *peer) unreserve() {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.opening = false
}

// use makes a verified session the current one, and closes the previous one.
func (p *peer) use(verified *session) {
	p.lock.Lock()
	before := p.current
	isUsable := !p.closed && !verified.hasEnded()
	if isUsable {
		p.refusal, p.hadSession = refusal{}, true
		p.setCurrentLocked(verified)
		p.replaced = slices.DeleteFunc(p.replaced, func(instance string) bool { return instance == verified.instance })
		if before != nil && before.instance != verified.instance {
			p.replaced = append(p.replaced, before.instance)
			p.replaced = p.replaced[max(0, len(p.replaced)-maxReplaced):]
		}
	}
	p.lock.Unlock()
	switch {
	case !isUsable:
		verified.close()
	case before != nil:
		before.closeLater()
	}
}

// drop removes a session that has ended, and reports whether it was the current one.
func (p *peer) drop(ended *session) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.current != ended {
		return false
	}
	p.setCurrentLocked(nil)
	p.replaced = nil
	return true
}

func (p *peer) setCurrentLocked(current *session) {
	p.current = current
	close(p.changed)
	p.changed = make(chan struct{})
}

// refuse records why a session was not verified.
func (p *peer) refuse(instance string, err error, now time.Time) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.refusal = refusal{instance, err, now.Add(refusalPeriod)}
}

func (p *peer) clearRefusal() {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.refusal = refusal{}
}

// lastRefusal returns why the last session was refused, nil if that was long ago.
func (p *peer) lastRefusal(now time.Time) error {
	p.lock.Lock()
	defer p.lock.Unlock()
	if !p.refusal.isRecent(now) {
		return nil
	}
	return p.refusal.err
}

// isRecent reports whether the client may still retry. At first it is refused without verification, and then verified again.
func (r refusal) isRecent(now time.Time) bool {
	return r.err != nil && now.Before(r.until.Add(refusalPeriod))
}

// state returns the current session, or why there is none, and a channel that is closed when that changes.
func (p *peer) state(now time.Time) (current *session, changed <-chan struct{}, err error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	switch {
	case p.current != nil:
		return p.current, nil, nil
	case p.refusal.isRecent(now):
		return nil, nil, p.refusal.err
	case p.closed || !p.hadSession:
		return nil, nil, &ClosedError{}
	}
	return nil, p.changed, &ClosedError{Lost: true}
}

// close ends all sessions permanently.
func (p *peer) close() {
	p.lock.Lock()
	p.closed = true
	current := p.current
	p.lock.Unlock()
	if current != nil {
		current.close()
	}
}
