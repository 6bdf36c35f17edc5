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
	"context"
	"fmt"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/synchub-dev/synchub/provider/mailboxes/absence"
	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/storehistory"
)

// versionTimeout bounds the request of [Mailboxes.VerifyVersion].
const versionTimeout = 30 * time.Second

// seenVersion returns the version up to which the informer has followed kcp; zero before its first list.
func (w *wildcardInformer) seenVersion() uint64 {
	return storehistory.ParseVersion(w.shared.LastSyncResourceVersion())
}

// checkListed reports that kcp was restored to an earlier state, by the version of a list that began after the informer had seen
// a version. kcp answers such lists from the current state of its store, never from an earlier one.
func (w *wildcardInformer) checkListed(seen uint64, listed string) {
	now := storehistory.ParseVersion(listed)
	where := fmt.Sprintf("the list of %s at the endpoint %s", w.resource.GroupResource(), w.endpoint.url)
	if now > 0 && now < seen {
		w.endpoint.owner.history.Report(where, seen, now)
	}
	if w.resource == bindingsResource {
		w.endpoint.owner.history.Check(w.endpoint.url, where, now)
	}
}

// checkedInitialEvents returns a watch that checks the version of the list with which it begins.
func (w *wildcardInformer) checkedInitialEvents(stream watch.Interface) watch.Interface {
	if w.endpoint.owner.history == nil {
		return stream
	}
	seen, isOver := w.seenVersion(), false
	return watch.Filter(stream, func(event watch.Event) (watch.Event, bool) {
		if object, ok := event.Object.(*unstructured.Unstructured); ok && !isOver && event.Type == watch.Bookmark && object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
			isOver = true
			w.checkListed(seen, object.GetResourceVersion())
		}
		return event, true
	})
}

// checkResumed reports a kcp that went back while it could not be reached. A watch that resumes at a version of the future
// gets no event, so the error makes the reflector list again.
func (w *wildcardInformer) checkResumed(ctx context.Context) error {
	if w.resource != bindingsResource || w.endpoint.owner.history == nil || !w.interrupted.Load() {
		return nil
	}
	seen := w.seenVersion()
	list, err := w.client().List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	w.interrupted.Store(false)
	now := storehistory.ParseVersion(list.GetResourceVersion())
	w.checkListed(seen, list.GetResourceVersion())
	if now == 0 || now >= seen {
		return nil
	}
	// The other informers wait for versions of the lost future, too.
	w.endpoint.restarting.Go(w.endpoint.restartAllInformers)
	return apierrors.NewResourceExpired("kcp went back to an earlier state")
}

// restartAllInformers restarts the informers of all resources but the bindings.
func (e *endpoint) restartAllInformers() {
	var all []schema.GroupResource
	for _, informer := range append(e.objectInformers(true), e.objectInformers(false)...) {
		all = append(all, informer.resource.GroupResource())
	}
	e.restartInformers(all)
}

// checkUpdated reports a kcp that went back, by a config that was cached in a later version. The hub reads configs only
// through their watch, so no other read can be ahead of it.
func (w *wildcardInformer) checkUpdated(old, object *cachedObject) {
	seen, now := versionOf(old), versionOf(object)
	if w.configs && now > 0 && now < seen {
		current := object.current.Load()
		w.endpoint.owner.history.Report(describeObject(w.resource, mailboxOf(current), keyOf(current)), seen, now)
	}
}

func versionOf(object *cachedObject) uint64 {
	return storehistory.ParseVersion(object.current.Load().GetResourceVersion())
}

func describeObject(resource schema.GroupVersionResource, mailbox logicalcluster.Name, key types.NamespacedName) string {
	name := key.Name
	if key.Namespace != "" {
		name = key.String()
	}
	return fmt.Sprintf("%s %s of the workspace %s", resource.GroupResource(), name, mailbox)
}

// NoteVersion records that an object had a version. The verification of absences checks that the store has that version.
func (m *Mailboxes) NoteVersion(mailbox logicalcluster.Name, resource schema.GroupVersionResource, key types.NamespacedName, version uint64) {
	if version > 0 && !m.history.Explains(version) {
		m.absence.NoteWitness(mailbox, resource, absence.Witness{Key: key, Version: version})
	}
}

// VerifyVersion starts to check whether an object is older than the version in a mark. The cache may lag behind, so it proves
// nothing. One request is made for each mailbox at a time.
func (m *Mailboxes) VerifyVersion(mailbox logicalcluster.Name, resource schema.GroupVersionResource, key types.NamespacedName, seen uint64) {
	m.lock.RLock()
	ctx := m.ctx
	m.lock.RUnlock()
	client, ok := m.Client(mailbox)
	if _, isRunning := m.checkedVersions.LoadOrStore(mailbox, true); !ok || ctx == nil || isRunning {
		return
	}
	go func() {
		defer m.checkedVersions.Delete(mailbox)
		ctx, cancel := context.WithTimeout(requestclass.With(ctx, requestclass.Extra), versionTimeout)
		defer cancel()
		object, err := client.Resource(resource).Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
		if err != nil {
			m.log.V(1).Info("cannot read an object whose copy is newer", "resource", resource.Resource, "object", key, "error", err.Error())
			return
		}
		if now := storehistory.ParseVersion(object.GetResourceVersion()); now > 0 && now < seen {
			m.history.Report(describeObject(resource, mailbox, key), seen, now)
		}
	}()
}

// OnHistoryLost implements [absence.Cache].
func (c absenceCache) OnHistoryLost(mailbox logicalcluster.Name, resource schema.GroupVersionResource, lost absence.Witness, now uint64) {
	c.history.Report(describeObject(resource, mailbox, lost.Key), lost.Version, now)
}

// seenVersion returns the version up to which the bindings of the endpoint were followed; zero before their first list.
func (e *endpoint) seenVersion() uint64 {
	e.lock.RLock()
	informer := e.informers[bindingsResource]
	e.lock.RUnlock()
	if informer == nil {
		return 0
	}
	return informer.seenVersion()
}
