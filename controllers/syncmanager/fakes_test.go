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

package syncmanager

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	configv1alpha1 "github.com/synchub-dev/synchub/apis/config/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/leadership"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/test/framework/connections"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

const florin = types.UID("florin-uid")

// fakeWrittenResourceStore stores written resources in memory, and fails on demand.
type fakeWrittenResourceStore struct {
	manager *Manager
	records []string
	// controllersWhileStored are the controllers that ran while the written resources were stored last.
	controllersWhileStored []string
	fail                   error
}

func (n *fakeWrittenResourceStore) store(_ context.Context, syncTarget types.UID, resources WrittenResources) error {
	n.controllersWhileStored = n.manager.running(syncTarget)
	if n.fail != nil {
		return n.fail
	}
	n.records = append(n.records, formatWritten(resources))
	return nil
}

// running returns the names of the running controllers' resources.
func (m *Manager) running(syncTarget types.UID) []string {
	names := []string{}
	found, ok := m.get(syncTarget)
	if !ok {
		return names
	}
	for _, controller := range found.controllers() {
		names = append(names, controller.Resource.GroupResource().String())
	}
	slices.Sort(names)
	return names
}

// newManager returns a manager that cannot observe any mailbox, and has only the data that a test sets.
func newManager(t *testing.T) (*Manager, *fakeWrittenResourceStore) {
	t.Helper()
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	notes := &fakeWrittenResourceStore{}
	manager := New(Dependencies{
		Mailboxes:             mailboxes.New(mailboxes.Options{Workspace: "root:synchub", Export: "mailbox", Resources: ConfigResources, Clock: clock, Log: logr.Discard()}),
		StoreWrittenResources: notes.store, Hub: "hub", Hasher: ownership.NewHasher([]byte("key")), Clock: clock, Log: logr.Discard(),
		Role: leadership.OfLeader(nil, nil),
	}, &configv1alpha1.HubConfiguration{})
	notes.manager = manager
	// The tests call Reconcile themselves.
	t.Cleanup(manager.stopAll)
	return manager, notes
}

// passWith returns a pass for a SyncTarget in which mailboxes have these resources.
func passWith(manager *Manager, state *targetState, published ...plan.Resource) *pass {
	pass := manager.newPass(state)
	pass.published = published
	return pass
}

// connection returns a connection to a target that is down.
func connection(t *testing.T) *targets.Connection {
	t.Helper()
	return connectionTo(t, "https://127.0.0.1:1")
}

// connectionTo returns a connection to a server. Without a certificate, the connection does not trust the server.
func connectionTo(t *testing.T, server string, certificate ...byte) *targets.Connection {
	t.Helper()
	registry := connections.NewRegistry(t, targets.Options{Clock: testclock.NewFakeClock(time.Unix(1000, 0))})
	return connections.Connect(t, registry, florin, suite.Kubeconfig(t, server, certificate, "none"), kcp.Limits{})
}
