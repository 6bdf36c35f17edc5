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
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/overview"
)

const (
	// redrawInterval is the least time between two pictures: SyncTargets of a large fleet change all the time.
	redrawInterval = time.Second
	// agesInterval is the greatest time between two pictures on a terminal. A dead hub changes no SyncTarget, and then only the ages
	// in the picture show that.
	agesInterval = 10 * time.Second
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

// take returns the SyncTargets if they have changed since the last call, or if they are due anyway; else nil.
func (f *fleet) take(isDue bool) *edgev2alpha1.SyncTargetList {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if !f.changed && !isDue {
		return nil
	}
	f.changed = false
	return f.list.DeepCopy()
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
	shown := &picture{out: o.Out, isTerminal: printers.IsTerminal(o.Out), all: o.all, clock: o.clock}
	return shown.follow(seen, ended)
}

// picture is what the user sees of the state.
type picture struct {
	out        io.Writer
	isTerminal bool
	all        bool
	clock      clock.WithTicker

	// checked is the time at which the state was last compared with the picture. lasting is the text of the picture without ages; it
	// is empty before the first one.
	checked time.Time
	lasting string
}

// follow shows the state, and shows it again after changes and as time passes, until the watch has ended. It returns the watch's error.
func (p *picture) follow(seen *fleet, ended <-chan error) error {
	ticks := p.clock.NewTicker(redrawInterval)
	defer ticks.Stop()
	for {
		if current := seen.take(p.clock.Since(p.checked) >= agesInterval); current != nil {
			if err := p.update(current); err != nil {
				return err
			}
		}
		select {
		case err := <-ended:
			return err
		case <-ticks.C():
		}
	}
}

// update shows the state in place of the last picture. Without a terminal, it shows nothing if only ages differ; else a line with the
// time separates the two.
func (p *picture) update(list *edgev2alpha1.SyncTargetList) error {
	now := p.clock.Now()
	p.checked = now
	rows := rowsOf(list, now)
	var lasting bytes.Buffer
	if err := Print(&lasting, overview.WithoutAges(rows), p.all, now); err != nil {
		return err
	}
	isFirst := p.lasting == ""
	isSame := p.lasting == lasting.String()
	p.lasting = lasting.String()
	switch {
	case p.isTerminal:
		fmt.Fprint(p.out, clearScreen)
	case isSame:
		return nil
	case !isFirst:
		fmt.Fprintf(p.out, "\n%s\n", now.UTC().Format(time.RFC3339))
	}
	return Print(p.out, rows, p.all, now)
}
