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
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/clock"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/provider/targets/tunnel"
	"github.com/synchub-dev/synchub/provider/targets/tunnel/program"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// tunnelled reports whether the tests run with clusters that open tunnels (see [installation.ConnectionVariable]).
func tunnelled() bool {
	return edgev2alpha1.ConnectionType(os.Getenv(installation.ConnectionVariable)) == edgev2alpha1.ConnectionTunnel
}

// connectTunnel is [Connect] for a cluster that opens a tunnel to the registry. The end of the tunnel uses the kubeconfig.
func connectTunnel(t testing.TB, registry *targets.Registry, syncTarget types.UID, content []byte, limits kcp.Limits) (connection *targets.Connection) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	credential, err := tunnel.NewCredential()
	must(err)
	secret, err := credential.Marshal()
	must(err)
	tokenFile := filepath.Join(t.TempDir(), "token")
	must(os.WriteFile(tokenFile, []byte(credential.Token), 0o600))
	server, authorityFile, serverToken, err := servers.SplitKubeconfig(t.TempDir(), content)
	must(err)
	apiServer, err := program.NewAPIServer(server, authorityFile, serverToken, clock.RealClock{})
	must(err)
	hub, authority := serveTunnels(t, registry)
	client, err := program.NewClient(program.ClientOptions{
		Hub: hub, SyncTarget: string(syncTarget), TokenFile: tokenFile, Authority: authority, APIServer: apiServer, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler),
	})
	must(err)
	suite.Eventually(t, func(g gomega.Gomega) {
		var err error
		connection, err = registry.ConnectTunnel(syncTarget, secret, limits)
		g.Expect(err).NotTo(gomega.HaveOccurred())
	})
	framework.RunInTest(t, client.Run)
	return connection
}

// serveTunnels lets clusters open tunnels to a registry. It returns the URL and the certificate authority of the port.
func serveTunnels(t testing.TB, registry *targets.Registry) (url string, authority []byte) {
	t.Helper()
	authority, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(authority, key)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	framework.RunInTest(t, func(ctx context.Context) error {
		return registry.Tunnels().Serve(ctx, listener, func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil })
	})
	return "https://" + listener.Addr().String(), authority
}
