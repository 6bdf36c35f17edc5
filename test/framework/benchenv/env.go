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

package benchenv

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/fleet"
	"github.com/synchub-dev/synchub/test/framework/installation"
	"github.com/synchub-dev/synchub/test/framework/servers"
)

const (
	// Hosting is the name of the hosting cluster.
	Hosting = "hosting"
	// LeaseDuration is the duration of the hub's Lease.
	LeaseDuration = 15 * time.Second
	// stopTimeout is the timeout for stopping a hub.
	stopTimeout = time.Minute
)

// chartFlags are the chart's flags where the framework's defaults differ: shorter leases and more logs.
var chartFlags = []string{
	"--leader-election-lease-duration", LeaseDuration.String(), "--leader-election-renew-deadline", "10s",
	"--log-level", "info", "--log-format", "json",
}

// Options configure an environment.
type Options struct {
	// Name is the name of the directory below logs.
	Name string
	// Clusters are clusters in addition to the hosting cluster.
	Clusters map[string]servers.TargetOptions
	// IdleRequests are the requests to targets of the fleet that count as idle.
	IdleRequests fleet.IdleRequests
	// HubArguments are given to each replica.
	HubArguments []string
	// Progress receives progress messages.
	Progress func(string)
}

// Env is an installation with one ready replica and no SyncTargets. Its fleet has no members yet.
type Env struct {
	*framework.Suite
	Installation *installation.Installation
	Inventory    *installation.Inventory
	Fleet        *fleet.Fleet
	Hub          *installation.Hub
	// ProfilingAddress is the address at which the hub serves its profiles.
	ProfilingAddress string

	targetsKCP *servers.KCP
	dir        string
}

// New returns an environment. Call [Env.Close] even after an error.
func New(ctx context.Context, options Options) (*Env, error) {
	s := &Env{}
	clusters := map[string]servers.TargetOptions{Hosting: {}}
	maps.Copy(clusters, options.Clusters)
	var err error
	if s.Suite, err = framework.StartSuite(ctx, options.Name, servers.Options{Log: options.Progress, AsInstalled: true}, clusters); err != nil {
		return s, err
	}
	second := s.Options
	s.dir = filepath.Join(s.Options.Dir, "logs", "targets")
	second.Dir = s.dir
	if s.targetsKCP, err = servers.StartKCP(ctx, second); err != nil {
		return s, err
	}
	if s.Fleet, err = fleet.New(ctx, s.targetsKCP, "fleet", options.IdleRequests); err != nil {
		return s, err
	}
	s.Installation, err = installation.New(ctx, s.Options, s.KCP, s.Targets[Hosting], filepath.Join(s.Options.Bin, "synchub"), 1)
	if err != nil {
		return s, err
	}
	s.Installation.HubArguments = options.HubArguments
	if err := s.Installation.EnableTunnels(); err != nil {
		return s, err
	}
	port, err := servers.FreePort()
	if err != nil {
		return s, err
	}
	s.ProfilingAddress = fmt.Sprintf("127.0.0.1:%d", port)
	if err := s.StartHub(ctx); err != nil {
		return s, err
	}
	s.Inventory, err = s.Installation.NewInventory(ctx, "inventory")
	return s, err
}

// StartHub starts a replica and returns when it is ready.
func (s *Env) StartHub(ctx context.Context) error {
	hub, err := s.StartReplica("--profiling=" + s.ProfilingAddress)
	if err != nil {
		return err
	}
	s.Hub = hub
	return hub.AwaitReady(ctx)
}

// StartReplica starts an additional replica, without waiting until it is ready.
func (s *Env) StartReplica(args ...string) (*installation.Hub, error) {
	return s.Installation.StartHub(append(slices.Clone(chartFlags), args...)...)
}

// StopHub stops the replica, which releases its lease.
func (s *Env) StopHub(ctx context.Context) error {
	if s.Hub == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	_, err := s.Hub.Terminate(ctx)
	s.Hub = nil
	return err
}

// ProcessorTime returns the CPU time of all servers so far, without the hub.
func (s *Env) ProcessorTime() (total time.Duration, err error) {
	for _, server := range append(s.Servers(), s.targetsKCP.Server) {
		used, err := server.Process().ProcessorTime()
		if err != nil {
			return 0, err
		}
		total += used
	}
	return total, nil
}

// Close stops all servers. If the benchmark failed, it keeps the logs and returns their directory.
func (s *Env) Close(ctx context.Context, failed bool) (logs string, err error) {
	errs := []error{s.StopHub(context.WithoutCancel(ctx))}
	if s.Fleet != nil {
		errs = append(errs, s.Fleet.Close())
	}
	if s.targetsKCP != nil {
		errs = append(errs, s.targetsKCP.Stop(), os.RemoveAll(filepath.Join(s.dir, "kcp")))
	}
	if s.Suite != nil {
		logs, err = s.Finish(failed)
		errs = append(errs, err)
	}
	return logs, errors.Join(errs...)
}
