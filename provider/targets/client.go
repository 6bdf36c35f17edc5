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
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"

	"github.com/synchub-dev/synchub/provider/discovery"
	"github.com/synchub-dev/synchub/provider/fastjson"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
	"github.com/synchub-dev/synchub/provider/redact"
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

// client makes the requests to a target, with the credentials and limits of its connection.
type client struct {
	objects   dynamic.Interface
	metadata  metadata.Interface
	discovery *discovery.Client
	http      *http.Client
	dialer    *connrotation.Dialer
	// dialPacer limits the rate of new network connections.
	dialPacer pacer
	// credentials redacts all secrets.
	credentials *redact.Credentials
	// forbidden counts the requests that the target has forbidden.
	forbidden atomic.Int64
}

// newClient returns a client that works until the connection ends.
func (c *Connection) newClient(config *rest.Config, options Options) (*client, error) {
	made := &client{
		credentials: redact.CredentialsOf(config.BearerToken, config.Password),
		dialer: connrotation.NewDialer((&net.Dialer{
			Timeout: dialTimeout, KeepAlive: keepAlive, Control: options.DeniedNetworks.Control,
		}).DialContext),
	}
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = options.Limits.QPS, options.Limits.Burst
	config.UserAgent = "synchub"
	config.Dial = c.identity.trackDials(made.limitDialRate(c.env, dialUntilDone(c.env.ctx, made.dialer.DialContext)))
	config.WarningHandlerWithContext = rest.NoWarnings{}
	server, err := url.Parse(config.Host)
	if err != nil {
		return nil, errors.New("cannot make an HTTP client from the kubeconfig: its server is no URL")
	}
	config.Wrap(transport.LimitResponses(transport.Options{
		Limits: transport.TargetLimits(), OnMisbehaviour: c.Quarantine.onMisbehaviour, Credentials: made.credentials,
		ReadLimiter: transport.NewReadLimiter(options.Clock, readBytesPerSecond, readBurstBytes),
		LargeSlots:  make(transport.Slots, maxLargeAtOnce), OnBufferChange: c.CacheSize.addWatchBuffer, BasePath: strings.TrimSuffix(server.Path, "/"),
	}))
	config.Wrap(requestmetrics.InstrumentRoundTripper(requestmetrics.Target))
	config.Wrap(impersonateUser)
	config.Wrap(observeResponses(made.onResponse, c.identity.onResponse, c.Health.onResponse))
	if options.Fence != nil {
		config.Wrap(options.Fence(c.SyncTarget).Wrap)
	}
	if config.Transport != nil {
		// A tunnel has no network connection to close.
		config.Transport = &abortingTransport{ctx: c.env.ctx, next: config.Transport}
		config.Dial = nil
	}
	if made.http, err = rest.HTTPClientFor(config); err != nil {
		return nil, fmt.Errorf("cannot make an HTTP client from the kubeconfig: %w", err)
	}
	// A redirect would lead to a server that is not in the kubeconfig.
	made.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if made.objects, err = fastjson.NewDynamicClient(config, made.http); err == nil {
		made.metadata, err = metadata.NewForConfigAndClient(config, made.http)
	}
	if err == nil {
		made.discovery, err = discovery.NewClient(config, made.http)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot make a client from the kubeconfig: %w", err)
	}
	return made, nil
}

// resource returns a client for the objects of a resource. The empty namespace means all.
func (c *client) resource(resource schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return c.objects.Resource(resource)
	}
	return c.objects.Resource(resource).Namespace(namespace)
}

// create creates an object from a typed one, such as a review, and reads the answer into it.
func (c *client) create(ctx context.Context, resource schema.GroupVersionResource, namespace string, kind schema.GroupVersionKind, typed any, subresources ...string) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(kind)
	answer, err := c.resource(resource, namespace).Create(ctx, object, metav1.CreateOptions{}, subresources...)
	if err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Object, typed)
}

// limitDialRate wraps a dial function, and limits the rate of new network connections.
func (c *client) limitDialRate(env *environment, dial connrotation.DialFunc) connrotation.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if err := c.dialPacer.wait(ctx, env, maxDials, dialInterval); err != nil {
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

// observeResponses returns a wrapper of transports that calls functions with each response.
func observeResponses(observers ...func(*http.Request, *http.Response)) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripperFunc(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err == nil {
				for _, observe := range observers {
					observe(request, response)
				}
			}
			return response, err
		})
	}
}

// onResponse counts the requests that the target forbids.
func (c *client) onResponse(_ *http.Request, response *http.Response) {
	if response.StatusCode == http.StatusForbidden {
		c.forbidden.Add(1)
	}
}

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (r roundTripperFunc) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// redactError returns the text of an error of the target without credentials and addresses. A network error is reduced to its
// class.
func (c *client) redactError(err error) string {
	if connection, ok := errors.AsType[*transport.ConnectionError](err); ok {
		return connection.Error()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return (&transport.ConnectionError{Class: transport.TimedOut}).Error()
	}
	text := err.Error()
	if withURL, ok := errors.AsType[*url.Error](err); ok {
		// The URL has the address of the server, which is secret like the kubeconfig.
		text = strings.ReplaceAll(text, withURL.Error(), withURL.Err.Error())
	}
	return c.credentials.Text(text)
}
