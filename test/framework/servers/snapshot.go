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
	"os"
)

// Snapshot is a copy of the data of a server, with which it can be put back to the time of the copy, as from a backup. The copy is below
// the directory of the server's options.
type Snapshot struct {
	server string
	dir    string
}

// TakeSnapshot copies the data of the server. A running server is stopped for the copy and then started again.
func (e *Etcd) TakeSnapshot(ctx context.Context) (Snapshot, error) {
	return takeSnapshot(ctx, e.dir, e.Server)
}

// Restore puts the server back to a snapshot and starts it. Clients see its revision go back.
func (e *Etcd) Restore(ctx context.Context, snapshot Snapshot) error {
	return restore(ctx, snapshot, e.dir, e.Server)
}

// TakeSnapshot copies the data of kcp's embedded etcd. A running kcp is stopped for the copy and then started again.
func (k *KCP) TakeSnapshot(ctx context.Context) (Snapshot, error) {
	return takeSnapshot(ctx, k.etcdDir(), k.Server)
}

// Restore puts kcp's embedded etcd back to a snapshot and starts kcp. Users, tokens and certificates stay as they are.
func (k *KCP) Restore(ctx context.Context, snapshot Snapshot) error {
	return restore(ctx, snapshot, k.etcdDir(), k.Server)
}

// errSharedEtcd means that the data of other targets would be put back too.
var errSharedEtcd = errors.New("the target has no etcd of its own")

// TakeSnapshot copies the data of the target's own etcd. Running servers are stopped for the copy and then started again.
func (t *Target) TakeSnapshot(ctx context.Context) (Snapshot, error) {
	if t.ownEtcd == nil {
		return Snapshot{}, fmt.Errorf("take a snapshot of %s: %w", t.Name, errSharedEtcd)
	}
	return takeSnapshot(ctx, t.ownEtcd.dir, t.allServers()...)
}

// Restore puts the target's own etcd back to a snapshot and starts the servers that ran. API servers keep objects in memory, so they start
// again too, as in any restore of a cluster.
func (t *Target) Restore(ctx context.Context, snapshot Snapshot) error {
	if t.ownEtcd == nil {
		return fmt.Errorf("restore %s: %w", t.Name, errSharedEtcd)
	}
	return restore(ctx, snapshot, t.ownEtcd.dir, t.allServers()...)
}

// takeSnapshot copies a data directory while the servers are stopped, which are given in the order in which they stop.
func takeSnapshot(ctx context.Context, data string, all ...*Server) (Snapshot, error) {
	last := all[len(all)-1]
	dir, err := last.opts.dataDir("snapshots")
	if err == nil {
		dir, err = os.MkdirTemp(dir, last.name+"-")
	}
	if err == nil {
		err = whileStopped(ctx, all, func() error { return os.CopyFS(dir, os.DirFS(data)) })
	}
	if err != nil {
		return Snapshot{}, fmt.Errorf("take a snapshot of %s: %w", last.name, err)
	}
	return Snapshot{server: last.name, dir: dir}, nil
}

// restore replaces a data directory while the servers are stopped. The last server runs afterwards in any case.
func restore(ctx context.Context, snapshot Snapshot, data string, all ...*Server) error {
	last := all[len(all)-1]
	if snapshot.server != last.name {
		return fmt.Errorf("restore %s: the snapshot is of %q", last.name, snapshot.server)
	}
	err := whileStopped(ctx, all, func() error {
		return errors.Join(os.RemoveAll(data), os.CopyFS(data, os.DirFS(snapshot.dir)))
	})
	if err != nil {
		return fmt.Errorf("restore %s: %w", last.name, err)
	}
	if running, err := last.running(); running != nil || err != nil {
		return err
	}
	return last.Start(ctx)
}

// whileStopped stops the servers that run, does the work, and starts these servers in the reverse order. Only the last, which has the data,
// ends in its own time: an API server that has watches would take long.
func whileStopped(ctx context.Context, all []*Server, work func() error) error {
	var stopped []*Server
	for i, server := range all {
		running, err := server.running()
		switch {
		case err != nil || running == nil:
		case i == len(all)-1:
			err = server.Stop()
		default:
			err = server.Kill9()
		}
		if err != nil {
			return err
		}
		if running != nil {
			stopped = append([]*Server{server}, stopped...)
		}
	}
	if err := work(); err != nil {
		return err
	}
	for _, server := range stopped {
		if err := server.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}
