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

package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/synchub-dev/synchub/test/framework/installation"
)

const (
	// idleDuration is for how long the hub may have made no request for a change to count as at rest.
	idleDuration = 3 * time.Second
	// idleServerShare is how much of a processor all servers together may take over the time of a breath to count as at rest.
	// With a hundred targets they take a fifth when nobody asks for anything.
	idleServerShare    = 0.5
	idleSampleInterval = 2 * time.Second
	// gcRuns is how often garbage is collected: what was pooled goes with the second, and each halves stacks that are
	// larger than they need be.
	gcRuns = 8
)

// waitIdle returns when neither the servers nor the hub have anything left to do. For half a minute after ten thousand objects
// were made a kcp takes a whole processor, of which whoever came first would be robbed.
func (w *Env) waitIdle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := w.waitServersIdle(ctx); err != nil {
		return err
	}
	return w.Hub.WaitIdle(ctx, idleDuration)
}

func (w *Env) waitServersIdle(ctx context.Context) error {
	before, err := w.serversTime()
	for err == nil {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until the servers are at rest: %w", ctx.Err())
		case <-time.After(idleSampleInterval):
		}
		var now time.Duration
		if now, err = w.serversTime(); float64(now-before) < idleServerShare*float64(idleSampleInterval) {
			break
		}
		before = now
	}
	return err
}

// serversTime returns the processor time that the servers have taken so far, zero where nobody tells.
func (w *Env) serversTime() (time.Duration, error) {
	used, err := w.ProcessorTime()
	if errors.Is(err, errors.ErrUnsupported) {
		return 0, nil
	}
	return used, err
}

// created returns how many objects the hub has created on targets.
func (w *Env) created(ctx context.Context) (float64, error) { return w.decided(ctx, "Create") }

// foundInSync returns how many objects the hub has found in sync.
func (w *Env) foundInSync(ctx context.Context) (float64, error) { return w.decided(ctx, "None") }

// decided returns how often the hub has carried out a decision.
func (w *Env) decided(ctx context.Context, action string) (count float64, err error) {
	samples, err := w.Hub.Metrics(ctx)
	for sample, made := range samples {
		if strings.HasPrefix(sample, "synchub_sync_actions_total{") && strings.Contains(sample, `action="`+action+`"`) && strings.Contains(sample, `result="done"`) {
			count += made
		}
	}
	return count, err
}

// await returns how long it took from the start until the hub has done something so often. Once the hub has begun it asks
// seldom while much is missing, since to answer takes the hub time: after a tenth of the time so far, or what is given if that
// is more.
func (w *Env) await(ctx context.Context, started time.Time, done func(context.Context) (float64, error), often float64, latest time.Duration) (time.Duration, error) {
	const soonest = 50 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	before, err := done(ctx)
	now := before
	for next := soonest; err == nil; {
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("the hub has done it %.0f times of %.0f: %w", now, often, ctx.Err())
		case <-time.After(next):
		}
		now, err = done(ctx)
		elapsed := time.Since(started)
		if now >= often {
			return elapsed, err
		}
		next = soonest
		if now > before {
			rest := time.Duration(float64(elapsed) * (often - now) / (now - before))
			next = max(soonest, min(rest/2, max(latest, elapsed/10)))
		}
	}
	return 0, err
}

// processorTime returns what the hub has taken so far.
func (w *Env) processorTime(ctx context.Context) (time.Duration, error) {
	samples, err := w.Hub.Metrics(ctx)
	return time.Duration(samples["process_cpu_seconds_total"] * float64(time.Second)), err
}

// footprint is what the hub holds; memory is in bytes.
type footprint struct{ heap, stacks, resident, goroutines float64 }

// footprint collects garbage first.
func (w *Env) footprint(ctx context.Context) (footprint, error) {
	for range gcRuns {
		if err := w.collectGarbage(ctx); err != nil {
			return footprint{}, fmt.Errorf("have the hub collect its garbage: %w", err)
		}
	}
	samples, err := w.Hub.Metrics(ctx)
	return footprint{
		heap: samples["go_memstats_heap_alloc_bytes"], stacks: samples["go_memstats_stack_inuse_bytes"], resident: samples["process_resident_memory_bytes"],
		goroutines: samples["go_goroutines"],
	}, err
}

func (w *Env) collectGarbage(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.ProfilingAddress+"/debug/pprof/heap?gc=1", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // only read
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

// readsAndWrites returns, by kind, the hub's requests so far that read something other than by a list, a watch, discovery, or to see whether a
// target is well, and writes those that write an object of a mailbox or a target.
func readsAndWrites(requests map[installation.Request]float64) (reads, writes map[string]float64) {
	reads, writes = map[string]float64{}, map[string]float64{}
	for kind, count := range requests {
		switch {
		case kind.Verb == "get" && kind.Resource != "none":
			reads[kind.String()] += count
		case kind.Class != "background" && kind.Verb != "get" && kind.Verb != "list" && kind.Verb != "watch":
			writes[kind.String()] += count
		}
	}
	return reads, writes
}

func sum(counts map[string]float64) (total float64) {
	for _, count := range counts {
		total += count
	}
	return total
}
