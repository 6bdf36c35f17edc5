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
	"fmt"
	"net/http"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// unresponsiveTarget is a target that counts as up, and then never responds. It records the requests.
func unresponsiveTarget(t *testing.T) (connection *targets.Connection, asked <-chan string) {
	t.Helper()
	paths := make(chan string, 1000)
	end := make(chan struct{})
	server := suite.ServeTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/version" {
			_, _ = w.Write([]byte(`{"gitVersion": "v1.35.4"}`))
			return
		}
		if framework.AnswerWithoutClusterID(w, r) {
			return
		}
		paths <- r.URL.Path
		select {
		case <-end:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { close(end) })
	connection = connectionTo(t, server.URL, suite.CertificateOf(server)...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := connection.Health.WaitUntilUp(ctx); err != nil {
		t.Fatal(err)
	}
	return connection, paths
}

// Any number of unresponsive targets block no worker, so a healthy target is still reconciled.
func TestTargetsThatNeverAnswerHoldUpNoWorker(t *testing.T) {
	manager, _ := newManager(t)
	manager.Publish(append(resources("configmaps"), widgets()))
	connection, asked := unresponsiveTarget(t)
	kinds := make([]string, 256)
	for i := range kinds {
		kinds[i] = fmt.Sprintf("Widget.g%d", i)
	}
	looked := make(chan types.UID, workers+2)
	check := func(syncTarget types.UID) {
		if _, err := manager.Reconcile(t.Context(), syncTarget); err != nil {
			t.Error(err)
		}
		looked <- syncTarget
	}
	for i := range workers + 1 {
		uid := types.UID(fmt.Sprintf("slow-%d", i))
		// The written resources have a resource of a former config, and every kind must be resolved.
		manager.StartSync(Target{UID: uid, Name: string(uid), Connection: connection, WrittenResources: parseWritten("configmaps/v1")})
		setMatcherOf(manager, uid, convertingTo(kinds...))
		check(uid)
	}
	manager.StartSync(Target{UID: florin, Name: "florin", Connection: connectionTo(t, "https://127.0.0.1:1")})
	setMatcherOf(manager, florin, selecting("configmaps"))
	check(florin)
	if len(looked) != workers+2 {
		t.Errorf("%d of %d checks have ended", len(looked), workers+2)
	}
	if running := manager.running(florin); len(running) != 1 {
		t.Errorf("of the healthy one %v run", running)
	}
	select {
	case <-asked:
	case <-time.After(time.Minute):
		t.Error("the unresponsive target got no request")
	}
}

// The result of a list counts once, and not after the hub may have written again.
func TestEmptinessChecksCountOnce(t *testing.T) {
	var l emptinessChecks
	secrets := schema.GroupResource{Resource: "secrets"}
	first := &targets.Connection{}
	known, made := l.resultOrNew(secrets, first)
	if made == nil || known.empty {
		t.Fatal("no list is made")
	}
	if known, again := l.resultOrNew(secrets, first); again != nil || known.empty {
		t.Error("one is made twice, or counts before it has ended")
	}
	l.finish(made, true, nil)
	if known, again := l.resultOrNew(secrets, first); again != nil || !known.empty {
		t.Error("the result of the check is missing")
	}
	_, made = l.resultOrNew(secrets, first)
	l.forget(secrets)
	l.finish(made, true, nil)
	known, again := l.resultOrNew(secrets, first)
	if again == nil || known.empty {
		t.Error("it counts though something may have been written since")
	}
	if _, other := l.resultOrNew(secrets, &targets.Connection{}); other == nil {
		t.Error("a check through another connection still counts")
	}
}
