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
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/provider/cachesize"
	"github.com/synchub-dev/synchub/provider/discovery"
	"github.com/synchub-dev/synchub/provider/fastjson"
	"github.com/synchub-dev/synchub/provider/fence"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
	"github.com/synchub-dev/synchub/provider/redact"
	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
	"github.com/synchub-dev/synchub/provider/transport"
)

const (
	dialTimeout = 10 * time.Second
	keepAlive   = 30 * time.Second
	// requestTimeout bounds each request except watches. A write that takes longer is reconciled again.
	requestTimeout = 30 * time.Second
	// readBytesPerSecond limits the rate at which the hub reads lists and watches of one target; reading that much takes less
	// than a third of a CPU. readBurstBytes may arrive at once after a quiet period, such as for the initial lists.
	readBytesPerSecond = 8 << 20
	readBurstBytes     = 256 << 20
	// maxLargeAtOnce bounds the large responses of one target that are read and decoded at the same time.
	maxLargeAtOnce = 4
)

// errClosed is the error of requests through a closed connection.
var errClosed = closedError{}

type closedError struct{}

func (closedError) Error() string { return "the hub's connection to the target was closed" }

// Redacted implements [transport.Redacted].
func (closedError) Redacted() {}

// Connection is the hub's connection to one target.
type Connection struct {
	// SyncTarget is the UID of the SyncTarget.
	SyncTarget types.UID

	fieldManager string
	// namespaces are the namespaces in which the hub lists and watches; empty means the whole cluster.
	namespaces []string
	// bearerToken is secret; credentials redacts all secrets.
	bearerToken string
	credentials *redact.Credentials
	client      dynamic.Interface
	metadata    metadata.Interface
	discovery   *discovery.Client
	http        *http.Client
	dialer      *connrotation.Dialer
	fingerprint [sha256.Size]byte
	clock       clock.WithTicker
	log         logr.Logger
	onChange    func(types.UID)
	// onUnauthorized is called after each probe whose credentials were refused.
	onUnauthorized func(types.UID)
	probeRequested chan struct{}
	notifier       notifier
	discoveryCache discoveryCache
	lookups        asyncLookups
	tokenRenewal   tokenRenewal
	interruption   interruption
	// behind counts the informers that are not in sync with the target.
	behind         atomic.Int64
	apiPoll        apiPoll
	identity       clusterIdentity
	creationProbes singleflight.Group
	// clockSkew is the difference of the target's clock to the hub's, in nanoseconds. It is positive if the target's clock is
	// ahead.
	clockSkew atomic.Int64
	// versionCache is used by the probe only.
	versionCache cachedVersion
	// quarantine has the reason and the end of the target's quarantine.
	quarantine quarantine
	// cached is the size of all informers, bounded by cacheLimits. It is part of memory.cached.
	cached cachesize.Counter
	// watchBuffers is the size of the buffers of watches. They count as one object of cached.
	watchBuffers cachesize.Counter
	// dialPacer limits the rate of new network connections.
	dialPacer   pacer
	cacheLimits CacheLimits
	memory      *memoryLimit
	// pageSemaphore has an entry for each page that is being read.
	pageSemaphore chan struct{}
	// unregisterCredentials ends the redaction of the credentials in logs.
	unregisterCredentials func()

	// ctx owns the goroutines of the connection; done waits for them.
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	lock   sync.Mutex
	health Health
	// connectionEpoch is the number of times that the target came up.
	connectionEpoch uint64
	// upSignal is closed while the target is up.
	upSignal chan struct{}
	// upSince is when the target came up last.
	upSince time.Time
	// creation is nil until the first create.
	creation *creationMode
	// aggregateMetrics sums up the metrics of all resources of the target.
	aggregateMetrics bool
	fence            *fence.Fence
	// informers are the running informers.
	informers map[*informer]struct{}

	permissions permissionChecker
}

// newConnection returns a connection and starts its probes, which end with ctx or with close.
func newConnection(ctx context.Context, syncTarget types.UID, config *rest.Config, fingerprint [sha256.Size]byte, expected ExpectedCluster, options Options) (*Connection, error) {
	ctx, cancel := context.WithCancel(ctx)
	if options.OnUnauthorized == nil {
		options.OnUnauthorized = func(types.UID) {}
	}
	connection := &Connection{
		SyncTarget:   syncTarget,
		fieldManager: options.FieldManager,
		namespaces:   options.namespaces,
		bearerToken:  config.BearerToken,
		credentials:  redact.CredentialsOf(config.BearerToken, config.Password),
		dialer: connrotation.NewDialer((&net.Dialer{
			Timeout: dialTimeout, KeepAlive: keepAlive, Control: options.DeniedNetworks.Control,
		}).DialContext),
		fingerprint:           fingerprint,
		clock:                 options.Clock,
		log:                   options.Log.WithValues("syncTargetUID", syncTarget),
		onChange:              options.OnChange,
		onUnauthorized:        options.OnUnauthorized,
		aggregateMetrics:      options.AggregateMetrics,
		ctx:                   ctx,
		cancel:                cancel,
		probeRequested:        make(chan struct{}, 1),
		upSignal:              make(chan struct{}),
		lookups:               newAsyncLookups(),
		informers:             map[*informer]struct{}{},
		cacheLimits:           options.CacheLimits,
		memory:                options.memory,
		pageSemaphore:         make(chan struct{}, maxConcurrentPages),
		unregisterCredentials: redact.Register(config.BearerToken, config.Password),
	}
	if options.Fence != nil {
		connection.fence = options.Fence(syncTarget)
	}
	_ = connection.watchBuffers.AddToParent(&connection.cached)
	connection.watchBuffers.Add(1, 0)
	// Each informer and each watch removes its size from both.
	_ = connection.cached.AddToParent(&options.memory.cached)
	options.memory.connections.Add(1)
	context.AfterFunc(ctx, func() { options.memory.connections.Add(-1) })
	connection.identity.server, connection.identity.expected = serverFingerprint(config), expected
	if config.Transport != nil {
		connection.identity.server = tunnelServer
	}
	if err := connection.makeClients(ctx, config, options.Limits); err != nil {
		cancel()
		connection.unregisterCredentials()
		return nil, err
	}
	connection.running.Go(func() { connection.runProbes(ctx) })
	return connection, nil
}

// makeClients creates the clients, which work until ctx ends.
func (c *Connection) makeClients(ctx context.Context, config *rest.Config, limits kcp.Limits) error {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = limits.QPS, limits.Burst
	config.UserAgent = "synchub"
	config.Dial = c.trackDials(c.limitDialRate(dialUntilDone(ctx, c.dialer.DialContext)))
	config.WarningHandlerWithContext = rest.NoWarnings{}
	server, err := url.Parse(config.Host)
	if err != nil {
		return errors.New("cannot make an HTTP client from the kubeconfig: its server is no URL")
	}
	config.Wrap(transport.LimitResponses(transport.Options{
		Limits: transport.TargetLimits(), OnMisbehaviour: c.onMisbehaviour, Credentials: c.credentials,
		ReadLimiter: transport.NewReadLimiter(c.clock, readBytesPerSecond, readBurstBytes),
		LargeSlots:  make(transport.Slots, maxLargeAtOnce), OnBufferChange: c.addWatchBuffer, BasePath: strings.TrimSuffix(server.Path, "/"),
	}))
	config.Wrap(requestmetrics.InstrumentRoundTripper(requestmetrics.Target))
	config.Wrap(c.permissions.countForbidden)
	config.Wrap(c.trackCertificates)
	config.Wrap(c.measureClockSkew)
	config.Wrap(c.fence.Wrap)
	if config.Transport != nil {
		// A tunnel has no network connection to close.
		config.Transport = &abortingTransport{ctx: ctx, next: config.Transport}
		config.Dial = nil
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("cannot make an HTTP client from the kubeconfig: %w", err)
	}
	c.http = client
	// A redirect would lead to a server that is not in the kubeconfig.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if c.client, err = fastjson.NewDynamicClient(config, client); err != nil {
		return fmt.Errorf("cannot make a client from the kubeconfig: %w", err)
	}
	if c.metadata, err = metadata.NewForConfigAndClient(config, client); err != nil {
		return fmt.Errorf("cannot make a client from the kubeconfig: %w", err)
	}
	if c.discovery, err = discovery.NewClient(config, client); err != nil {
		return fmt.Errorf("cannot make a client from the kubeconfig: %w", err)
	}
	return nil
}

// limitDialRate wraps a dial function, and limits the rate of new network connections.
func (c *Connection) limitDialRate(dial connrotation.DialFunc) connrotation.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if err := c.dialPacer.wait(ctx, c.clock, maxDials, dialInterval); err != nil {
			return nil, err
		}
		return dial(ctx, network, address)
	}
}

// dialUntilDone wraps a dial function, and refuses to dial once ctx has ended: an old client must not reopen a connection.
func dialUntilDone(ctx context.Context, dial connrotation.DialFunc) connrotation.DialFunc {
	return func(dialing context.Context, network, address string) (net.Conn, error) {
		if ctx.Err() != nil {
			return nil, errClosed
		}
		opened, err := dial(dialing, network, address)
		if err == nil && ctx.Err() != nil {
			// close may have closed the existing network connections just before this one was opened.
			_ = opened.Close()
			return nil, errClosed
		}
		return opened, err
	}
}

// RunInBackground starts work that may wait for the target. Its ctx ends with the connection, and closing the connection waits
// for the work. A closed connection starts nothing.
func (c *Connection) RunInBackground(work func(ctx context.Context)) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.ctx.Err() == nil {
		c.running.Go(func() { work(c.ctx) })
	}
}

// close ends all probes, requests and watches of the connection, and waits for them.
func (c *Connection) close() {
	// Under the lock, so that RunInBackground starts nothing during Wait.
	c.lock.Lock()
	c.cancel()
	c.lock.Unlock()
	c.dialer.CloseAll()
	c.running.Wait()
	c.unregisterCredentials()
}

// closeAfter closes the connection after a delay.
func (c *Connection) closeAfter(wait time.Duration) {
	select {
	case <-c.ctx.Done():
	case <-c.clock.After(wait):
	}
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
	// OnChange is called when the state of a target, its connection or its permissions may have changed. It must not block.
	OnChange func(syncTarget types.UID)
	// OnUnauthorized is called after each probe whose credentials the target refused. It must not block. Nil does nothing.
	OnUnauthorized func(syncTarget types.UID)
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

	// namespaces and memory are set by the registry. namespaces are the namespaces, sorted, in which the hub lists and
	// watches; empty means the whole cluster.
	namespaces []string
	memory     *memoryLimit
}
