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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"

	"github.com/synchub-dev/synchub/provider/redact"
	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
	"github.com/synchub-dev/synchub/provider/targets/tunnel"
	"github.com/synchub-dev/synchub/provider/topic"
)

const (
	probeTimeout = 10 * time.Second
	// tunnelPatience is how long the hub expects the first tunnel of a target before it reports that there is none. After a restart of the
	// hub all tunnels are opened again: an end in a cluster tries every 5 seconds.
	tunnelPatience = 30 * time.Second
)

// prober probes a target, sets its health, and enforces its quarantine.
type prober struct {
	env        *environment
	client     *client
	health     *HealthMonitor
	identity   *clusterIdentity
	quarantine *Quarantine
	watches    *Watches
	discovered *discoveryCache
	listeners  *listeners
	// unauthorized carries the SyncTarget after each probe whose credentials were refused.
	unauthorized *topic.Topic[types.UID]
	// version is the version in versionBody, the last answer about it.
	version     string
	versionBody []byte
}

// run probes the target until ctx ends, and waits while the target is quarantined.
func (p *prober) run(ctx context.Context) {
	state, began := healthState{}, p.env.clock.Now()
	for {
		now := p.env.clock.Now()
		if quarantined, left := p.quarantine.remaining(now); left > 0 {
			// Earlier probes do not count after a quarantine.
			state = healthState{downSince: now}
			p.identity.invalidate()
			p.enterQuarantine(quarantined)
			if p.env.sleep(ctx, left) != nil {
				return
			}
			continue
		}
		health, err := p.probe(ctx)
		if ctx.Err() != nil {
			return
		}
		if _, left := p.quarantine.remaining(p.env.clock.Now()); left > 0 {
			continue
		}
		var wait time.Duration
		if err != nil {
			p.identity.invalidate()
			p.watches.informers.noteInterruption(err)
		} else {
			p.watches.verifyCaches(ctx)
		}
		state, wait = state.record(err == nil, now)
		if health.Reason == ReasonClusterChanged {
			// The hub must not write to another cluster.
			state.up = false
		}
		if state.up == health.Up && !awaitsTunnel(err, now.Sub(began)) {
			p.setHealth(health)
		}
		p.watches.checkReading()
		if health.Reason == ReasonUnauthorized {
			p.unauthorized.Publish(p.env.syncTarget)
		}
		if wait == probeInterval {
			wait = alignToProbes(p.env.clock.Now(), wait+time.Duration((rand.Float64()-0.5)*0.2*float64(probeInterval))) //nolint:gosec // jitter needs no secrecy
		}
		select {
		case <-ctx.Done():
			return
		case <-p.health.probeRequested:
		case <-p.env.clock.After(wait):
		}
	}
}

// awaitsTunnel reports whether a probe failed only because the first tunnel of a new connection has not been opened yet.
func awaitsTunnel(err error, age time.Duration) bool {
	return tunnel.IsAwaited(err) && age < tunnelPatience
}

// probe gets the target's version, and verifies its identity. It returns the resulting health.
func (p *prober) probe(ctx context.Context) (Health, error) {
	ctx, cancel := context.WithTimeout(context.WithValue(requestclass.With(ctx, requestclass.Background), probeContextKey{}, true), probeTimeout)
	defer cancel()
	version, err := p.getVersion(ctx)
	if err == nil {
		err = p.identity.verify(ctx, p.client.metadata)
	}
	if err != nil {
		health := p.health.Get()
		health.Up, health.Reason, health.Message, health.OtherCluster = false, healthReason(err), p.client.redactError(err), Cluster{}
		if other, ok := errors.AsType[*ClusterMismatchError](err); ok {
			health.OtherCluster, health.Message = other.Observed, other.Error()+"."
		}
		return health, err
	}
	return Health{Up: true, Reason: ReasonConnected, Message: "The target answers.", Version: version, LastSeen: p.env.clock.Now()}, nil
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
func (p *prober) getVersion(ctx context.Context) (string, error) {
	// The next probe is the retry: a failing target must not get ten requests for each probe.
	body, err := p.client.discovery.RESTClient().Get().AbsPath("/version").MaxRetries(0).Do(ctx).Raw()
	if err != nil {
		return "", fmt.Errorf("cannot read the version of the target: %w", p.client.credentials.Error(err))
	}
	if p.version == "" || !bytes.Equal(body, p.versionBody) {
		version, err := parseVersion(body, p.client.credentials)
		if err != nil {
			return "", err
		}
		p.versionBody, p.version = body, version
	}
	return p.version, nil
}

// maxShownVersion bounds the version of a target, in bytes.
const maxShownVersion = 64

// parseVersion returns the version in an answer, in a form that is safe to show.
func parseVersion(body []byte, credentials *redact.Credentials) (string, error) {
	var info version.Info
	if err := json.Unmarshal(body, &info); err != nil {
		return "", fmt.Errorf("the target's answer is not a version: %w", credentials.Error(err))
	}
	return credentials.Truncate(info.GitVersion, maxShownVersion), nil
}

// setHealth sets the health, and reports a change.
func (p *prober) setHealth(health Health) {
	changed, cameUp := p.health.set(health)
	if changed {
		// After an outage the target may have another version, or be another cluster.
		p.discovered.reset()
		p.env.log.Info("the target's health changed", "up", health.Up, "reason", health.Reason)
		p.env.changed()
	}
	if cameUp {
		p.listeners.call(func(listener *Listener) func() { return listener.OnUp })
	}
}

// enterQuarantine reports the quarantine, and ends all requests to the target.
func (p *prober) enterQuarantine(problem Health) {
	health := p.health.Get()
	health.Up, health.Reason, health.Message = false, problem.Reason, problem.Message
	p.setHealth(health)
	if p.quarantine.disconnect() {
		p.client.dialer.CloseAll()
	}
}
