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

	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
	"github.com/synchub-dev/synchub/provider/redact"
	"github.com/synchub-dev/synchub/provider/transport"
)

// reloadInterval is how often the kubeconfig's content is compared. A mounted Secret reaches a Pod only after the
// kubelet's sync period (a minute by default), so a file watch would not be quicker where it matters.
const reloadInterval = 5 * time.Second

// Limits bound the requests of one client per second, for as long as it is busy, and at once.
type Limits struct {
	QPS   float32
	Burst int
}

// ConfigProvider is the hub's identity in kcp. Clients made from it go on working when the kubeconfig gets new credentials.
type ConfigProvider struct {
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

// Load reads the kubeconfig at path. Its server may name any workspace; the workspace is cut off.
func Load(path string, limits Limits) (*ConfigProvider, error) {
	access := &ConfigProvider{path: path, limits: limits}
	content, err := os.ReadFile(path) //nolint:gosec // the path is the operator's own flag
	if err != nil {
		return nil, fmt.Errorf("cannot read the kcp kubeconfig: %w", err)
	}
	host, roundTripper, err := parse(content)
	if err != nil {
		return nil, fmt.Errorf("cannot use the kcp kubeconfig %s: %w", path, err)
	}
	access.host, access.kubeconfig = host, content
	access.current.Store(roundTripper)
	return access, nil
}

// Host is the base URL of kcp, without any workspace.
func (a *ConfigProvider) Host() string { return a.host }

// WorkspaceConfig returns a configuration for the workspace of that path or logical cluster name.
func (a *ConfigProvider) WorkspaceConfig(path string) *rest.Config {
	return a.ConfigFor(a.host+"/clusters/"+path, requestmetrics.Control)
}

// ConfigFor returns a configuration for a base URL in kcp, for instance that of a virtual workspace; its requests count for
// the side.
func (a *ConfigProvider) ConfigFor(host string, side requestmetrics.Destination) *rest.Config {
	limits := transport.KCPLimits()
	if side == requestmetrics.Mailbox {
		limits = transport.MailboxLimits()
	}
	return a.configWithLimits(limits, host, side)
}

// InventoryConfigFor returns a configuration like At for those who list objects of inventory workspaces in pages.
func (a *ConfigProvider) InventoryConfigFor(host string) *rest.Config {
	return a.configWithLimits(transport.MailboxLimits(), host, requestmetrics.Control)
}

func (a *ConfigProvider) configWithLimits(limits transport.Limits, host string, side requestmetrics.Destination) *rest.Config {
	return &rest.Config{
		Host:      host,
		Transport: requestmetrics.InstrumentRoundTripper(side)(transport.LimitResponses(transport.Options{Limits: limits})(a)),
		QPS:       a.limits.QPS,
		Burst:     a.limits.Burst,
		UserAgent: "synchub",

		WarningHandlerWithContext: rest.NoWarnings{},
	}
}

// RoundTrip sends the request with the credentials that are current now.
func (a *ConfigProvider) RoundTrip(request *http.Request) (*http.Response, error) {
	return a.current.Load().roundTripper.RoundTrip(request)
}

// Watch re-reads the kubeconfig while ctx lasts and takes over new credentials. A file that cannot be used is reported
// and the credentials so far are kept. It fails if the file names another server: every cache would be worthless, so
// the hub must start again.
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
		log.Error(err, "cannot re-read the kcp kubeconfig, keeping the credentials so far", "path", a.path)
		return nil
	}
	if string(content) == string(a.kubeconfig) {
		return nil
	}
	host, fresh, err := parse(content)
	if err != nil {
		log.Error(err, "the changed kcp kubeconfig cannot be used, keeping the credentials so far", "path", a.path)
		return nil
	}
	if host != a.host {
		return fmt.Errorf("the kcp kubeconfig %s now names the server %s instead of %s: the hub must be started again", a.path, host, a.host)
	}
	a.kubeconfig = content
	old := a.current.Swap(fresh)
	old.release()
	log.Info("took over the changed kcp kubeconfig", "path", a.path)
	return nil
}

// parse returns the base URL that a kubeconfig names and a transport with its credentials.
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
	forget := redact.RegisterHub(config.BearerToken, config.Password)
	return server.String(), &credentials{roundTripper: roundTripper, release: func() {
		closeIdleConnections(roundTripper)
		forget()
	}}, nil
}

func closeIdleConnections(roundTripper http.RoundTripper) {
	// Through the wrappers of client-go, which net/http does not see through.
	utilnet.CloseIdleConnectionsFor(roundTripper)
}
