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

package targets

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/synchub-dev/synchub/provider/cachesize"
	"github.com/synchub-dev/synchub/provider/notfound"
	"github.com/synchub-dev/synchub/provider/requestclass"
)

const (
	// verifyInterval is the least time between two verifications of the caches of a target, and maxVerified the number of
	// objects that one verification reads.
	verifyInterval = 20 * time.Second
	maxVerified    = 4
)

// informerSet has the running informers of a connection, and records that the hub could not reach the target for a moment. The
// target may have been restored from a backup during that time. If its resourceVersion has passed the former one since, watches
// continue as if nothing had happened, and the caches keep objects that are gone.
type informerSet struct {
	// behind counts the informers that are not in sync with the target.
	behind atomic.Int64

	lock    sync.Mutex
	running map[*informer]struct{}
	// interrupted has the position of each informer at the interruption; nil if there was no interruption since the last
	// verification.
	interrupted map[*informer]seen
	// nextVerify is when caches may be verified again.
	nextVerify time.Time
}

// track counts an informer, and its size as part of a counter, until the caller calls untrack.
func (s *informerSet) track(informer *informer, size *cachesize.Counter) (untrack func()) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.running[informer] = struct{}{}
	subtract := informer.cached.AddToParent(size)
	return func() {
		subtract()
		s.lock.Lock()
		defer s.lock.Unlock()
		delete(s.running, informer)
	}
}

func (s *informerSet) list() []*informer {
	s.lock.Lock()
	defer s.lock.Unlock()
	return slices.Collect(maps.Keys(s.running))
}

// isInterruption reports whether a request failed because the API server could not be reached, or could not answer.
func isInterruption(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	var status apierrors.APIStatus
	return !errors.As(err, &status) || status.Status().Code >= 500
}

// noteInterruption is called with the result of each probe, list and watch request.
func (s *informerSet) noteInterruption(err error) {
	if !isInterruption(err) {
		return
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.interrupted != nil {
		return
	}
	s.interrupted = make(map[*informer]seen, len(s.running))
	for informer := range s.running {
		if last := informer.position.get(); last.listVersion != "" {
			s.interrupted[informer] = last
		}
	}
}

// takeInterruption returns the positions to verify, once for each interruption; nil if no verification is due.
func (s *informerSet) takeInterruption(now time.Time) map[*informer]seen {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.interrupted == nil || now.Before(s.nextVerify) {
		return nil
	}
	before := s.interrupted
	s.interrupted, s.nextVerify = nil, now.Add(verifyInterval)
	return before
}

// verifyCaches verifies the caches after an interruption; the prober calls it. It reads the objects that changed last. If the
// newest of them is unchanged, the target's history contains everything that the hub observed before that change. An informer
// that may have objects of another history lists again.
func (w *Watches) verifyCaches(ctx context.Context) {
	before := w.informers.takeInterruption(w.env.clock.Now())
	if before == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	proven := w.provenVersion(ctx, before)
	for informer, last := range before {
		if proven == "" || isAfter(last.version(), proven) {
			w.env.log.Info("after an interruption a resource is listed again, since the target may have been restored", "resource", informer.resource.String())
			informer.relist()
		}
	}
}

// provenVersion returns a resourceVersion up to which the target's history contains all that the hub saw before the
// interruption; empty if that is not known for any version.
func (w *Watches) provenVersion(ctx context.Context, before map[*informer]seen) string {
	type candidate struct {
		*informer
		change
	}
	var candidates []candidate
	for informer, last := range before {
		if last.newest.version != "" {
			candidates = append(candidates, candidate{informer, last.newest})
		}
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		switch {
		case isAfter(a.version, b.version):
			return -1
		case isAfter(b.version, a.version):
			return 1
		default:
			return 0
		}
	})
	for _, one := range candidates[:min(len(candidates), maxVerified)] {
		if w.stillHas(ctx, one.informer, one.change) {
			return one.version
		}
	}
	return ""
}

// stillHas reports whether the target's newest state of an object is the one that the hub observed.
func (w *Watches) stillHas(ctx context.Context, of *informer, observed change) bool {
	ctx, done := withTimeout(requestclass.With(ctx, requestclass.Background), identityTimeout)
	defer done()
	now, err := w.client.metadata.Resource(of.resource.WithVersion(of.requestGate.version)).Namespace(observed.key.Namespace).Get(ctx, observed.key.Name, metav1.GetOptions{})
	if observed.deleted {
		return notfound.Proves(err, of.resource, observed.key.Name)
	}
	return err == nil && now.UID == observed.uid && now.ResourceVersion == observed.version
}
