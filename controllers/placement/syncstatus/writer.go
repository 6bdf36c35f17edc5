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

package syncstatus

import (
	"context"
	"crypto/sha256"
	"fmt"
	gosync "sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/kcp-dev/logicalcluster/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/provider/metrics/targetlabels"
	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/topic"
)

const (
	// statesKey is the key of the states in a ConfigMap, and sealKey the key of their seal.
	statesKey, sealKey = "states", "seal"
	// copiesLabel is "true" on these ConfigMaps, and nameSuffix follows the UID of the SyncTarget in their names.
	copiesLabel, nameSuffix = "synchub.dev/copies", "-copies"
	// minWriteInterval is the least time between two writes for one SyncTarget. changeDelay is how long the
	// writer waits after a change, because several changes often come together.
	minWriteInterval = 5 * time.Second
	changeDelay      = 500 * time.Millisecond
	// requestTimeout is the timeout of each request.
	requestTimeout = 30 * time.Second
	// A failed write is tried again after minRetryDelay. The delay doubles each time, up to maxRetryDelay.
	minRetryDelay = time.Second
	maxRetryDelay = time.Minute
	writers       = 4
)

// SyncedCopies lists the copies that this process syncs, as [syncmanager.Manager] does.
type SyncedCopies interface {
	// Copies returns all copies in the mailbox of a SyncTarget. known is false while some are not observed yet.
	// The mailbox is empty if this process does not sync the SyncTarget.
	Copies(syncTarget types.UID) (copies []objectsync.PlacedCopy, mailbox logicalcluster.Name, known bool)
	SyncTargets() []types.UID
}

// WriterOptions are the dependencies of a [Writer].
type WriterOptions struct {
	// ConfigMaps are the ConfigMaps of the ledger's namespace.
	ConfigMaps corev1client.ConfigMapInterface
	Sync       SyncedCopies
	// Sealer seals the states for the leader.
	Sealer *ownership.Sealer
	// SyncStatusChanged notifies about copies whose state changed.
	SyncStatusChanged *topic.Topic[objectsync.ObjectRef]
	Owner             Owner
	Clock             clock.Clock
	Log               logr.Logger
}

// Writer stores the states of copies when they have changed, at most every five seconds for each SyncTarget. It stores nothing for
// SyncTargets that never had copies.
type Writer struct {
	WriterOptions

	lock gosync.Mutex
	// stored are the ConfigMaps that this process has read or written.
	stored map[types.UID]storedStates
}

// storedStates is a ConfigMap as of the last read or write.
type storedStates struct {
	// resourceVersion is empty if the ConfigMap must be read, or does not exist.
	resourceVersion string
	// digest is zero if the ConfigMap contains no states of this hub.
	digest [sha256.Size]byte
	// mailbox is the mailbox of the states; empty if this process has stored none.
	mailbox string
	// writtenAt is the time of the last write.
	writtenAt time.Time
}

// NewWriter returns a Writer, which does nothing until it is registered.
func NewWriter(options WriterOptions) *Writer {
	return &Writer{WriterOptions: options, stored: map[types.UID]storedStates{}}
}

// Register adds the writer to a manager. Each replica writes the states of the SyncTargets that it owns.
func (w *Writer) Register(hosting manager.Manager) error {
	worker, err := controller.NewTyped("syncstatus", hosting, controller.TypedOptions[types.UID]{
		MaxConcurrentReconciles: writers,
		Reconciler:              w,
		NeedLeaderElection:      new(false),
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](minRetryDelay, maxRetryDelay),
		LogConstructor:          targetlabels.LogConstructor(w.Log),
	})
	if err != nil {
		return err
	}
	changed := topic.Source(w.SyncStatusChanged, func(queue workqueue.TypedRateLimitingInterface[types.UID], ref objectsync.ObjectRef) {
		queue.AddAfter(ref.SyncTarget, changeDelay)
	})
	return worker.Watch(source.TypedFunc[types.UID](func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[types.UID]) error {
		err := changed.Start(ctx, queue)
		// Earlier changes were not received.
		for _, syncTarget := range w.Sync.SyncTargets() {
			queue.Add(syncTarget)
		}
		return err
	}))
}

// Reconcile implements [reconcile.TypedReconciler].
func (w *Writer) Reconcile(ctx context.Context, syncTarget types.UID) (reconcile.Result, error) {
	last := w.lastStored(syncTarget)
	copies, mailbox, known := w.Sync.Copies(syncTarget)
	if mailbox == "" && (last.mailbox == "" || !w.Owner.Owns(syncTarget)) {
		// This process never synced the SyncTarget, or another replica owns it.
		w.forget(syncTarget)
		return reconcile.Result{}, nil
	}
	if mailbox != "" && !known {
		// A part of the states would show the other copies as not synced. The stored states stay valid until
		// all are known.
		return reconcile.Result{RequeueAfter: minWriteInterval}, nil
	}
	if len(copies) == 0 && last.mailbox == "" {
		// Nothing was stored. After a failed write the mailbox is set, because the ConfigMap may still contain
		// earlier states.
		return reconcile.Result{}, nil
	}
	if wait := last.writtenAt.Add(minWriteInterval).Sub(w.Clock.Now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	if mailbox == "" {
		return reconcile.Result{}, w.clear(ctx, syncTarget, last)
	}
	content := encode(w.Sealer, syncTarget, mailbox.String(), copies)
	if len(copies) > maxCopies {
		w.Log.Info("some copies are not reported, so that their placements wait", append(targetlabels.LogValues(syncTarget), "copies", len(copies), "reported", maxCopies)...)
	}
	if err := w.ensureStored(ctx, syncTarget, mailbox.String(), content, last); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, nil
}

// clear stores that no copy of a SyncTarget is synced, because no replica syncs it, for example while it is
// suspended or drained.
func (w *Writer) clear(ctx context.Context, syncTarget types.UID, last storedStates) error {
	err := w.ensureStored(ctx, syncTarget, last.mailbox, encode(w.Sealer, syncTarget, last.mailbox, nil), last)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
		return err
	}
	// The mailbox may be gone with its SyncTarget.
	w.forget(syncTarget)
	return nil
}

// ensureStored stores the states in the ConfigMap if they differ. It reads a ConfigMap that this process does
// not know.
func (w *Writer) ensureStored(ctx context.Context, syncTarget types.UID, mailbox, content string, last storedStates) error {
	ctx, cancel := context.WithTimeout(requestclass.With(ctx, requestclass.Background), requestTimeout)
	defer cancel()
	ctx = w.Owner.Context(ctx, syncTarget)
	digest := sha256.Sum256([]byte(content))
	if last.resourceVersion == "" {
		found, err := w.ConfigMaps.Get(ctx, nameOf(syncTarget), metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("cannot read the ConfigMap with the states of copies: %w", err)
		}
		if err == nil {
			last.resourceVersion = found.ResourceVersion
		}
		if err == nil && found.Data[statesKey] == content && w.Sealer.VerifyText(found.Data[sealKey], purpose, content) {
			last.digest = digest
		}
	}
	if last.resourceVersion == "" || last.digest != digest {
		written, err := w.write(ctx, syncTarget, last.resourceVersion, content)
		if err != nil {
			// Another replica may have written it, so it must be read again.
			w.setStored(syncTarget, storedStates{mailbox: mailbox, writtenAt: w.Clock.Now()})
			return fmt.Errorf("cannot store the states of copies: %w", err)
		}
		last = storedStates{resourceVersion: written.ResourceVersion, digest: digest, writtenAt: w.Clock.Now()}
	}
	last.mailbox = mailbox
	w.setStored(syncTarget, last)
	return nil
}

// write creates the ConfigMap without a resourceVersion, and updates it with one.
func (w *Writer) write(ctx context.Context, syncTarget types.UID, resourceVersion, content string) (*corev1.ConfigMap, error) {
	desired := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: nameOf(syncTarget), Labels: map[string]string{copiesLabel: "true"}, ResourceVersion: resourceVersion},
		Data:       map[string]string{statesKey: content, sealKey: w.Sealer.SealText(purpose, content)},
	}
	if resourceVersion == "" {
		return w.ConfigMaps.Create(ctx, desired, metav1.CreateOptions{})
	}
	return w.ConfigMaps.Update(ctx, desired, metav1.UpdateOptions{})
}

// nameOf returns the name of the ConfigMap of a SyncTarget.
func nameOf(syncTarget types.UID) string { return string(syncTarget) + nameSuffix }

func (w *Writer) lastStored(syncTarget types.UID) storedStates {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.stored[syncTarget]
}

func (w *Writer) setStored(syncTarget types.UID, stored storedStates) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.stored[syncTarget] = stored
}

// forget drops the state of a SyncTarget that this process no longer syncs. If it syncs it again, it reads the
// ConfigMap again.
func (w *Writer) forget(syncTarget types.UID) {
	w.lock.Lock()
	defer w.lock.Unlock()
	delete(w.stored, syncTarget)
}
