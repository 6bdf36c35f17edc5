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

package diff

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
)

// objectConcurrency is the number of requests in flight for the comparison of one object.
const objectConcurrency = 4

// Question names an object of a workspace, and the SyncTarget on whose cluster it is compared.
type Question struct {
	SyncTarget string
	// Placement is the EdgePlacement that brings the object of a workload workspace there. It is empty for an object in the mailbox of a
	// SyncTarget of an inventory workspace.
	Placement string
	Resource  schema.GroupResource
	Key       types.NamespacedName
}

// OfObject compares an object as it is now with its copy on a cluster, by a dry run of the hub's write. It writes nothing.
func OfObject(ctx context.Context, workspace cli.WorkspaceOptions, q Question) (*Report, error) {
	o := &options{
		ReadOptions: cli.ReadOptions{WorkspaceOptions: workspace}, syncTargets: []string{q.SyncTarget}, placement: q.Placement, concurrency: objectConcurrency,
	}
	here, err := o.Reader()
	if err != nil {
		return nil, err
	}
	if q.Placement == "" {
		boxes, err := o.mailboxes(ctx, here)
		if err != nil {
			return nil, err
		}
		found, err := boxes.ofObject(ctx, q)
		if err != nil {
			return nil, err
		}
		return o.answer(ctx, found)
	}
	w, err := newWorkload(ctx, o, here)
	if err != nil {
		return nil, err
	}
	found, err := w.ofObject(ctx, q)
	if err != nil {
		return nil, err
	}
	return o.answer(ctx, found)
}

// unchanged returns a change of an object that changes nothing.
func unchanged(ctx context.Context, reader *cli.Reader, q Question) (*change, error) {
	served, err := reader.Served(q.Resource)
	if err != nil {
		return nil, fmt.Errorf("cannot find out how %s are served: %w", q.Resource, err)
	}
	if served == nil {
		return nil, fmt.Errorf("%s are not served", q.Resource)
	}
	object, err := reader.Get(ctx, served.GroupVersionResource, q.Key)
	if err != nil {
		return nil, fmt.Errorf("the object cannot be read: %w", err)
	}
	if object == nil {
		return nil, errors.New("the object is not there")
	}
	return &change{served: served, key: q.Key, before: object, after: object}, nil
}

// ofObject finds the item of an object of the workspace.
func (w *workload) ofObject(ctx context.Context, q Question) (*scope, error) {
	one, err := unchanged(ctx, w.here, q)
	if err != nil {
		return nil, err
	}
	namespace := w.namespaceOf(ctx, q.Key.Namespace)
	wanted := wantedBy(w.placements, one, one.before, namespace)
	found := &scope{}
	if err := w.addItems(ctx, found, []*placedChange{{one, wanted, wanted}}, nil); err != nil {
		return nil, err
	}
	if len(found.items) == 0 {
		found.notes = append(found.notes, Remark{Object: one.object(), Message: "the EdgePlacement does not place it there"})
	}
	return found, nil
}

// ofObject finds the items of an object of the mailboxes.
func (b *mailboxes) ofObject(ctx context.Context, q Question) (*scope, error) {
	found := &scope{clusters: b.clusters()}
	for _, box := range b.all {
		if box.cluster.err != nil {
			continue
		}
		one, err := unchanged(ctx, box.reader, q)
		if err != nil {
			return nil, err
		}
		found.items = append(found.items, box.item(one, box.rulesFor(one.served), box.namespaceOf(ctx, q.Key.Namespace)))
	}
	return found, nil
}
