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
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/version"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
	"github.com/synchub-dev/synchub/provider/targets/tunnel"
)

const probeTimeout = 10 * time.Second

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

// Health returns the present state of the target.
func (c *Connection) Health() Health {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.health.Reason == "" {
		return Health{Reason: ReasonConnecting, Message: "The target has not answered yet."}
	}
	return c.health
}

// IsUp reports whether the target answers.
func (c *Connection) IsUp() bool { return c.Health().Up }

// ConnectionEpoch returns the number of times that the target came up. Work that was deferred while the target was down is
// due once for each epoch.
func (c *Connection) ConnectionEpoch() uint64 {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.connectionEpoch
}

// WaitUntilUp waits until the target is up. It returns the error of ctx if that ends first.
func (c *Connection) WaitUntilUp(ctx context.Context) error {
	c.lock.Lock()
	up := c.upSignal
	c.lock.Unlock()
	select {
	case <-up:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ProbeNow starts the next probe at once. Callers use it after a request did not reach the target.
func (c *Connection) ProbeNow() {
	select {
	case c.probeRequested <- struct{}{}:
	default:
	}
}

// Ping gets the target's version, and reports whether the target has answered before ctx ended. It does not change the health.
func (c *Connection) Ping(ctx context.Context) bool {
	return c.discovery.RESTClient().Get().AbsPath("/version").MaxRetries(0).Do(requestclass.With(ctx, requestclass.Background)).Error() == nil
}

// runProbes probes the target until ctx ends, and waits while the target is quarantined.
func (c *Connection) runProbes(ctx context.Context) {
	state := healthState{}
	for {
		now := c.clock.Now()
		if quarantined, left := c.quarantine.remaining(now); left > 0 {
			// Earlier probes do not count after a quarantine.
			state = healthState{downSince: now}
			c.identity.invalidate()
			c.enterQuarantine(quarantined)
			select {
			case <-ctx.Done():
				return
			case <-c.clock.After(left):
			}
			continue
		}
		health, err := c.probe(ctx)
		if ctx.Err() != nil {
			return
		}
		if _, left := c.quarantine.remaining(c.clock.Now()); left > 0 {
			continue
		}
		var wait time.Duration
		if err != nil {
			c.identity.invalidate()
			c.noteInterruption(err)
		} else {
			c.verifyCaches(ctx)
		}
		state, wait = state.observe(err == nil, now)
		if health.Reason == ReasonClusterChanged {
			// The hub must not write to another cluster.
			state.up = false
		}
		if state.up == health.Up {
			c.setHealth(health)
		}
		c.checkReading()
		if health.Reason == ReasonUnauthorized {
			c.onUnauthorized(c.SyncTarget)
		}
		if wait == probeInterval {
			wait = alignToProbes(c.clock.Now(), wait+time.Duration((rand.Float64()-0.5)*0.2*float64(probeInterval))) //nolint:gosec // jitter needs no secrecy
		}
		select {
		case <-ctx.Done():
			return
		case <-c.probeRequested:
		case <-c.clock.After(wait):
		}
	}
}

// probe gets the target's version, and verifies its identity. It returns the resulting health.
func (c *Connection) probe(ctx context.Context) (Health, error) {
	ctx, cancel := context.WithTimeout(context.WithValue(requestclass.With(ctx, requestclass.Background), probeContextKey{}, true), probeTimeout)
	defer cancel()
	version, err := c.getVersion(ctx)
	if err == nil {
		err = c.verifyCluster(ctx)
	}
	if err != nil {
		health := c.Health()
		health.Up, health.Reason, health.Message, health.OtherCluster = false, healthReason(err), c.RedactError(err), Cluster{}
		if other, ok := errors.AsType[*ClusterMismatchError](err); ok {
			health.OtherCluster, health.Message = other.Observed, other.Error()+"."
		}
		return health, err
	}
	return Health{Up: true, Reason: ReasonConnected, Message: "The target answers.", Version: version, LastSeen: c.clock.Now()}, nil
}

func healthReason(err error) string {
	var denied *kubeconfig.NetworkDeniedError
	var other *ClusterMismatchError
	switch {
	case errors.As(err, &other):
		return ReasonClusterChanged
	case apierrors.IsUnauthorized(err):
		return ReasonUnauthorized
	case errors.As(err, &denied):
		return ReasonDenied
	case tunnel.IsClosed(err):
		return ReasonTunnelClosed
	default:
		return ReasonUnreachable
	}
}

// getVersion requests the version, and parses only a changed answer.
func (c *Connection) getVersion(ctx context.Context) (string, error) {
	// The next probe is the retry: a failing target must not get ten requests for each probe.
	body, err := c.discovery.RESTClient().Get().AbsPath("/version").MaxRetries(0).Do(ctx).Raw()
	if err != nil {
		return "", fmt.Errorf("cannot read the version of the target: %w", c.credentials.Error(err))
	}
	if c.versionCache.version == "" || !bytes.Equal(body, c.versionCache.body) {
		version, err := c.parseVersion(body)
		if err != nil {
			return "", err
		}
		c.versionCache = cachedVersion{body, version}
	}
	return c.versionCache.version, nil
}

// maxShownVersion bounds the version of a target, in bytes.
const maxShownVersion = 64

// parseVersion returns the version in an answer, in a form that is safe to show.
func (c *Connection) parseVersion(body []byte) (string, error) {
	var info version.Info
	if err := json.Unmarshal(body, &info); err != nil {
		return "", fmt.Errorf("the target's answer is not a version: %w", c.credentials.Error(err))
	}
	return c.credentials.Truncate(info.GitVersion, maxShownVersion), nil
}

// cachedVersion is a target's answer about its version, and the version in it.
type cachedVersion struct {
	body    []byte
	version string
}

// setHealth sets the health, and calls onChange if it differs.
func (c *Connection) setHealth(health Health) {
	c.lock.Lock()
	cameUp := health.Up && !c.health.Up
	changed := c.health.Up != health.Up || c.health.Reason != health.Reason || c.health.Version != health.Version || c.health.OtherCluster != health.OtherCluster
	if c.health.Up != health.Up {
		if health.Up {
			c.connectionEpoch++
			c.upSince = c.clock.Now()
			close(c.upSignal)
		} else {
			c.upSignal = make(chan struct{})
		}
	}
	c.health = health
	c.lock.Unlock()
	if changed {
		// After an outage the target may have another version, or be another cluster.
		c.discoveryCache.reset()
		c.log.Info("the target's health changed", "up", health.Up, "reason", health.Reason)
		c.onChange(c.SyncTarget)
	}
	if cameUp {
		c.notifier.notify(func(listener *Listener) {
			if listener.OnUp != nil {
				listener.OnUp()
			}
		})
	}
}
