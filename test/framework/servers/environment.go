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
	"path/filepath"
	"regexp"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Environment is one kcp and any number of targets that share one etcd.
type Environment struct {
	KCP *KCP
	// Targets by their names.
	Targets map[string]*Target

	etcd *Etcd
	mu   sync.Mutex
}

// StartEnvironment starts a kcp, with additional hub users if given, and the named targets in parallel. After an error
// nothing runs.
func StartEnvironment(ctx context.Context, opts Options, targets map[string]TargetOptions, moreHubUsers ...string) (*Environment, error) {
	w := &Environment{Targets: map[string]*Target{}}
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		w.KCP, err = StartKCP(groupCtx, opts, moreHubUsers...)
		return err
	})
	group.Go(func() error { return w.startTargets(groupCtx, opts, targets) })
	if err := group.Wait(); err != nil {
		return nil, errors.Join(err, w.Stop())
	}
	return w, nil
}

func (w *Environment) startTargets(ctx context.Context, opts Options, targets map[string]TargetOptions) (err error) {
	if w.etcd, err = StartEtcd(ctx, opts, "etcd"); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for name, options := range targets {
		if options.Etcd == nil {
			options.Etcd = w.etcd
		}
		group.Go(func() error {
			target, err := StartTarget(ctx, opts, name, options)
			if err != nil {
				return err
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.Targets[name] = target
			return nil
		})
	}
	return group.Wait()
}

// Servers returns all servers of the environment, in the order in which they are stopped.
func (w *Environment) Servers() []*Server {
	var all []*Server
	for _, target := range w.Targets {
		all = append(all, target.allServers()...)
	}
	if w.KCP != nil {
		all = append(all, w.KCP.Server)
	}
	if w.etcd != nil {
		all = append(all, w.etcd.Server)
	}
	return all
}

// crash matches the line of a log with which a Go program ends because of an error.
var crash = regexp.MustCompile(`(?m)^(panic|fatal error): `)

// Ended describes the servers that do not run, with the end of their logs. Before Stop, these have ended by themselves.
func (w *Environment) Ended() (ended []string) {
	for _, server := range w.Servers() {
		if process := server.Process(); process != nil && process.Ended() {
			tail := process.LogTail(2000)
			if at := crash.FindStringIndex(tail); at != nil {
				tail = tail[at[0]:min(at[0]+2000, len(tail))]
			} else {
				tail = process.LogTail(15)
			}
			ended = append(ended, fmt.Sprintf("%s: %s\n%s", filepath.Base(process.LogFile()), process.command.ProcessState, tail))
		}
	}
	return ended
}

// Stop stops all servers, each before the servers that it needs. Calling it twice is harmless.
func (w *Environment) Stop() error {
	var errs []error
	for _, server := range w.Servers() {
		errs = append(errs, server.Stop())
	}
	return errors.Join(errs...)
}
