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

package framework

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/synchub-dev/synchub/test/framework/servers"
)

// sharedStartTimeout is the timeout for the start of one server.
const sharedStartTimeout = 5 * time.Minute

// PackageServers are the servers that the tests of one package share. The zero value is ready for [ServerOnce].
type PackageServers struct {
	lock  sync.Mutex
	dir   string
	stops []func() error
}

// ServerOnce returns a function that starts a server at its first call, and later returns the same server. The function
// fails the test if the server cannot be started.
func ServerOnce[T interface{ Stop() error }](shared *PackageServers, start func(context.Context, servers.Options) (T, error)) func(testing.TB) T {
	once := sync.OnceValues(func() (server T, err error) {
		options, err := shared.options()
		if err != nil {
			return server, err
		}
		ctx, cancel := context.WithTimeout(context.Background(), sharedStartTimeout)
		defer cancel()
		if server, err = start(ctx, options); err != nil {
			return server, err
		}
		shared.lock.Lock()
		defer shared.lock.Unlock()
		shared.stops = append(shared.stops, server.Stop)
		return server, nil
	})
	return func(t testing.TB) T {
		t.Helper()
		server, err := once()
		if err != nil {
			t.Fatal(err)
		}
		return server
	}
}

// options returns the options for a server. The first call creates the directory of all servers.
func (s *PackageServers) options() (servers.Options, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	root, err := RepositoryRoot()
	if err == nil && s.dir == "" {
		s.dir, err = os.MkdirTemp("", "synchub-test-")
	}
	return servers.Options{Dir: s.dir, Bin: filepath.Join(root, "bin")}, err
}

// Run runs the tests of the package, stops the servers, and returns the exit code for TestMain. If a test has failed, Run
// keeps the files of the servers.
func (s *PackageServers) Run(m *testing.M) int {
	code := m.Run()
	var err error
	for _, stop := range s.stops {
		err = errors.Join(err, stop())
	}
	if code != 0 {
		fmt.Fprintln(os.Stderr, "the files of the servers are in", s.dir)
	} else if s.dir != "" {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}
