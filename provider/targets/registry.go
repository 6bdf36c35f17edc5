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
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/provider/kcp"
)

// Registry keeps one connection per SyncTarget.
type Registry struct {
	options Options

	lock        sync.RWMutex
	ctx         context.Context // set by Start; the owner of all connections
	connections map[types.UID]*Connection
}

// NewRegistry returns an empty registry.
func NewRegistry(options Options) *Registry {
	return &Registry{options: options, connections: map[types.UID]*Connection{}}
}

// Start lets connections be made until ctx ends, and closes them then.
func (r *Registry) Start(ctx context.Context) error {
	r.lock.Lock()
	r.ctx = ctx
	r.lock.Unlock()
	<-ctx.Done()
	r.lock.Lock()
	connections := r.connections
	r.connections = map[types.UID]*Connection{}
	r.lock.Unlock()
	for _, connection := range connections {
		connection.close()
	}
	return nil
}

// NeedLeaderElection makes the manager run the registry on the leader only.
func (r *Registry) NeedLeaderElection() bool { return true }

// Connect returns the connection of a SyncTarget for a kubeconfig and limits. It is made anew if either has changed.
// Zero limits stand for the hub's own. The error is a [*RefusedError] if the kubeconfig is not accepted.
func (r *Registry) Connect(syncTarget types.UID, kubeconfig []byte, limits kcp.Limits) (*Connection, error) {
	config, err := ParseKubeconfig(kubeconfig)
	if err != nil {
		r.Disconnect(syncTarget)
		return nil, err
	}
	options := r.options
	if limits.QPS > 0 {
		options.Limits.QPS = limits.QPS
	}
	if limits.Burst > 0 {
		options.Limits.Burst = limits.Burst
	}
	fingerprint := sha256.Sum256(fmt.Appendf(nil, "%v %s", options.Limits, kubeconfig))

	r.lock.Lock()
	defer r.lock.Unlock()
	if r.ctx == nil || r.ctx.Err() != nil {
		return nil, fmt.Errorf("this hub makes no connections: it is not the leader")
	}
	old, ok := r.connections[syncTarget]
	if ok && old.fingerprint == fingerprint {
		return old, nil
	}
	connection, err := newConnection(r.ctx, syncTarget, config, fingerprint, options)
	if err != nil {
		return nil, err
	}
	r.connections[syncTarget] = connection
	if ok {
		go old.close()
	}
	return connection, nil
}

// Disconnect closes the connection of a SyncTarget, if there is one.
func (r *Registry) Disconnect(syncTarget types.UID) {
	r.lock.Lock()
	connection, ok := r.connections[syncTarget]
	delete(r.connections, syncTarget)
	r.lock.Unlock()
	if ok {
		connection.close()
		r.options.OnChange(syncTarget)
	}
}

// Get returns the connection of a SyncTarget.
func (r *Registry) Get(syncTarget types.UID) (*Connection, bool) {
	r.lock.RLock()
	defer r.lock.RUnlock()
	connection, ok := r.connections[syncTarget]
	return connection, ok
}
