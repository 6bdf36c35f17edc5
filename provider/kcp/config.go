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

package kcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/synchub-dev/synchub/provider/fence"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
	"github.com/synchub-dev/synchub/provider/redact"
	"github.com/synchub-dev/synchub/provider/transport"
)

// reloadInterval is the interval at which the hub compares the content of the kubeconfig. A mounted Secret reaches a Pod
// only after the kubelet's sync period, by default a minute. A file watch would therefore not be faster.
const reloadInterval = 5 * time.Second

// Limits bound the request rate of one client.
type Limits struct {
	// QPS is the maximum number of requests per second, and Burst the number of requests that may be sent at once.
	QPS   float32
	Burst int
}

// ConfigProvider makes the configurations of clients for kcp from one kubeconfig. The clients keep working when the
// kubeconfig gets new credentials.
type ConfigProvider struct {
	// Fence refuses the writes of clients that are made after it was set; nil refuses none.
	Fence *fence.Fence
	// Watches ends the watches of all clients when kcp went back to an earlier state.
	Watches Watches

	path       string
	host       string
	limits     Limits
	kubeconfig []byte
	current    atomic.Pointer[credentials]
}

type credentials struct {
	roundTripper http.RoundTripper
	release      func()
}

// Load reads the kubeconfig at path. The URL of its server may have the path of any workspace, which Load removes.
func Load(path string, limits Limits) (*ConfigProvider, error) {
	content, err := os.ReadFile(path) //nolint:gosec // the path is the operator's own flag
	if err != nil {
		return nil, fmt.Errorf("cannot read the kcp kubeconfig: %w", err)
	}
	access, err := LoadContent(content, limits)
	if err != nil {
		return nil, fmt.Errorf("cannot use the kcp kubeconfig %s: %w", path, err)
	}
	access.path = path
	return access, nil
}

// LoadContent is [Load] for a kubeconfig that is in no file. [ConfigProvider.Replace] changes it.
func LoadContent(content []byte, limits Limits) (*ConfigProvider, error) {
	host, roundTripper, err := parse(content)
	if err != nil {
		return nil, err
	}
	access := &ConfigProvider{limits: limits, host: host, kubeconfig: content}
	access.current.Store(roundTripper)
	return access, nil
}

// Host returns the base URL of kcp, without a workspace.
func (a *ConfigProvider) Host() string { return a.host }

// WorkspaceConfig returns a configuration for a workspace, by its path or the name of its logical cluster.
func (a *ConfigProvider) WorkspaceConfig(path string) *rest.Config {
	return a.ConfigFor(a.host+"/clusters/"+path, requestmetrics.Control)
}

// ConfigFor returns a configuration for a base URL in kcp, for example the URL of a virtual workspace. Metrics count its
// requests for the destination.
func (a *ConfigProvider) ConfigFor(host string, destination requestmetrics.Destination) *rest.Config {
	limits := transport.KCPLimits()
	if destination == requestmetrics.Mailbox {
		limits = transport.MailboxLimits()
	}
	return a.configWithLimits(limits, host, destination)
}

// InventoryConfigFor returns a configuration for a base URL in kcp, for clients that list objects of inventory workspaces
// in pages.
func (a *ConfigProvider) InventoryConfigFor(host string) *rest.Config {
	return a.configWithLimits(transport.MailboxLimits(), host, requestmetrics.Control)
}

func (a *ConfigProvider) configWithLimits(limits transport.Limits, host string, destination requestmetrics.Destination) *rest.Config {
	return &rest.Config{
		Host:      host,
		Transport: interruptible{a.Watches.Wrap(a.Fence.Wrap(requestmetrics.InstrumentRoundTripper(destination)(transport.LimitResponses(transport.Options{Limits: limits})(a))))},
		QPS:       a.limits.QPS,
		Burst:     a.limits.Burst,
		UserAgent: "synchub",

		WarningHandlerWithContext: rest.NoWarnings{},
	}
}

// RoundTrip sends a request with the current credentials.
func (a *ConfigProvider) RoundTrip(request *http.Request) (*http.Response, error) {
	return a.current.Load().roundTripper.RoundTrip(request)
}

// Watch reads the kubeconfig regularly until ctx ends, and replaces the credentials when the file changes. If the new
// file is unusable, Watch logs the error and keeps the credentials. It returns an error if the file names another server:
// all caches would be invalid, so the hub must restart.
func (a *ConfigProvider) Watch(ctx context.Context, log logr.Logger) error {
	ticker := time.NewTicker(reloadInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := a.reload(log); err != nil {
			return err
		}
	}
}

func (a *ConfigProvider) reload(log logr.Logger) error {
	content, err := os.ReadFile(a.path)
	if err != nil {
		log.Error(err, "cannot re-read the kcp kubeconfig, keeping the current credentials", "path", a.path)
		return nil
	}
	changed, err := a.Replace(content)
	moved, isMoved := errors.AsType[*movedError](err)
	switch {
	case isMoved:
		return fmt.Errorf("the kcp kubeconfig %s now names the server %s instead of %s: the hub must be started again", a.path, moved.host, a.host)
	case err != nil:
		log.Error(err, "the changed kcp kubeconfig cannot be used, keeping the current credentials", "path", a.path)
	case changed:
		log.Info("took over the changed kcp kubeconfig", "path", a.path)
	}
	return nil
}

// movedError is the error of a kubeconfig with another server.
type movedError struct{ host string }

func (e *movedError) Error() string {
	return fmt.Sprintf("it names another server, %s", e.host)
}

// Replace switches to the credentials in content, unless the kubeconfig is unchanged. It returns an error, and keeps the
// former credentials, if the kubeconfig is unusable or names another server. Only one caller may use it at a time.
func (a *ConfigProvider) Replace(content []byte) (changed bool, err error) {
	if string(content) == string(a.kubeconfig) {
		return false, nil
	}
	host, next, err := parse(content)
	if err != nil {
		return false, err
	}
	if host != a.host {
		next.release()
		return false, &movedError{host}
	}
	a.kubeconfig = content
	a.current.Swap(next).release()
	return true, nil
}

// parse returns the base URL of the server in a kubeconfig, and a transport with its credentials.
func parse(content []byte) (string, *credentials, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(content)
	if err != nil {
		return "", nil, err
	}
	server, err := url.Parse(strings.TrimSuffix(config.Host, "/"))
	if err != nil || server.Scheme != "https" || server.Host == "" {
		return "", nil, fmt.Errorf("its server %q is not an https URL", config.Host)
	}
	if _, workspace, found := strings.Cut(server.Path, "/clusters/"); !found && strings.Trim(server.Path, "/") != "" || strings.Contains(workspace, "/") {
		return "", nil, fmt.Errorf("its server %q has a path other than /clusters/<workspace>", config.Host)
	}
	prefix, _, _ := strings.Cut(server.Path, "/clusters/")
	server.Path = strings.TrimSuffix(prefix, "/")
	roundTripper, err := rest.TransportFor(config)
	if err != nil {
		return "", nil, err
	}
	unregister := redact.RegisterHub(config.BearerToken, config.Password)
	return server.String(), &credentials{roundTripper: roundTripper, release: func() {
		// http.Client would not see the transport within client-go's wrappers.
		utilnet.CloseIdleConnectionsFor(roundTripper)
		unregister()
	}}, nil
}
