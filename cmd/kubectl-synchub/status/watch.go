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
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
)

const (
	// redrawInterval is the least time between two pictures: SyncTargets of a large fleet change all the time.
	redrawInterval = time.Second
	// clearScreen makes a terminal forget the last picture.
	clearScreen = "\x1b[H\x1b[2J"
)

// fleet holds the SyncTargets that the watch has reported.
type fleet struct {
	mutex   sync.Mutex
	list    edgev2alpha1.SyncTargetList
	changed bool
}

// apply records a change of one SyncTarget.
func (f *fleet) apply(change watch.EventType, object client.Object) error {
	syncTarget, ok := object.(*edgev2alpha1.SyncTarget)
	if !ok || change == watch.Bookmark {
		return nil
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.list.Items = slices.DeleteFunc(f.list.Items, func(one edgev2alpha1.SyncTarget) bool { return one.Name == syncTarget.Name })
	if change != watch.Deleted {
		f.list.Items = append(f.list.Items, *syncTarget)
	}
	f.changed = true
	return nil
}

// take returns the SyncTargets if they have changed since the last call.
func (f *fleet) take() (list *edgev2alpha1.SyncTargetList, changed bool) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	changed, f.changed = f.changed, false
	return f.list.DeepCopy(), changed
}

// follow shows the state, and shows it again after changes, until the context ends.
func (o *statusOptions) follow(ctx context.Context, workspace client.WithWatch, list *edgev2alpha1.SyncTargetList) error {
	options, err := o.ListOptions()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen := &fleet{list: *list, changed: true}
	ended := make(chan error, 1)
	go func() { ended <- cli.Follow(ctx, workspace, list, seen.apply, options) }()
	for isFirst := true; ; isFirst = false {
		if current, changed := seen.take(); changed {
			if err := o.redraw(current, isFirst); err != nil {
				return err
			}
		}
		select {
		case err := <-ended:
			return err
		case <-time.After(redrawInterval):
		}
	}
}

// redraw shows the state in place of the last one. Without a terminal, a line with the time separates the two.
func (o *statusOptions) redraw(list *edgev2alpha1.SyncTargetList, isFirst bool) error {
	rows, now := rowsOf(list)
	switch {
	case printers.IsTerminal(o.Out):
		fmt.Fprint(o.Out, clearScreen)
	case !isFirst:
		fmt.Fprintf(o.Out, "\n%s\n", now.UTC().Format(time.RFC3339))
	}
	return Print(o.Out, rows, o.all, now)
}
