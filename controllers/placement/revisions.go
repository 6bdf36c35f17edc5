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
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/events"
	"github.com/synchub-dev/synchub/controllers/placement/revision"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
	"github.com/synchub-dev/synchub/provider/requestclass"
)

// revisionInterval is the least time between two PlacementRevisions of one placement. They are large, and users
// can change objects often.
const revisionInterval = 10 * time.Second

var (
	errRevisionNamesTaken = errors.New("the workspace has other objects with the names of all PlacementRevisions of this EdgePlacement: delete them")
	errNoRevisions        = errors.New("the workspace does not have the API of PlacementRevisions: the operator of the hub runs `synchub init` again")
)

// keepRevision keeps the objects of a placement whose rollout is complete in a PlacementRevision, unless the
// last one contains them. It returns when to call it again; zero for never.
func (w *workspace) keepRevision(ctx context.Context, one *resolvedPlacement) (again time.Duration, err error) {
	hashes, changes := w.contentHashes(one)
	if len(hashes) == 0 {
		return 0, nil
	}
	var fingerprint rules.Fingerprint
	for _, hash := range hashes {
		fingerprint.Add(hash)
	}
	observedObjects := fingerprint.String()
	if last := w.lastRevision(one); last != nil && last.ObservedObjects == observedObjects {
		w.setRevision(one, changes, last)
		return 0, nil
	}
	if wait := w.reserveRevision(one); wait > 0 {
		return wait, nil
	}
	objects, known := w.contentsOf(hashes)
	client, ok := w.Workloads.Client(w.cluster)
	if !known || !ok {
		// An event follows when the objects or the workspace can be read.
		return 0, nil
	}
	made, err := w.writeRevision(requestclass.With(ctx, requestclass.Extra), client.Resource(placementRevisions), one, objects, observedObjects)
	w.reportRequests.Publish(w.cluster)
	if err == nil {
		w.setRevision(one, changes, made)
		return 0, nil
	}
	w.revisionFailed(one, changes, err)
	if isLasting(err) {
		return 0, nil
	}
	return 0, fmt.Errorf("cannot keep the objects of the EdgePlacement %s in a PlacementRevision: %w", one.Name, err)
}

// isLasting reports whether no PlacementRevision can be made before the objects, or the workspace, change.
func isLasting(err error) bool {
	return errors.Is(err, revision.ErrTooLarge) || apierrors.IsRequestEntityTooLargeError(err) || errors.Is(err, errRevisionNamesTaken) || errors.Is(err, errNoRevisions)
}

// contentHashes returns the content hash of every object that the placement selects, and the number of changes
// so far; nil if the last PlacementRevision already contains the last change.
func (w *workspace) contentHashes(one *resolvedPlacement) (hashes map[objectKey]uint64, changes int) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if one.rollout.kept == one.rollout.changes {
		return nil, 0
	}
	hashes = map[objectKey]uint64{}
	for key, entry := range w.objects {
		if slices.ContainsFunc(entry.selectedBy, func(other *resolvedPlacement) bool { return other.UID == one.UID }) {
			hashes[key] = entry.contentHash
		}
	}
	return hashes, one.rollout.changes
}

// contentsOf returns the contents of the objects that a PlacementRevision keeps, sorted. known is false if an
// object has another hash, because it is about to change.
func (w *workspace) contentsOf(hashes map[objectKey]uint64) (contents []*unstructured.Unstructured, known bool) {
	for key, hash := range hashes {
		if w.CachePolicy.installsCRD(key) {
			// The clusters have the CRD that the operator published.
			continue
		}
		source, _ := w.Workloads.Get(key.resource, w.cluster, key.name)
		if source == nil || mailboxes.ProjectionOf(source) != mailboxes.FullObject || rules.ContentHash(key.resource.GroupResource(), source) != hash {
			return nil, false
		}
		// Secrets may be published under another group.
		if resource, ok := w.resource(key.resource); ok && revision.Keeps(key.resource.GroupResource()) && revision.Keeps(resource.TargetAPI().GroupResource()) {
			contents = append(contents, revision.Content(source))
		}
	}
	slices.SortFunc(contents, compareContents)
	return contents, true
}

// compareContents orders the objects of a PlacementRevision: an undo must create Namespaces before their
// contents.
func compareContents(a, b *unstructured.Unstructured) int {
	rank := func(of *unstructured.Unstructured) int {
		if of.GetKind() == "Namespace" {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.GetKind(), b.GetKind()), cmp.Compare(a.GetAPIVersion(), b.GetAPIVersion()),
		cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}

// lastRevision returns the last PlacementRevision in the status of a placement; nil if there is none. A user
// who sets the status can only make the hub keep no revision, or the same one again.
func (w *workspace) lastRevision(one *resolvedPlacement) *edgev2alpha1.RevisionReference {
	listed, _ := w.Workloads.List(edgePlacements, w.cluster)
	for _, object := range listed {
		var placement edgev2alpha1.EdgePlacement
		if object.GetUID() == one.UID && runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &placement) == nil && placement.Status.Rollout != nil {
			return placement.Status.Rollout.Revision
		}
	}
	return nil
}

// reserveRevision returns how long the next PlacementRevision of a placement must wait. If it need not, the next interval begins now.
func (w *workspace) reserveRevision(one *resolvedPlacement) time.Duration {
	w.lock.Lock()
	defer w.lock.Unlock()
	wait := revisionInterval - w.Clock.Since(one.rollout.attemptedAt)
	if wait <= 0 {
		one.rollout.attemptedAt = w.Clock.Now()
	}
	return wait
}

// setRevision records which PlacementRevision keeps the objects in their state after a number of changes.
func (w *workspace) setRevision(one *resolvedPlacement, changes int, kept *edgev2alpha1.RevisionReference) {
	w.lock.Lock()
	defer w.lock.Unlock()
	one.rollout.kept, one.rollout.lastRevision, one.rollout.notKept = changes, kept, ""
}

// revisionFailed records why no PlacementRevision keeps the objects in their state after a number of changes.
func (w *workspace) revisionFailed(one *resolvedPlacement, changes int, err error) {
	w.lock.Lock()
	defer w.lock.Unlock()
	one.rollout.notKept = events.Truncate(requestmetrics.SafeMessage(err))
	if isLasting(err) {
		one.rollout.kept = changes
	}
}
