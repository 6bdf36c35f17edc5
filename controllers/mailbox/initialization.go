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

package mailbox

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	corev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/synchub-dev/synchub/provider/kcp"
)

const (
	// minRetryDelay and maxRetryDelay bound the time between two attempts for a mailbox. It doubles with each attempt.
	minRetryDelay = 10 * time.Second
	maxRetryDelay = 10 * time.Minute
)

// initializationRetries decides when to have kcp try again to initialize a mailbox. It is safe for concurrent use.
//
// kcp's initializer (kcp-apibinder-initializer, read in v0.31.2) counts each change of an APIBinding before the last
// one as a failure: it tries to write a condition, which its own virtual workspace refuses. The delays between its attempts double up
// to 1,000 seconds. After a single conflict at the end, on a busy kcp, a mailbox that lacks nothing would wait that long, and so would one
// whose APIBinding could not be created at first. An event of an APIBinding is processed at once. See docs/design/0064-mailboxes-that-kcp-puts-off.md.
type initializationRetries struct {
	clock clock.PassiveClock

	lock    sync.Mutex
	retries map[mcreconcile.Request]initializationRetry
}

// initializationRetry is the next attempt for a mailbox, and the delay after the previous one.
type initializationRetry struct {
	due   time.Time
	delay time.Duration
	// missing is kcp's message at the last attempt about what the mailbox lacks.
	missing string
}

func newInitializationRetries(clock clock.PassiveClock) *initializationRetries {
	return &initializationRetries{clock: clock, retries: map[mcreconcile.Request]initializationRetry{}}
}

// take reports whether an attempt for the mailbox of a SyncTarget is due, and if so, it determines when the next one is. The first
// one is due minRetryDelay after the first call.
func (r *initializationRetries) take(syncTarget mcreconcile.Request) bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	now := r.clock.Now()
	retry, has := r.retries[syncTarget]
	if has && now.Before(retry.due) {
		return false
	}
	delay := minRetryDelay
	if has {
		delay = min(2*retry.delay, maxRetryDelay)
	}
	r.retries[syncTarget] = initializationRetry{now.Add(delay), delay, retry.missing}
	return has
}

// next returns the time until the next attempt, and initializationTimeout for a mailbox that kcp does not initialize yet.
func (r *initializationRetries) next(syncTarget mcreconcile.Request) time.Duration {
	r.lock.Lock()
	defer r.lock.Unlock()
	retry, has := r.retries[syncTarget]
	if !has {
		return initializationTimeout
	}
	return max(retry.due.Sub(r.clock.Now()), time.Second)
}

// setMissing records kcp's message about what a mailbox lacks.
func (r *initializationRetries) setMissing(syncTarget mcreconcile.Request, message string) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if retry, has := r.retries[syncTarget]; has {
		retry.missing = message
		r.retries[syncTarget] = retry
	}
}

// missing returns kcp's message about what a mailbox lacks; empty for none.
func (r *initializationRetries) missing(syncTarget mcreconcile.Request) string {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.retries[syncTarget].missing
}

// forget forgets a mailbox that is ready, or whose SyncTarget does not exist.
func (r *initializationRetries) forget(syncTarget mcreconcile.Request) {
	r.lock.Lock()
	defer r.lock.Unlock()
	delete(r.retries, syncTarget)
}

// retryInitialization has kcp try again to initialize a mailbox. A failure is only logged: the condition has the state of the workspace.
func (c *Controller) retryInitialization(ctx context.Context, request mcreconcile.Request, mailbox logicalcluster.Name) {
	export := apisv1alpha2.ExportBindingReference{Path: c.Workspace, Name: c.Export}
	missing, err := kcp.RetryInitialization(ctx, c.Workspaces.APIs, mailbox, export, c.Clock.Now())
	c.initializationRetries.setMissing(request, missing)
	if err != nil {
		log.FromContext(ctx).Info("cannot have kcp try again to initialize a mailbox", "mailbox", mailbox, "error", err.Error())
		return
	}
	log.FromContext(ctx).Info("kcp takes long to initialize a mailbox, and was made to try again", "mailbox", mailbox, "missing", missing)
}

// stuckCondition is the condition of a workspace that this hub, or the previous leader, has observed not ready
// for initializationTimeout. The workspace's creation timestamp cannot be compared with this hub's clock: kcp
// sets it.
func stuckCondition(path string, phase corev1alpha1.LogicalClusterPhaseType, missing string) metav1.Condition {
	advice := "kcp binds the mailbox's APIs in the name of the hub's user: it must be a kcp user, not a ServiceAccount of another workspace, and may bind both exports (see `synchub init`)."
	if missing != "" {
		advice = fmt.Sprintf("kcp's message about its APIBinding: %s. If that names an API of another export, some workspace must bind it first.", strings.TrimSuffix(missing, "."))
	}
	return notReady(ReasonInitializationStuck, "The workspace %s is not ready after a minute or more, but %s; the hub has kcp try again, at last every ten minutes. %s", path, phase, advice)
}

func initializingCondition(name string) metav1.Condition {
	return notReady(ReasonInitializing, "kcp is preparing the workspace %s.", name)
}
