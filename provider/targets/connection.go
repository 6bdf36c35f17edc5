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
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/provider/discovery"
	"github.com/synchub-dev/synchub/provider/fence"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/metrics/targetlabels"
	"github.com/synchub-dev/synchub/provider/redact"
	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
	"github.com/synchub-dev/synchub/provider/topic"
)

// Connection is the hub's connection to one target. Each part has one job.
type Connection struct {
	// SyncTarget is the UID of the SyncTarget.
	SyncTarget types.UID
	// Namespaces are the namespaces in which the hub lists and watches; empty means the whole cluster.
	Namespaces Namespaces

	Health     HealthMonitor
	Quarantine Quarantine
	// CacheSize is the size of all caches of the target.
	CacheSize CacheSize
	// Objects reads and writes objects.
	Objects Objects
	// Watches makes caches, and reports events.
	Watches Watches
	// APIs finds out which APIs the target serves, and APIPoll reports changes.
	APIs    APIs
	APIPoll APIPoll
	// Discovery is the client that asks the target which APIs it serves. It shares the connection's limits and ends with the
	// connection. Callers set a timeout, and the class of their requests, in the context.
	Discovery   *discovery.Client
	Permissions PermissionChecker
	Token       BearerToken

	env         *environment
	client      *client
	identity    clusterIdentity
	fingerprint [sha256.Size]byte
	// unregisterCredentials ends the redaction of the credentials in logs.
	unregisterCredentials func()
}

// newConnection returns a connection and starts its probes, which end with ctx or with close.
func newConnection(ctx context.Context, syncTarget types.UID, config *rest.Config, fingerprint [sha256.Size]byte, expected ExpectedCluster, options Options) (*Connection, error) {
	ctx, cancel := context.WithCancel(ctx)
	env := &environment{
		syncTarget: syncTarget, clock: options.Clock, log: options.Log.WithValues(targetlabels.LogValues(syncTarget)...), changes: options.changed,
		ctx: ctx, cancel: cancel,
	}
	c := &Connection{SyncTarget: syncTarget, Namespaces: options.namespaces, env: env, fingerprint: fingerprint}
	c.Health = HealthMonitor{clock: options.Clock, probeRequested: make(chan struct{}, 1), upSignal: make(chan struct{})}
	c.Quarantine = Quarantine{clock: options.Clock, health: &c.Health}
	c.CacheSize = CacheSize{quarantine: &c.Quarantine, limits: options.CacheLimits, memory: options.memory}
	c.CacheSize.count(ctx)
	c.identity = clusterIdentity{clock: options.Clock, health: &c.Health, server: serverFingerprint(config), expected: expected}
	if config.Transport != nil {
		c.identity.server = tunnelServer
	}
	client, err := c.newClient(config, options)
	if err != nil {
		cancel()
		return nil, err
	}
	c.unregisterCredentials = redact.Register(config.BearerToken, config.Password)
	discovered, listeners := &discoveryCache{}, &listeners{}
	c.client, c.Discovery = client, client.discovery
	c.Objects = Objects{env: env, client: client, health: &c.Health, namespaces: c.Namespaces, fieldManager: options.FieldManager}
	c.APIPoll = APIPoll{env: env, client: client, health: &c.Health, discovered: discovered, listeners: listeners}
	c.Watches = Watches{
		env: env, client: client, health: &c.Health, quarantine: &c.Quarantine, size: &c.CacheSize, objects: &c.Objects,
		apiPoll: &c.APIPoll, listeners: listeners, namespaces: c.Namespaces,
		pageSemaphore: make(chan struct{}, maxConcurrentPages), aggregateMetrics: options.AggregateMetrics,
		informers: informerSet{running: map[*informer]struct{}{}},
	}
	c.APIs = APIs{env: env, client: client, watches: &c.Watches, discovered: discovered, lookups: newAsyncLookups()}
	c.Permissions = PermissionChecker{env: env, client: client, health: &c.Health}
	c.Token = BearerToken{env: env, client: client, token: config.BearerToken}
	probes := &prober{
		env: env, client: client, health: &c.Health, identity: &c.identity, quarantine: &c.Quarantine, watches: &c.Watches,
		discovered: discovered, listeners: listeners, unauthorized: options.unauthorized,
	}
	env.running.Go(func() { probes.run(ctx) })
	return c, nil
}

// RunInBackground starts work that may wait for the target. Its ctx ends with the connection, and closing the connection waits
// for the work. A closed connection starts nothing.
func (c *Connection) RunInBackground(work func(ctx context.Context)) { c.env.runInBackground(work) }

// RedactError returns the text of an error of the target without credentials and addresses. A network error is reduced to its
// class.
func (c *Connection) RedactError(err error) string { return c.client.redactError(err) }

// Cluster returns the cluster that the connection leads to; known is false until that is verified.
func (c *Connection) Cluster() (cluster Cluster, known bool) {
	cluster, _, known = c.identity.get(c.env.clock.Now())
	return cluster, known
}

// close ends all probes, requests and watches of the connection, and waits for them.
func (c *Connection) close() {
	c.env.end()
	c.client.dialer.CloseAll()
	c.env.running.Wait()
	c.unregisterCredentials()
}

// closeAfter closes the connection after a delay.
func (c *Connection) closeAfter(wait time.Duration) {
	_ = c.env.sleep(c.env.ctx, wait)
	c.close()
}

// Options configure a [Registry] and all its connections.
type Options struct {
	// FieldManager is the hub's field manager.
	FieldManager string
	// Limits are the rate limits of each target, unless its SyncTarget sets other limits.
	Limits kcp.Limits
	Clock  clock.WithTicker
	Log    logr.Logger
	// DeniedNetworks are networks that no connection dials.
	DeniedNetworks kubeconfig.DeniedNetworks
	// CacheLimits bound the caches of each target.
	CacheLimits CacheLimits
	// TotalBytes bounds the caches of all targets together; zero means no bound.
	TotalBytes int64
	// LeaderOnly is true if a replica that does not lead connects to no target.
	LeaderOnly bool
	// AggregateMetrics sums up the metrics of all resources of a target.
	AggregateMetrics bool
	// Tunnels configures tunnels from clusters that the hub cannot dial; nil disables them.
	Tunnels *TunnelOptions
	// Fence returns the fence of a target. While the fence is closed, it refuses the hub's writes to the target. Nil means no
	// fences.
	Fence func(syncTarget types.UID) *fence.Fence

	// The registry sets the fields below. namespaces are the namespaces, sorted, in which the hub lists and watches; empty
	// means the whole cluster.
	namespaces []string
	memory     *memoryLimit
	// changed and unauthorized are the topics of the registry.
	changed, unauthorized *topic.Topic[types.UID]
}
