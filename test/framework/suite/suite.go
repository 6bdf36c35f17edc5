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

package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/servers"
)

const (
	startTimeout = 5 * time.Minute
	pollInterval = 20 * time.Millisecond

	// Timeout is how long a test waits for an expected event, however busy the machine is.
	Timeout = 3 * time.Minute
)

// shared is what the tests of the package share.
var shared struct {
	lock sync.Mutex
	// options are the options of the servers. Their Dir is empty until Main is called.
	options servers.Options
	// prepared is true once the files of an earlier run are removed.
	prepared bool
	// cleanups are called in reverse order.
	cleanups []func() error
}

// Main is the body of a TestMain. It runs the tests, with a generous default timeout of Gomega's Eventually, calls the
// functions that were given to Cleanup, and ends the process. After a failure it keeps the logs of the servers.
func Main(m *testing.M) {
	gomega.SetDefaultEventuallyTimeout(Timeout)
	gomega.SetDefaultEventuallyPollingInterval(pollInterval)
	gomega.EnforceDefaultTimeoutsWhenUsingContexts()
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	root, err := framework.RepositoryRoot()
	if err != nil {
		return 0, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return 0, err
	}
	name, err := filepath.Rel(root, dir)
	if err != nil {
		return 0, err
	}
	shared.options = framework.ServerOptions(root, strings.ReplaceAll(name, string(filepath.Separator), "-"))
	code = m.Run()
	var errs []error
	for _, cleanup := range slices.Backward(shared.cleanups) {
		errs = append(errs, cleanup())
	}
	return code, errors.Join(append(errs, removeFiles(code != 0))...)
}

func removeFiles(keepLogs bool) error {
	if !shared.prepared {
		return nil
	}
	logs, err := framework.RemoveFiles(shared.options.Dir, keepLogs)
	if logs != "" {
		fmt.Fprintln(os.Stderr, "the logs of the servers are in", logs)
	}
	return err
}

// Options returns the options of servers of this package. The first call removes the files of an earlier run.
func Options(t testing.TB) servers.Options {
	t.Helper()
	shared.lock.Lock()
	defer shared.lock.Unlock()
	if shared.options.Dir == "" {
		t.Fatal("TestMain must call suite.Main")
	}
	if !shared.prepared {
		if err := os.RemoveAll(shared.options.Dir); err != nil {
			t.Fatal(err)
		}
		shared.prepared = true
	}
	return shared.options
}

// Cleanup has Main call a function after all tests, the functions given last first.
func Cleanup(cleanup func() error) {
	shared.lock.Lock()
	defer shared.lock.Unlock()
	shared.cleanups = append(shared.cleanups, cleanup)
}

// Run runs a function until all tests have ended, and then waits for its return.
func Run(run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	Cleanup(func() error {
		cancel()
		return <-ended
	})
}

// Shared returns a function that returns the same value to all tests of the package. The test that calls it first creates
// the value. If that fails, the tests of all later callers fail too. Servers and goroutines that create starts must outlive its test: see Run and Cleanup.
func Shared[T any](create func(t testing.TB) T) func(t testing.TB) T {
	var once sync.Once
	var value T
	created := false
	return func(t testing.TB) T {
		t.Helper()
		once.Do(func() {
			value = create(t)
			created = true
		})
		if !created {
			t.Fatal("the first test that needed this failed to create it")
		}
		return value
	}
}

// Start calls a function that starts a server, and stops the server after all tests.
func Start[S interface{ Stop() error }](t testing.TB, start func(ctx context.Context, options servers.Options) (S, error)) S {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	server, err := start(ctx, Options(t))
	if err != nil {
		t.Fatal(err)
	}
	Cleanup(server.Stop)
	return server
}

// The servers that most packages need.
var (
	kcp = Shared(func(t testing.TB) *servers.KCP {
		return Start(t, func(ctx context.Context, options servers.Options) (*servers.KCP, error) {
			return servers.StartKCP(ctx, options)
		})
	})
	etcd = Shared(func(t testing.TB) *servers.Etcd {
		return Start(t, func(ctx context.Context, options servers.Options) (*servers.Etcd, error) {
			return servers.StartEtcd(ctx, options, "etcd")
		})
	})
	target = Shared(func(t testing.TB) *servers.Target { return StartTarget(t, "target", servers.TargetOptions{}) })
)

// KCP returns the kcp of the package.
func KCP(t testing.TB) *servers.KCP {
	t.Helper()
	return kcp(t)
}

// Target returns the target of the package. It has no controllers.
func Target(t testing.TB) *servers.Target {
	t.Helper()
	return target(t)
}

// StartTarget starts another target, which stops after all tests. All targets of the package share one etcd.
func StartTarget(t testing.TB, name string, options servers.TargetOptions) *servers.Target {
	t.Helper()
	options.Etcd = etcd(t)
	return Start(t, func(ctx context.Context, all servers.Options) (*servers.Target, error) {
		return servers.StartTarget(ctx, all, name, options)
	})
}
