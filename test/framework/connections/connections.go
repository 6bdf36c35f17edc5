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

package connections

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/provider/bootstrap"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// NewRegistry returns a registry that runs until the test ends. It replaces missing options by defaults.
func NewRegistry(t testing.TB, options targets.Options) *targets.Registry {
	t.Helper()
	if options.FieldManager == "" {
		options.FieldManager = "test"
	}
	if options.Limits == (kcp.Limits{}) {
		options.Limits = kcp.Limits{QPS: 1000, Burst: 2000}
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if options.Log.GetSink() == nil {
		options.Log = logr.Discard()
	}
	if tunnelled() {
		options.Tunnels = &targets.TunnelOptions{Replica: "test", Replicas: func() int { return 1 }}
	}
	registry := targets.NewRegistry(options)
	framework.RunInTest(t, registry.Start)
	return registry
}

// Connect returns a connection, which need not be up.
func Connect(t testing.TB, registry *targets.Registry, syncTarget types.UID, kubeconfig []byte, limits kcp.Limits) (connection *targets.Connection) {
	t.Helper()
	if tunnelled() {
		return connectTunnel(t, registry, syncTarget, kubeconfig, limits)
	}
	return ConnectDirectly(t, registry, syncTarget, kubeconfig, limits)
}

// ConnectDirectly is [Connect] for a test about what the hub verifies of a server, since that is done by the end of a tunnel.
func ConnectDirectly(t testing.TB, registry *targets.Registry, syncTarget types.UID, kubeconfig []byte, limits kcp.Limits) (connection *targets.Connection) {
	t.Helper()
	suite.Eventually(t, func(g gomega.Gomega) {
		var err error
		connection, err = registry.Connect(syncTarget, kubeconfig, limits)
		if err != nil && !errors.Is(err, targets.ErrNotRunning) {
			t.Fatal(err)
		}
		// The registry takes a moment to start.
		g.Expect(err).NotTo(gomega.HaveOccurred())
	})
	return connection
}

// ConnectToTarget returns a connection to the target of the package, which is up.
func ConnectToTarget(t testing.TB, fieldManager string, syncTarget types.UID) *targets.Connection {
	t.Helper()
	kubeconfig := suite.ReadFile(t, suite.Target(t).Kubeconfig)
	connection := Connect(t, NewRegistry(t, targets.Options{FieldManager: fieldManager}), syncTarget, kubeconfig, kcp.Limits{})
	suite.WaitUntil(t, "the target is up", connection.Health.IsUp)
	return connection
}

// Unreachable returns a kubeconfig for an address that nothing listens on.
func Unreachable(t testing.TB) []byte {
	t.Helper()
	return suite.Kubeconfig(t, "https://127.0.0.1:1", nil, "none")
}

// KCP returns the hub's access to kcp.
func KCP(t testing.TB, kubeconfig []byte) *kcp.ConfigProvider {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	access, err := kcp.Load(path, kcp.Limits{QPS: 1000, Burst: 2000})
	if err != nil {
		t.Fatal(err)
	}
	return access
}

// Bootstrap prepares a provider workspace for the hub.
func Bootstrap(t testing.TB, server *servers.KCP, workspace string) {
	t.Helper()
	options := bootstrap.Options{Config: server.Workspace, Workspace: workspace, HubUser: servers.HubUser, Report: func(string, string) {}}
	if err := bootstrap.Run(t.Context(), options); err != nil {
		t.Fatal(err)
	}
}
