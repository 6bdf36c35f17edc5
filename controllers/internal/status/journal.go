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

package status

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	// delay is how long a line waits for further objects.
	delay = 2 * time.Second
	// maxNamed bounds the objects that one line names.
	maxNamed = 10
)

// Messages of lines.
const (
	JournalRemoved          = "objects were removed from a cluster"
	JournalReleased         = "objects were released on a cluster, which keeps them"
	JournalRemovedUp        = "objects that came from a cluster were removed from its mailbox"
	JournalWithdrawn        = "copies of objects of a workload workspace were withdrawn from a mailbox"
	JournalFailing          = "objects cannot be synced"
	JournalDiffering        = "objects of a cluster differ, and stay as they are"
	JournalFailingPlacement = "objects of a workload workspace cannot be placed"
	JournalFailingUpsync    = "objects that came from a cluster cannot be written to a workload workspace"
	JournalFailingStatus    = "statuses cannot be returned to objects of a workload workspace"
)

// JournalEntry is what all objects of one line have in common.
type JournalEntry struct {
	Message string
	// SyncTarget is the name of the SyncTarget, and Inventory the logical cluster of its inventory workspace. Workspace is the
	// logical cluster of the workload workspace; empty if there is none.
	SyncTarget, Inventory, Workspace string
	Resource                         schema.GroupResource
	// Reason is the constant cause of a removal, or the constant reason of a failure.
	Reason string
}

// batch are the objects of one line. detail is the message about the first of them.
type batch struct {
	count   int
	objects []string
	detail  string
}

// Journal writes one line at the info level for all objects with the same [JournalEntry] within a moment. It is safe for concurrent use, and
// a nil Journal records nothing. Nothing runs at rest.
type Journal struct {
	log   logr.Logger
	clock clock.Clock
	// recorded wakes Start after the first object of a moment.
	recorded chan struct{}

	lock sync.Mutex
	// order are the entries of batches, in the order of their first objects.
	order   []JournalEntry
	batches map[JournalEntry]*batch
}

// NewJournal returns an empty Journal, which [Journal.Start] writes.
func NewJournal(log logr.Logger, clock clock.Clock) *Journal {
	return &Journal{log: log, clock: clock, recorded: make(chan struct{}, 1), batches: map[JournalEntry]*batch{}}
}

// Record adds an object to the line of an entry. detail is for people, and may be empty.
func (j *Journal) Record(entry JournalEntry, object types.NamespacedName, detail string) {
	if j == nil {
		return
	}
	j.lock.Lock()
	found := j.batches[entry]
	if found == nil {
		found = &batch{detail: detail}
		j.batches[entry], j.order = found, append(j.order, entry)
	}
	if found.count++; found.count <= maxNamed {
		found.objects = append(found.objects, strings.TrimPrefix(object.String(), "/"))
	}
	j.lock.Unlock()
	select {
	case j.recorded <- struct{}{}:
	default:
	}
}

// Register adds the journal to the manager of the hosting cluster.
func (j *Journal) Register(hosting manager.Manager) error { return hosting.Add(j) }

// NeedLeaderElection makes the journal run on every replica.
func (j *Journal) NeedLeaderElection() bool { return false }

// Start writes the lines until ctx ends, and then the remaining ones.
func (j *Journal) Start(ctx context.Context) error {
	defer j.flush()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-j.recorded:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-j.clock.After(delay):
			j.flush()
		}
	}
}

// flush writes a line for each entry.
func (j *Journal) flush() {
	j.lock.Lock()
	order, batches := j.order, j.batches
	j.order, j.batches = nil, map[JournalEntry]*batch{}
	j.lock.Unlock()
	for _, entry := range order {
		found := batches[entry]
		fields := []any{"resource", entry.Resource.String(), "reason", entry.Reason, "count", found.count, "objects", found.objects}
		for _, one := range [][2]string{{"syncTarget", entry.SyncTarget}, {"inventory", entry.Inventory}, {"workspace", entry.Workspace}, {"message", found.detail}} {
			if one[1] != "" {
				fields = append(fields, one[0], one[1])
			}
		}
		j.log.Info(entry.Message, fields...)
	}
}
