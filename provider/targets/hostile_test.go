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
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
	"github.com/synchub-dev/synchub/test/fixtures"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// trapServer has the traps to which a kubeconfig could lead the hub.
type trapServer struct {
	// dir is a directory that stays empty as long as no program has run.
	dir string
	// program creates a file, and pipe is a file whose opening blocks.
	program, pipe string
	// address is the address of a listener, and dialled counts its connections.
	address string
	dialled atomic.Int64
}

func newTrapServer(t *testing.T) *trapServer {
	t.Helper()
	g := NewWithT(t)
	tools := t.TempDir()
	set := &trapServer{dir: t.TempDir(), program: filepath.Join(tools, "program"), pipe: filepath.Join(tools, "pipe")}
	script := fmt.Sprintf("#!/bin/sh\n: > %s/ran\n", set.dir)
	g.Expect(os.WriteFile(set.program, []byte(script), 0o755)).To(Succeed()) //nolint:gosec // it must be one that runs
	g.Expect(syscall.Mkfifo(set.pipe, 0o600)).To(Succeed())
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it ends with the test
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = listener.Close() })
	set.address = listener.Addr().String()
	go func() {
		for {
			came, err := listener.Accept()
			if err != nil {
				return
			}
			set.dialled.Add(1)
			_ = came.Close()
		}
	}()
	return set
}

// expectUntouched fails if the hub has run the program, opened the pipe or dialled the listener.
func (s *trapServer) expectUntouched(g Gomega) {
	left, err := os.ReadDir(s.dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(left).To(BeEmpty(), "a program ran")
	_, err = os.OpenFile(s.pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	g.Expect(errors.Is(err, syscall.ENXIO)).To(BeTrue(), "the file is open for reading: %v", err)
	g.Expect(s.dialled.Load()).To(BeZero(), "an address was dialled")
}

// The hub runs no program, reads no file and dials no address of a hostile kubeconfig, and closes an existing connection.
func TestHostileKubeconfigsAreNeverActedOn(t *testing.T) {
	set := newTrapServer(t)
	cluster := "server: https://" + set.address
	for name, test := range map[string]struct{ kubeconfig, field string }{
		"a program":                 {fixtures.Kubeconfig(cluster, "exec: {apiVersion: client.authentication.k8s.io/v1, command: "+set.program+", interactiveMode: Never}"), "users.user.exec"},
		"a program beside a token":  {fixtures.Kubeconfig(cluster, goodUser+", exec: {apiVersion: client.authentication.k8s.io/v1, command: "+set.program+", interactiveMode: Never}"), "users.user.exec"},
		"a provider with a program": {fixtures.Kubeconfig(cluster, "auth-provider: {name: gcp, config: {cmd-path: "+set.program+"}}"), "users.user.auth-provider"},
		"a token in a file":         {fixtures.Kubeconfig(cluster, "tokenFile: "+set.pipe), "users.user.tokenFile"},
		"a certificate in a file":   {fixtures.Kubeconfig(cluster, "client-certificate: "+set.pipe+", client-key: "+set.pipe), "users.user.client-certificate"},
		"a key in a file":           {fixtures.Kubeconfig(cluster, "client-certificate-data: "+secretData+", client-key: "+set.pipe), "users.user.client-key"},
		"an authority in a file":    {fixtures.Kubeconfig(cluster+", certificate-authority: "+set.pipe, goodUser), "clusters.cluster.certificate-authority"},
		"a proxy":                   {fixtures.Kubeconfig("server: https://192.0.2.1, proxy-url: 'http://"+set.address+"'", goodUser), "clusters.cluster.proxy-url"},
		"no verification":           {fixtures.Kubeconfig(cluster+", insecure-skip-tls-verify: true", goodUser), "clusters.cluster.insecure-skip-tls-verify"},
		"plain http":                {fixtures.Kubeconfig("server: http://"+set.address, goodUser), "clusters.cluster.server"},
		"impersonation":             {fixtures.Kubeconfig(cluster, goodUser+", as: admin"), "users.user.as"},
		"a metadata service":        {fixtures.Kubeconfig("server: https://169.254.169.254", goodUser), "clusters.cluster.server"},
		"a denied network":          {fixtures.Kubeconfig("server: https://127.66.0.1:1", goodUser), "clusters.cluster.server"},
		"aliases":                   {"users: &users [*users]", "its syntax"},
		"too large":                 {fixtures.Kubeconfig(cluster, goodUser) + strings.Repeat("#", kubeconfig.MaxSize), "its size"},
		"a malformed one":           {fixtures.Kubeconfig(cluster, goodUser) + "}", "its syntax"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			registry := newRegistry(t.Context(), t, clock.RealClock{})
			denied, err := kubeconfig.ParseDeniedNetworks([]string{"127.66.0.0/16"})
			g.Expect(err).NotTo(HaveOccurred())
			registry.options.DeniedNetworks = denied
			_, err = registry.Connect(syncTarget, []byte(test.kubeconfig), kcp.Limits{})
			var refused *kubeconfig.InvalidError
			g.Expect(errors.As(err, &refused)).To(BeTrue(), "%v", err)
			g.Expect(refused.Field).To(Equal(test.field))
			_, ok := registry.Get(syncTarget)
			g.Expect(ok).To(BeFalse())
			set.expectUntouched(g)
		})
	}
}

// The address of a name is checked at each dial: the hub does not dial a denied address, and reports the reason.
func TestNamesOfDeniedAddressesAreNotDialled(t *testing.T) {
	g := NewWithT(t)
	set := newTrapServer(t)
	registry := newRegistry(t.Context(), t, clock.RealClock{})
	denied, err := kubeconfig.ParseDeniedNetworks([]string{"127.0.0.0/8", "::1/128"})
	g.Expect(err).NotTo(HaveOccurred())
	registry.options.DeniedNetworks = denied
	server := strings.Replace(set.address, "127.0.0.1", "localhost", 1)
	connection, err := registry.Connect(syncTarget, []byte(fixtures.Kubeconfig("server: https://"+server, goodUser)), kcp.Limits{})
	g.Expect(err).NotTo(HaveOccurred())
	suite.Eventually(t, func(g Gomega) { g.Expect(connection.Health.Get().Reason).To(Equal(ReasonDenied)) })
	g.Expect(connection.Health.Get().Message).To(ContainSubstring("which this hub does not connect to"))
	set.expectUntouched(g)

	// Without the denied network the same name is dialled: otherwise this test proves nothing.
	free := newRegistry(t.Context(), t, clock.RealClock{})
	_, err = free.Connect(syncTarget, []byte(fixtures.Kubeconfig("server: https://"+server, goodUser)), kcp.Limits{})
	g.Expect(err).NotTo(HaveOccurred())
	suite.Eventually(t, func(g Gomega) { g.Expect(set.dialled.Load()).NotTo(BeZero()) })
}
