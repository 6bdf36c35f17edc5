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
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

// Reasons of a [Health], in the form of condition reasons.
const (
	ReasonConnecting   = edgev2alpha1.ReasonConnecting
	ReasonConnected    = "Connected"
	ReasonUnreachable  = "TargetUnreachable"
	ReasonUnauthorized = "Unauthorized"
	ReasonDenied       = "NetworkDenied"
	// ReasonTunnelClosed: the cluster has no tunnel to the hub.
	ReasonTunnelClosed = "TunnelClosed"
	// ReasonClusterChanged: the target answers, but is not the expected cluster.
	ReasonClusterChanged = "ClusterChanged"
	// ReasonTooLarge, ReasonNotAnAPIServer and ReasonCacheFull: the target is quarantined.
	ReasonTooLarge       = "ResponseTooLarge"
	ReasonNotAnAPIServer = "UnexpectedContentType"
	ReasonCacheFull      = "CacheLimitExceeded"
)

// Health is the state of a target.
type Health struct {
	Up bool
	// Reason is one of the Reason constants; Message has the details for users.
	Reason, Message string
	// Version is the target's version at the last successful probe.
	Version string
	// LastSeen is the time of the last successful probe.
	LastSeen time.Time
	// OtherCluster is the cluster that answers, if it is not the expected one.
	OtherCluster Cluster
}

// HealthMonitor is the state of a target according to the probes. It is safe for concurrent use.
type HealthMonitor struct {
	clock          clock.PassiveClock
	probeRequested chan struct{}
	// clockSkew is the lead of the target's clock over the hub's, in nanoseconds.
	clockSkew atomic.Int64

	lock   sync.Mutex
	health Health
	// epoch is the number of times that the target came up, and upSince when it did last.
	epoch   uint64
	upSince time.Time
	// upSignal is closed while the target is up.
	upSignal chan struct{}
}

// Get returns the present state of the target.
func (h *HealthMonitor) Get() Health {
	h.lock.Lock()
	defer h.lock.Unlock()
	if h.health.Reason == "" {
		return Health{Reason: ReasonConnecting, Message: "The target has not answered yet."}
	}
	return h.health
}

// IsUp reports whether the target answers.
func (h *HealthMonitor) IsUp() bool { return h.Get().Up }

// Epoch returns the number of times that the target came up. Work that was deferred while the target was down is due once for
// each epoch.
func (h *HealthMonitor) Epoch() uint64 {
	h.lock.Lock()
	defer h.lock.Unlock()
	return h.epoch
}

// WaitUntilUp waits until the target is up. It returns the error of ctx if that ends first.
func (h *HealthMonitor) WaitUntilUp(ctx context.Context) error {
	h.lock.Lock()
	up := h.upSignal
	h.lock.Unlock()
	select {
	case <-up:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// upSinceTime returns when the target came up last, and whether it is still up.
func (h *HealthMonitor) upSinceTime() (up bool, since time.Time) {
	h.lock.Lock()
	defer h.lock.Unlock()
	return h.health.Up, h.upSince
}

// ProbeNow starts the next probe at once. Callers use it after a request did not reach the target.
func (h *HealthMonitor) ProbeNow() { signal(h.probeRequested) }

// signal wakes the reader of a channel with a buffer of one.
func signal(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// set sets the health, and reports whether it differs and whether the target came up.
func (h *HealthMonitor) set(health Health) (changed, cameUp bool) {
	h.lock.Lock()
	defer h.lock.Unlock()
	before := h.health
	h.health = health
	cameUp = health.Up && !before.Up
	switch {
	case cameUp:
		h.epoch++
		h.upSince = h.clock.Now()
		close(h.upSignal)
	case before.Up && !health.Up:
		h.upSignal = make(chan struct{})
	}
	return before.Up != health.Up || before.Reason != health.Reason || before.Version != health.Version || before.OtherCluster != health.OtherCluster, cameUp
}

// maxClockSkew is the largest difference that [HealthMonitor.ClockSkew] ignores.
const maxClockSkew = time.Minute

// ClockSkew returns the lead of the target's clock over the hub's clock at the last probe, negative if the target's clock was
// behind. Add it to the hub's time before you compare that time with one that the target has set, such as the expiry of a token.
func (h *HealthMonitor) ClockSkew() time.Duration { return time.Duration(h.clockSkew.Load()) }

// onResponse reads the target's clock from the answers to probes.
func (h *HealthMonitor) onResponse(request *http.Request, response *http.Response) {
	if !strings.HasSuffix(request.URL.Path, "/version") {
		return
	}
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		ahead := date.Sub(h.clock.Now())
		if ahead.Abs() < maxClockSkew {
			ahead = 0
		}
		h.clockSkew.Store(int64(ahead))
	}
}
