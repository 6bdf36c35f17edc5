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

package servers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	loopback = "127.0.0.1"

	// startLimit is generous: a kcp on busy cores has needed 90 seconds.
	startLimit = 4 * time.Minute
	stopLimit  = 30 * time.Second
	pollEvery  = 100 * time.Millisecond
	logLines   = 25

	// startAttempts limits how often a server is started with other ports because another process took one of them.
	startAttempts = 5
)

// relaxedGC trades memory for less garbage collection, which was a fifth of kcp's CPU time in a test suite.
const relaxedGC = "GOGC=400"

var (
	errPortTaken = errors.New("a port is taken")
	errExternal  = errors.New("another process started this server, and only that one can signal or start it")
)

// Server is a process with an address. It keeps its ports, its data and its credentials when it is started again.
type Server struct {
	name   string
	opts   Options
	ports  []int
	launch launch
	// moreArgs are further arguments of the command.
	moreArgs []string
	// external is true if another process started the server; see OpenEnvironment.
	external bool

	mu      sync.Mutex
	process *Process
}

// launch is the command of a server, and how to check that it is ready.
type launch struct {
	program string
	args    []string
	env     []string
	ready   func(context.Context) error
}

// startServer chooses free ports, calls plan for the command, and returns when the server is ready.
func startServer(ctx context.Context, opts Options, name string, ports int, plan func(ports []int) (launch, error)) (*Server, error) {
	for attempt := 1; ; attempt++ {
		chosen, err := freePorts(ports)
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", name, err)
		}
		s := &Server{name: name, opts: opts, ports: chosen}
		if s.launch, err = plan(chosen); err != nil {
			return nil, fmt.Errorf("prepare %s: %w", name, err)
		}
		if !opts.AsInstalled {
			s.launch.env = append([]string{relaxedGC}, s.launch.env...)
		}
		begun := time.Now()
		err = s.Start(ctx)
		if err == nil {
			opts.logf("%s is ready after %s", name, time.Since(begun).Round(time.Millisecond))
			return s, nil
		}
		if !errors.Is(err, errPortTaken) || attempt == startAttempts {
			return nil, err
		}
		opts.logf("%s found a port in use, and tries other ports", name)
	}
}

// Start starts a stopped server again and returns when it is ready. After an error nothing runs.
func (s *Server) Start(ctx context.Context) error {
	if s.external {
		return fmt.Errorf("start %s: %w", s.name, errExternal)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil && !s.process.Ended() {
		return fmt.Errorf("start %s: it runs already as pid %d", s.name, s.process.Pid())
	}
	path, err := s.opts.program(s.launch.program)
	if err != nil {
		return err
	}
	if s.process, err = Start(s.opts, s.name, path, slices.Concat(s.launch.args, s.moreArgs), s.launch.env); err != nil {
		return err
	}
	if err := s.awaitReady(ctx); err != nil {
		return errors.Join(err, s.process.Kill9())
	}
	return nil
}

func (s *Server) awaitReady(ctx context.Context) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollEvery, startLimit, true, func(ctx context.Context) (bool, error) {
		if s.process.Ended() {
			return false, s.deathReason()
		}
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		last = s.launch.ready(ctx)
		return last == nil, nil
	})
	if err == nil && s.process.Ended() {
		err = s.deathReason()
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s did not become ready: %w; the end of %s:\n%s",
		s.name, errors.Join(err, last), s.process.LogFile(), s.process.LogTail(logLines))
}

func (s *Server) deathReason() error {
	if strings.Contains(s.process.LogTail(1000), "address already in use") {
		return errPortTaken
	}
	return fmt.Errorf("it ended with exit code %d", s.process.command.ProcessState.ExitCode())
}

// Stop ends the server with SIGTERM, or with SIGKILL if that does not suffice. Calling it twice is harmless.
func (s *Server) Stop() error {
	process, err := s.running()
	if process == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	_, err = process.Terminate(ctx)
	return err
}

// Kill9 ends the server with SIGKILL, as a power cut would.
func (s *Server) Kill9() error {
	process, err := s.running()
	if process == nil {
		return err
	}
	return process.Kill9()
}

// Restart stops the server, starts it with the same ports and data, and returns when it is ready.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.Stop(); err != nil {
		return err
	}
	return s.Start(ctx)
}

// RestartWith kills the server and starts it with more arguments, which it keeps until the next call. An API server that has watches does not
// end soon otherwise.
func (s *Server) RestartWith(ctx context.Context, args ...string) error {
	if err := s.Kill9(); err != nil {
		return err
	}
	s.mu.Lock()
	s.moreArgs = args
	s.mu.Unlock()
	return s.Start(ctx)
}

// Pause makes the server a black hole: connections stay open, new ones are accepted, and no request is answered.
func (s *Server) Pause() error {
	process, err := s.running()
	if process == nil {
		return errors.Join(fmt.Errorf("pause %s: it is not running", s.name), err)
	}
	return process.Pause()
}

// Resume ends a pause.
func (s *Server) Resume() error {
	process, err := s.running()
	if process == nil {
		return errors.Join(fmt.Errorf("resume %s: it is not running", s.name), err)
	}
	return process.Resume()
}

// Ports returns the ports on which the server listens while it runs.
func (s *Server) Ports() []int { return slices.Clone(s.ports) }

// Process returns the latest run of the server.
func (s *Server) Process() *Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// running returns the process of a running server, or nil.
func (s *Server) running() (*Process, error) {
	if s.external {
		return nil, fmt.Errorf("%s: %w", s.name, errExternal)
	}
	if process := s.Process(); process != nil && !process.Ended() {
		return process, nil
	}
	return nil, nil
}
