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

package objectsync

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	gosync "sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/transform"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/servers"
)

const (
	startLimit = 5 * time.Minute
	// patience is how long a test waits for what must happen.
	patience = 3 * time.Minute
	pollEach = 20 * time.Millisecond
)

// shared is the cluster of this package, started by the first test that needs it.
var shared struct {
	gosync.Mutex
	dir    string
	target *servers.Target
}

func TestMain(m *testing.M) {
	result := m.Run()
	if err := cleanUp(result == 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		result = 1
	}
	os.Exit(result)
}

// cleanUp stops the servers. After a failure their files stay.
func cleanUp(passed bool) error {
	shared.Lock()
	defer shared.Unlock()
	if shared.target == nil {
		return nil
	}
	err := shared.target.Stop()
	if !passed {
		fmt.Fprintln(os.Stderr, "the files of the servers are in", shared.dir)
		return err
	}
	return errors.Join(err, os.RemoveAll(shared.dir))
}

// startTarget returns the cluster of this package.
func startTarget(t testing.TB) *servers.Target {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.target == nil {
		if err := startShared(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return shared.target
}

// startShared starts the cluster, which outlives the test that needs it first.
func startShared(ctx context.Context) error {
	root, err := framework.RepositoryRoot()
	if err != nil {
		return err
	}
	if shared.dir, err = os.MkdirTemp("", "synchub-sync-"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	options := servers.Options{Dir: shared.dir, Bin: filepath.Join(root, "bin")}
	shared.target, err = servers.StartTarget(ctx, options, "target", servers.TargetOptions{})
	return err
}

// put applies manifests as somebody who is not the hub.
func put(t testing.TB, manifest string) {
	t.Helper()
	if err := framework.Apply(t.Context(), startTarget(t).Config, manifest); err != nil {
		t.Fatal(err)
	}
}

// runs counts the names that were asked for.
var runs atomic.Int64

// unique returns a name that no test, and no run of one, has used.
func unique(name string) string { return fmt.Sprintf("%s-%d", name, runs.Add(1)) }

// administrator returns a client that is not the hub's.
func administrator(t testing.TB) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(startTarget(t).Config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// eventually waits until the condition holds.
func eventually(t testing.TB, what string, condition func(ctx context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), pollEach, patience, true, condition); err != nil {
		t.Fatalf("waiting until %s: %v", what, err)
	}
}

// connect returns the hub's connection to the cluster, which is up.
func connect(t testing.TB) *targets.Connection {
	t.Helper()
	kubeconfig, err := os.ReadFile(startTarget(t).Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	connection := connectBy(t, kubeconfig)
	eventually(t, "the target is up", func(context.Context) (bool, error) { return connection.IsUp(), nil })
	return connection
}

// connectAway returns a connection to a target that is away.
func connectAway(t *testing.T) *targets.Connection {
	t.Helper()
	return connectBy(t, []byte(`{"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
		"clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}], "users": [{"name": "u", "user": {"token": "none"}}]}`))
}

func connectBy(t testing.TB, kubeconfig []byte) (connection *targets.Connection) {
	t.Helper()
	registry := targets.NewRegistry(targets.Options{
		FieldManager: testFieldManager, Limits: kcp.Limits{QPS: 1000, Burst: 2000}, Clock: clock.RealClock{}, Log: logr.Discard(), OnChange: func(types.UID) {},
	})
	framework.RunInTest(t, registry.Start)
	eventually(t, "there is a connection", func(context.Context) (ok bool, err error) {
		connection, err = registry.Connect(testOwner.SyncTarget, kubeconfig, kcp.Limits{})
		return err == nil, nil
	})
	return connection
}

// targetHarness is a controller as far as it writes to a target, for one resource.
type targetHarness struct {
	*Controller
	t      *testing.T
	target *targetResource
}

func newTargetHarness(t *testing.T, connection *targets.Connection, resource schema.GroupVersionResource, kind string, policies plan.Resource) *targetHarness {
	policies.GroupVersionResource, policies.Kind = resource, kind
	controller := &Controller{
		Options:      Options{Resource: policies, Owner: testOwner, Mailbox: "mailbox", Connection: connection, OnChange: func() {}},
		fieldManager: testFieldManager,
		planner:      plan.Planner{Resource: policies, Owner: testOwner, Down: transform.Down{Owner: testOwner, Mailbox: "mailbox", Resource: resource.GroupResource(), Hasher: ownership.NewHasher([]byte("key"))}},
		states:       newKeyStates(clock.RealClock{}),
	}
	return &targetHarness{controller, t, &targetResource{TargetAPI: plan.TargetAPI{GroupVersionResource: resource, Kind: kind}}}
}

// observeTarget returns where an object is, with what there is to decide by.
func (h *targetHarness) observeTarget(object *unstructured.Unstructured) plan.Copy {
	here := plan.Copy{API: h.target.TargetAPI, Key: keyOf(object), Object: object}
	here.Observed, _ = h.observeObject(object)
	return here
}

// applySource makes the object on the target what the source in the mailbox says, as if the target were known to hold nothing of it.
func (h *targetHarness) applySource(source *unstructured.Unstructured, policy ownership.Policy) error {
	h.t.Helper()
	desired := h.desired(source, policy)
	return h.createOnTarget(h.t.Context(), plan.Copy{API: h.target.TargetAPI, Key: keyOf(desired.Object)}, desired)
}

// desired returns what the target must hold for a source in the mailbox.
func (h *targetHarness) desired(source *unstructured.Unstructured, policy ownership.Policy) *transform.Desired {
	h.t.Helper()
	desired, err := h.planner.Down.Desired(source, transform.SyncSpec{Policy: policy})
	if err != nil {
		h.t.Fatal(err)
	}
	return desired
}

// get reads an object from the target.
func (h *targetHarness) get(object *unstructured.Unstructured) *unstructured.Unstructured {
	h.t.Helper()
	found, err := h.Connection.Get(h.t.Context(), h.Resource.GroupVersionResource, keyOf(object))
	if err != nil {
		h.t.Fatal(err)
	}
	return found
}
