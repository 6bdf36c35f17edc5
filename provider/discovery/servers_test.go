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

package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/provider/discovery"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/servers"
)

const (
	startTimeout = 5 * time.Minute
	// eventuallyTimeout is the timeout of waits, enough for a busy machine.
	eventuallyTimeout = 3 * time.Minute
)

// shared are the servers of this package, each started by the first test that needs it.
var shared struct {
	options servers.Options
	cluster func() (*servers.Target, error)
	kcp     func() (*servers.KCP, error)
	// stops are the functions that stop the started servers.
	mu    sync.Mutex
	stops []func() error
}

func TestMain(m *testing.M) {
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := cleanUp(code == 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func prepare() error {
	root, err := framework.RepositoryRoot()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "synchub-definitions-")
	if err != nil {
		return err
	}
	shared.options = servers.Options{Dir: dir, Bin: filepath.Join(root, "bin")}
	shared.cluster = sync.OnceValues(func() (*servers.Target, error) {
		return started(func(ctx context.Context) (*servers.Target, error) {
			return servers.StartTarget(ctx, shared.options, "cluster", servers.TargetOptions{})
		})
	})
	shared.kcp = sync.OnceValues(func() (*servers.KCP, error) {
		return started(func(ctx context.Context) (*servers.KCP, error) { return servers.StartKCP(ctx, shared.options) })
	})
	return nil
}

// started starts a server and adds its Stop to shared.stops.
func started[T interface{ Stop() error }](start func(context.Context) (T, error)) (server T, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if server, err = start(ctx); err != nil {
		return server, err
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.stops = append(shared.stops, server.Stop)
	return server, nil
}

// cleanUp stops the servers. It removes their files only if the tests have passed.
func cleanUp(passed bool) error {
	var errs []error
	for _, stop := range shared.stops {
		errs = append(errs, stop())
	}
	if passed {
		return errors.Join(append(errs, os.RemoveAll(shared.options.Dir))...)
	}
	fmt.Fprintln(os.Stderr, "the files of the servers are in", shared.options.Dir)
	return errors.Join(errs...)
}

// cluster returns the administrator's config for the cluster, without a rate limit.
func cluster(t *testing.T) *rest.Config {
	t.Helper()
	server, err := shared.cluster()
	if err != nil {
		t.Fatal(err)
	}
	return unlimited(server.Config)
}

// kcp returns the administrator's config for kcp, without a workspace.
func kcp(t *testing.T) *rest.Config {
	t.Helper()
	server, err := shared.kcp()
	if err != nil {
		t.Fatal(err)
	}
	return unlimited(server.Config)
}

func unlimited(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	return config
}

// discoveryClient returns a client of a server.
func discoveryClient(t *testing.T, config *rest.Config) *discovery.Client {
	t.Helper()
	client, err := discovery.NewClient(config, nil)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func dynamicClient(t *testing.T, config *rest.Config) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// apply creates or updates the objects of a manifest.
func apply(t *testing.T, config *rest.Config, manifest string) {
	t.Helper()
	if err := framework.Apply(t.Context(), config, manifest); err != nil {
		t.Fatal(err)
	}
}

// eventually waits for at most eventuallyTimeout.
func eventually(t *testing.T, what func(g Gomega)) {
	t.Helper()
	NewWithT(t).Eventually(what).WithContext(t.Context()).WithTimeout(eventuallyTimeout).WithPolling(50 * time.Millisecond).Should(Succeed())
}
