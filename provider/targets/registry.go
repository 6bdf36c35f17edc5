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
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
	"github.com/synchub-dev/synchub/provider/targets/tunnel"
	"github.com/synchub-dev/synchub/provider/topic"
)

// handoverPeriod is how long a connection stays open after its successor replaced it, so that callers can switch and requests
// can end.
const handoverPeriod = time.Second

// ErrNotRunning means that the registry has not started, or has ended.
var ErrNotRunning = errors.New("the hub makes no connections yet, or no more")

// Registry keeps one connection per SyncTarget, and publishes their changes.
type Registry struct {
	// Changed carries SyncTargets whose target, connection or permissions may have changed.
	Changed topic.Topic[types.UID]
	// Unauthorized carries the SyncTarget of each probe whose credentials the target refused.
	Unauthorized topic.Topic[types.UID]

	options Options

	lock        sync.RWMutex
	ctx         context.Context // set by Start; the owner of all connections
	connections map[types.UID]*Connection
	// successors are connections from a changed kubeconfig that the target has not answered yet. Until then the former ones
	// stay in use.
	successors map[types.UID]*Connection
	// expectedClusters are the clusters that connections must lead to.
	expectedClusters map[types.UID]ExpectedCluster
	// tunnels is nil if the hub accepts none.
	tunnels *tunnel.Server
}

// NewRegistry returns an empty registry.
func NewRegistry(options Options) *Registry {
	options.memory = &memoryLimit{limit: options.TotalBytes}
	r := &Registry{connections: map[types.UID]*Connection{}, successors: map[types.UID]*Connection{}, expectedClusters: map[types.UID]ExpectedCluster{}}
	options.changed, options.unauthorized = &r.Changed, &r.Unauthorized
	r.options = options
	if options.Tunnels != nil {
		r.tunnels = r.newTunnels(*options.Tunnels)
	}
	return r
}

// NeedLeaderElection implements [manager.LeaderElectionRunnable] of controller-runtime.
func (r *Registry) NeedLeaderElection() bool { return r.options.LeaderOnly }

// Start makes the registry able to connect until ctx ends, and closes all connections then.
func (r *Registry) Start(ctx context.Context) error {
	r.lock.Lock()
	r.ctx = ctx
	r.lock.Unlock()
	defer runningRegistries.Add(r)()
	<-ctx.Done()
	r.lock.Lock()
	connections, successors := r.connections, r.successors
	r.connections, r.successors = map[types.UID]*Connection{}, map[types.UID]*Connection{}
	r.lock.Unlock()
	for _, all := range []map[types.UID]*Connection{connections, successors} {
		for _, connection := range all {
			connection.close()
		}
	}
	return nil
}

// SetExpectedCluster sets the cluster to which the connections of a SyncTarget must lead, including later ones. A connection to
// another cluster is not up.
func (r *Registry) SetExpectedCluster(syncTarget types.UID, expected ExpectedCluster) {
	r.lock.Lock()
	before := r.expectedClusters[syncTarget]
	r.expectedClusters[syncTarget] = expected
	current, next := r.connections[syncTarget], r.successors[syncTarget]
	r.lock.Unlock()
	if r.tunnels != nil && before.Cluster != expected.Cluster {
		r.tunnels.Reconsider(syncTarget)
	}
	for _, connection := range []*Connection{current, next} {
		if connection != nil && connection.identity.setExpected(expected) {
			connection.Health.ProbeNow()
		}
	}
}

// Connect returns the connection of a SyncTarget for a kubeconfig, limits and namespaces. When one of these has changed, the hub
// opens a second connection. Connect returns the former one, if that is up, until the target has answered the second. A change
// is published after the answer, and the caller calls Connect again. So a valid change causes no gap.
//
// Zero limits mean the hub's limits. With namespaces, the hub lists and watches only there. The error is a
// [*kubeconfig.InvalidError] if the kubeconfig is refused. A kubeconfig that the hub cannot use for a connection also closes
// the former connection, whose credentials are no longer the SyncTarget's.
func (r *Registry) Connect(syncTarget types.UID, content []byte, limits kcp.Limits, namespaces ...string) (*Connection, error) {
	options, fingerprint := r.optionsFor(limits, namespaces, content)
	if current, ok := r.currentConnection(syncTarget, fingerprint); ok {
		return current, nil
	}
	config, err := kubeconfig.Parse(content)
	if err == nil {
		err = r.options.DeniedNetworks.CheckServer(config.Host)
	}
	if err != nil {
		r.Disconnect(syncTarget)
		return nil, err
	}
	connection, err := r.connect(syncTarget, config, fingerprint, options)
	if err != nil && !errors.Is(err, ErrNotRunning) {
		r.Disconnect(syncTarget)
	}
	return connection, err
}

// optionsFor returns the options of a connection, and a fingerprint of them and of the content of its credentials.
func (r *Registry) optionsFor(limits kcp.Limits, namespaces []string, content []byte) (options Options, fingerprint [sha256.Size]byte) {
	options = r.options
	if limits.QPS > 0 {
		options.Limits.QPS = limits.QPS
	}
	if limits.Burst > 0 {
		options.Limits.Burst = limits.Burst
	}
	options.namespaces = slices.Compact(slices.Sorted(slices.Values(namespaces)))
	return options, sha256.Sum256(fmt.Appendf(nil, "%v %q %s", options.Limits, options.namespaces, content))
}

// currentConnection returns the connection for a fingerprint, unless it has a successor. The kubeconfig of such a connection is
// not parsed again: parsing it at each heartbeat took over a quarter of the CPU time of an idle hub.
func (r *Registry) currentConnection(syncTarget types.UID, fingerprint [sha256.Size]byte) (*Connection, bool) {
	r.lock.RLock()
	defer r.lock.RUnlock()
	if r.ctx == nil || r.ctx.Err() != nil || r.successors[syncTarget] != nil {
		return nil, false
	}
	current, ok := r.connections[syncTarget]
	if !ok || current.fingerprint != fingerprint {
		return nil, false
	}
	return current, true
}

// connect returns the connection of a SyncTarget, and makes one if there is none with the fingerprint.
func (r *Registry) connect(syncTarget types.UID, config *rest.Config, fingerprint [sha256.Size]byte, options Options) (*Connection, error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.ctx == nil || r.ctx.Err() != nil {
		return nil, ErrNotRunning
	}
	current, ok := r.connections[syncTarget]
	next, changing := r.successors[syncTarget]
	if changing && (next.fingerprint != fingerprint || current.fingerprint == fingerprint) {
		// The kubeconfig has changed once more, or back.
		delete(r.successors, syncTarget)
		go next.close()
		changing = false
	}
	if ok && current.fingerprint == fingerprint {
		return current, nil
	}
	if !changing {
		var err error
		if next, err = newConnection(r.ctx, syncTarget, config, fingerprint, r.expectedClusters[syncTarget], options); err != nil {
			return nil, err
		}
	}
	if ok && current.Health.IsUp() && next.Health.Get().Reason == ReasonConnecting {
		r.successors[syncTarget] = next
		return current, nil
	}
	delete(r.successors, syncTarget)
	r.connections[syncTarget] = next
	if ok {
		go current.closeAfter(handoverPeriod)
	}
	return next, nil
}

// Disconnect closes the connections of a SyncTarget, and forgets its expected cluster.
func (r *Registry) Disconnect(syncTarget types.UID) {
	r.lock.Lock()
	connection, ok := r.connections[syncTarget]
	successor, changing := r.successors[syncTarget]
	delete(r.connections, syncTarget)
	delete(r.successors, syncTarget)
	delete(r.expectedClusters, syncTarget)
	r.lock.Unlock()
	if changing {
		successor.close()
	}
	if ok {
		connection.close()
		r.Changed.Publish(syncTarget)
	}
}

// Get returns the connection of a SyncTarget; ok is false if there is none.
func (r *Registry) Get(syncTarget types.UID) (*Connection, bool) {
	r.lock.RLock()
	defer r.lock.RUnlock()
	connection, ok := r.connections[syncTarget]
	return connection, ok
}
