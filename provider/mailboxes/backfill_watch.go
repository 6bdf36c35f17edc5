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

package mailboxes

import (
	"errors"
	"fmt"
	"sync"

	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// backfillWatch is a watch into which the objects of acquired mailboxes are backfilled. An informer handles its watch in order, so that an
// object that was listed cannot overtake an event.
//
// An object is backfilled only if the watch has sent no event of it since the list began: such events are as new as the list,
// or newer ones follow. This holds for one watch only. If the watch ends, the mailbox is listed again.
type backfillWatch struct {
	source watch.Interface
	result chan watch.Event
	done   chan struct{}
	stop   func()

	// lock serializes the events that are sent.
	lock sync.Mutex
	// ended is true once no event may be sent any more.
	ended bool
	// version is the resource version of the last event; empty while the watch sends its initial events.
	version string
	// awaitsInitial is true until the initial events have ended.
	awaitsInitial bool
	// changed holds, for each mailbox that is being listed, the objects that events have named since, up to maxChanged of them.
	changed map[logicalcluster.Name]map[types.NamespacedName]struct{}
	// completed holds the relist number of each mailbox whose list was backfilled.
	completed map[logicalcluster.Name]uint64
}

// maxChanged bounds the names held for a mailbox while it is listed, because users decide how many objects change. With more, the hub discards
// the list and lists again.
const maxChanged = 10_000

// These errors discard a list. A list can be backfilled only into the watch that was running when the list began, and only if
// the names of all objects that have changed since are known.
var (
	errWatchEnded  = errors.New("the watch ended during the list")
	errManyChanges = fmt.Errorf("more than %d objects have changed while they were listed", maxChanged)
)

// backfilled returns a watch that began at a version, or with initial events.
func backfilled(source watch.Interface, options metav1.ListOptions) *backfillWatch {
	s := &backfillWatch{source: source, result: make(chan watch.Event), done: make(chan struct{}), changed: map[logicalcluster.Name]map[types.NamespacedName]struct{}{}, completed: map[logicalcluster.Name]uint64{}}
	s.awaitsInitial = options.SendInitialEvents != nil && *options.SendInitialEvents
	if !s.awaitsInitial && options.ResourceVersion != "0" {
		s.version = options.ResourceVersion
	}
	s.stop = sync.OnceFunc(func() {
		close(s.done)
		source.Stop()
	})
	go s.forward()
	return s
}

// ResultChan returns the events and the objects that are backfilled.
func (s *backfillWatch) ResultChan() <-chan watch.Event { return s.result }

// Stop ends the watch.
func (s *backfillWatch) Stop() { s.stop() }

// forward sends the events of the source.
func (s *backfillWatch) forward() {
	for event := range s.source.ResultChan() {
		s.lock.Lock()
		s.onEvent(event)
		s.send(event)
		s.lock.Unlock()
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	s.ended = true
	close(s.result)
}

// onEvent records the version of an event, and, for a mailbox that is being listed, the changed object. It requires the lock.
func (s *backfillWatch) onEvent(event watch.Event) {
	object, ok := event.Object.(*unstructured.Unstructured)
	if !ok || event.Type == watch.Error {
		return
	}
	if event.Type == watch.Bookmark && object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
		s.awaitsInitial = false
	}
	if !s.awaitsInitial {
		s.version = object.GetResourceVersion()
	}
	if len(s.changed) == 0 || event.Type == watch.Bookmark {
		return
	}
	mailbox := mailboxOf(object)
	if changed, isListed := s.changed[mailbox]; isListed {
		changed[keyOf(object)] = struct{}{}
		if len(changed) > maxChanged {
			delete(s.changed, mailbox)
		}
	}
}

// send returns false if the watch has ended. It requires the lock.
func (s *backfillWatch) send(event watch.Event) bool {
	if s.ended {
		return false
	}
	select {
	case <-s.done:
		return false
	case s.result <- event:
		return true
	}
}

// begin is called before the objects of a mailbox are listed. It returns false if objects cannot be backfilled now, or all of
// them were backfilled already.
func (s *backfillWatch) begin(mailbox logicalcluster.Name, relistNumber uint64) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.ended || s.version == "" || s.completed[mailbox] == relistNumber {
		return false
	}
	s.changed[mailbox] = map[types.NamespacedName]struct{}{}
	return true
}

// backfill sends an object of a list, if its mailbox is being listed. It returns false if the watch has ended.
func (s *backfillWatch) backfill(listed *unstructured.Unstructured) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	changed, isListed := s.changed[mailboxOf(listed)]
	_, hasChanged := changed[keyOf(listed)]
	if !isListed || hasChanged {
		return !s.ended
	}
	return s.send(watch.Event{Type: watch.Added, Object: s.atVersion(listed)})
}

// complete is called when all objects of a mailbox were backfilled, and sends the marker. It returns errWatchEnded, or errManyChanges.
func (s *backfillWatch) complete(mailbox logicalcluster.Name, relistNumber uint64) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	if _, isListed := s.changed[mailbox]; !isListed {
		return fmt.Errorf("%w of mailbox %s", errManyChanges, mailbox)
	}
	if !s.send(watch.Event{Type: watch.Added, Object: s.atVersion(newEndOfList(mailbox, relistNumber).current.Load())}) {
		return errWatchEnded
	}
	s.completed[mailbox] = relistNumber
	return nil
}

// end is called when the list of mailboxes is complete, or has failed.
func (s *backfillWatch) end(listed map[logicalcluster.Name]uint64) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for mailbox := range listed {
		delete(s.changed, mailbox)
	}
}

// listedVersion is the resource version of an object that was backfilled. No object from a server can hold a value of this type.
type listedVersion string

// listedVersionField is the field of an object that holds its listedVersion.
const listedVersionField = "listedVersion"

// atVersion gives an object the version of the watch, at which the watch resumes if it ends. restoreVersion undoes that. It
// requires the lock.
func (s *backfillWatch) atVersion(object *unstructured.Unstructured) *unstructured.Unstructured {
	object.Object[listedVersionField] = listedVersion(object.GetResourceVersion())
	object.SetResourceVersion(s.version)
	return object
}

// restoreVersion gives an object that was backfilled its own version, and returns false for other objects.
func restoreVersion(object *unstructured.Unstructured) bool {
	version, ok := object.Object[listedVersionField].(listedVersion)
	if ok {
		delete(object.Object, listedVersionField)
		object.SetResourceVersion(string(version))
	}
	return ok
}
