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

package placement

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/synchub-dev/synchub/controllers/internal/queue"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/provider/mailboxes/absence"
)

const (
	// concurrentPairs is the number of requests to mailboxes that one workspace has in flight.
	concurrentPairs = 16
	// patience is how long a worker waits for a mailbox. slowPairs is the number of requests to a slow mailbox that one workspace has in
	// flight; they take none of the workers.
	patience  = 500 * time.Millisecond
	slowPairs = 4
	// slowReportDelay is how long a mailbox must be slow before placements report it. kcp itself may be busy
	// for a moment.
	slowReportDelay = 5 * time.Second
	// idleTimeout is how long the queue of a workspace must be empty before its workers stop.
	idleTimeout = 5 * time.Second
)

var crdGroupResource = objectsync.CRDResource.GroupResource()

// objectKey names an object of a workload workspace.
type objectKey struct {
	resource schema.GroupVersionResource
	name     types.NamespacedName
}

// keyOf returns the key of an object of a resource.
func keyOf(resource schema.GroupVersionResource, object *unstructured.Unstructured) objectKey {
	return objectKey{resource, nameOf(object)}
}

func nameOf(object *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// namespaceKey returns the key of a Namespace.
func namespaceKey(name string) objectKey {
	return objectKey{namespaces, types.NamespacedName{Name: name}}
}

func (k objectKey) isCRD() bool { return k.resource.GroupResource() == crdGroupResource }

func (k objectKey) candidate(cause plan.State) absence.Candidate {
	return absence.Candidate{Resource: k.resource, Key: k.name, Missing: cause == plan.SourceNotFound}
}

// namespace returns the namespace of the object; for a Namespace, its own name.
func (k objectKey) namespace() string {
	if k.resource == namespaces {
		return k.name.Name
	}
	return k.name.Namespace
}

// task returns the task that selects the object, and statusTask the one that writes its status.
func (k objectKey) task() task       { return task{resource: k.resource, name: k.name} }
func (k objectKey) statusTask() task { return task{resource: k.resource, name: k.name, status: true} }

// pairKey names an object and the site of its copy.
type pairKey struct {
	objectKey
	site
}

// copyName returns the name of the copy.
func (k pairKey) copyName() types.NamespacedName {
	if k.resource == namespaces {
		return types.NamespacedName{Name: k.inMailbox}
	}
	return types.NamespacedName{Namespace: k.inMailbox, Name: k.name.Name}
}

func (k pairKey) task() task { return task{resource: k.resource, name: k.name, site: k.site} }

// task is a key of a workspace's queue. With a site and a resource it stands for one pair, and with only a
// mailbox for all pairs of the mailbox. Without a mailbox it stands for an object of the workspace, for the
// object's status, or for an event about the object.
type task struct {
	resource schema.GroupVersionResource
	name     types.NamespacedName
	site
	status  bool
	warning failure
	// reflection is true for the reflection of an object of the mailbox. Without a resource, it stands for all reflections of the mailbox,
	// or of one of its namespaces.
	reflection bool
}

func (t task) object() objectKey { return objectKey{t.resource, t.name} }

// taskLane names the servers that a task waits for: a mailbox, or the workspace itself. The zero lane waits for
// neither.
type taskLane struct {
	mailbox    logicalcluster.Name
	source     bool
	reflection bool
}

func laneOf(t task) taskLane {
	if t.reflection {
		return taskLane{source: true, reflection: true}
	}
	return taskLane{mailbox: t.mailbox, source: t.status || t.warning != failure{}}
}

// tasks is the queue of a workspace.
type tasks struct {
	startup *startup
	clock   clock.PassiveClock
	queue   *queue.Queue[task]
	// lanes keep the tasks of slow mailboxes away from the workers of the queue.
	lanes *queue.Lanes[task, taskLane]
}

// newTasks returns the queue of a workspace. It calls onSlow when a mailbox becomes slow, and when it is no longer slow.
func newTasks(s *shared, cluster logicalcluster.Name, reconciler reconcile.TypedReconciler[task], onSlow func()) *tasks {
	t := &tasks{startup: s.startup, clock: s.options.Clock}
	t.lanes = queue.NewLanes(queue.LaneOptions[task, taskLane]{
		Reconciler: reconciler, LaneOf: laneOf, Patience: patience, Timeout: reconcileTimeout, MaxSlow: slowPairs,
		OnChange: func(taskLane) { onSlow() }, Clock: s.options.Clock,
	})
	t.queue = queue.New(queue.Options[task]{
		Name:                    "placementpairs",
		Reconciler:              t.lanes,
		MaxConcurrentReconciles: concurrentPairs,
		MinRetryDelay:           minRetryDelay,
		MaxRetryDelay:           maxRetryDelay,
		IdleTimeout:             idleTimeout,
		Log: func(t task) logr.Logger {
			return s.options.Log.WithValues("workspace", cluster, "resource", t.resource.GroupResource(), "object", t.name.String(), "mailbox", t.mailbox)
		},
		Clock: s.options.Clock,
	})
	t.lanes.SetQueue(func(one task, after time.Duration) { t.queue.AddAfter(after, one) })
	return t
}

// run runs the queue until ctx ends.
func (t *tasks) run(ctx context.Context) error {
	err := t.queue.Run(ctx)
	_ = t.lanes.Start(ctx)
	return err
}

// add adds tasks to the queue. It does nothing before the controller has started: the start makes the next
// resolve select all objects, which enqueues all pairs.
func (t *tasks) add(tasks ...task) {
	if t.startup.hasBegun() {
		t.queue.Add(tasks...)
	}
}

// slowMailboxes returns the mailboxes that are slow for slowReportDelay or longer. recheck is when the next
// mailbox reaches that delay; zero if no other mailbox is slow.
func (t *tasks) slowMailboxes() (slow map[logicalcluster.Name]bool, recheck time.Duration) {
	slow = map[logicalcluster.Name]bool{}
	for lane, since := range t.lanes.Slow() {
		wait := slowReportDelay - t.clock.Since(since)
		switch {
		case lane.mailbox == "":
		case wait <= 0:
			slow[lane.mailbox] = true
		default:
			recheck = sooner(recheck, wait)
		}
	}
	return slow, recheck
}
