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

	"github.com/synchub-dev/synchub/test/framework/benchenv"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

const (
	// idleDuration is how long the hub must have made no request with a cause to count as idle.
	idleDuration = 3 * time.Second
	// idleServerShare is the maximum share of a processor that all servers together may use over idleSampleInterval to
	// count as idle. With a hundred targets they use a fifth without any requests.
	idleServerShare    = 0.5
	idleSampleInterval = 2 * time.Second
	// gcRuns is the number of garbage collections before a measurement. The second collection frees pooled objects, and
	// each halves stacks that are too large.
	gcRuns = 8
)

// measuredHub is the hub of an environment. It reads what the hub has done, and what the hub and the servers use.
type measuredHub struct{ *benchenv.Env }

// waitIdle returns when both the servers and the hub are idle. For half a minute after ten thousand objects were created, a
// kcp uses a whole processor, which would falsify the first measurement.
func (w *measuredHub) waitIdle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := w.waitServersIdle(ctx); err != nil {
		return err
	}
	return w.Hub.WaitIdle(ctx, idleDuration)
}

func (w *measuredHub) waitServersIdle(ctx context.Context) error {
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

// serversTime returns the CPU time of the servers so far, or zero on platforms that do not report it.
func (w *measuredHub) serversTime() (time.Duration, error) {
	used, err := w.ProcessorTime()
	if errors.Is(err, errors.ErrUnsupported) {
		return 0, nil
	}
	return used, err
}

// created returns the number of objects that the hub has created on targets.
func (w *measuredHub) created(ctx context.Context) (float64, error) {
	samples, err := w.Hub.Metrics(ctx)
	return decided(samples, `action="Create"`), err
}

// foundInSync returns how often the hub has found an object in sync. It returns zero while keys are queued: the hub may have counted some
// objects twice, and some not yet.
func (w *measuredHub) foundInSync(ctx context.Context) (float64, error) {
	samples, err := w.Hub.Metrics(ctx)
	for sample, waiting := range samples {
		if strings.HasPrefix(sample, "synchub_sync_queue_depth") && waiting > 0 {
			return 0, err
		}
	}
	return decided(samples, `cause="InSync"`), err
}

// decided returns how often the hub has executed a decision that has the label.
func decided(samples map[string]float64, label string) (count float64) {
	for sample, made := range samples {
		if strings.HasPrefix(sample, "synchub_sync_actions_total{") && strings.Contains(sample, label) && strings.Contains(sample, `result="done"`) {
			count += made
		}
	}
	return count
}

// await returns how long after started the count of done reached often. Each poll costs the hub time, so await waits for a
// twentieth of the elapsed time in between. Once the count rises, it polls after half of the estimated remaining time, but at most after a
// tenth of the elapsed time or after latest, whichever is longer.
func (w *measuredHub) await(ctx context.Context, started time.Time, done func(context.Context) (float64, error), often float64, latest time.Duration) (time.Duration, error) {
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
		next = max(soonest, elapsed/20)
		if now > before {
			rest := time.Duration(float64(elapsed) * (often - now) / (now - before))
			next = max(soonest, min(rest/2, max(latest, elapsed/10)))
		}
	}
	return 0, err
}

// processorTime returns the CPU time of the hub so far.
func (w *measuredHub) processorTime(ctx context.Context) (time.Duration, error) {
	samples, err := w.Hub.Metrics(ctx)
	return time.Duration(samples["process_cpu_seconds_total"] * float64(time.Second)), err
}

// footprint is the hub's memory in bytes, and its number of goroutines.
type footprint struct{ heap, stacks, resident, goroutines float64 }

// footprint collects garbage before it measures.
func (w *measuredHub) footprint(ctx context.Context) (footprint, error) {
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

func (w *measuredHub) collectGarbage(ctx context.Context) error {
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

// readsAndWrites returns the hub's requests so far by kind. Reads exclude lists, watches, discovery, health probes of targets,
// and the hub's periodic requests for the identity of a target's cluster. Writes are writes to objects in
// mailboxes and on targets.
func readsAndWrites(requests map[installation.Request]float64) (reads, writes map[string]float64) {
	reads, writes = map[string]float64{}, map[string]float64{}
	for kind, count := range requests {
		switch {
		case kind.Verb == "get" && kind.Resource != "none" && !isIdentityCheck(kind):
			reads[kind.String()] += count
		case kind.Class != "background" && kind.Verb != "get" && kind.Verb != "list" && kind.Verb != "watch":
			writes[kind.String()] += count
		}
	}
	return reads, writes
}

// isIdentityCheck reports whether a request asks a target for the objects whose UID identifies a cluster.
func isIdentityCheck(kind installation.Request) bool {
	return kind.Destination == "target" && kind.Class == "background" && (kind.Resource == "namespaces" || kind.Resource == "logicalclusters")
}

func sum(counts map[string]float64) (total float64) {
	for _, count := range counts {
		total += count
	}
	return total
}
