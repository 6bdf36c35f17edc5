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

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/hack/demo/timeline"
)

// follow fills the mailboxes and shows each Deployment until its last status is back.
func (d *demo) follow(ctx context.Context) error {
	watchers := d.watchBothSides(ctx)
	err := d.take(ctx, step{"wait until mailboxes and clusters can be watched", stepLimit, func(ctx context.Context) error {
		return awaitOpen(ctx, watchers)
	}})
	if err != nil {
		return err
	}
	d.screen.Println("\nThe common workload goes into both mailboxes, the special one into guilder's alone.\n" +
		"After the time of its creation come the times that each leg of a Deployment's way took.\n")
	d.redraw()
	err = d.fillAndAwait(ctx)
	d.screen.Draw("")
	d.screen.Println(timeline.Table(d.log.Timelines()))
	if err != nil {
		return err
	}
	d.screen.Println("")
	return d.take(ctx, step{"check that each cluster has what its mailbox has, and no more", stepLimit, d.checkRest})
}

func (d *demo) fillAndAwait(ctx context.Context) error {
	ctx, cancel := limited(ctx, followLimit)
	defer cancel()
	group, groupCtx := errgroup.WithContext(ctx)
	for _, target := range d.targets {
		group.Go(func() error {
			return target.fill(groupCtx, func(namespace, deployment string, at time.Time) {
				d.record(target.route(namespace, deployment), timeline.Created, at)
			})
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("fill the mailboxes: %w", because(ctx, err))
	}
	select {
	case <-d.log.Done():
		return nil
	case <-ctx.Done():
		return because(ctx, errors.New(strings.Join(d.log.Missing(), "; ")))
	}
}

// watchBothSides starts watches for the Deployments of all clusters and mailboxes.
func (d *demo) watchBothSides(ctx context.Context) []*watcher {
	var watchers []*watcher
	for _, target := range d.targets {
		watchers = append(watchers,
			newWatcher(target.name, target.config, func(deployment *unstructured.Unstructured, at time.Time) {
				route := target.route(deployment.GetNamespace(), deployment.GetName())
				d.record(route, timeline.Applied, at)
				if isAvailable(deployment) {
					d.record(route, timeline.Available, at)
				}
			}),
			newWatcher("the mailbox of "+target.name, target.mailbox, func(deployment *unstructured.Unstructured, at time.Time) {
				if isAvailable(deployment) {
					d.record(target.route(deployment.GetNamespace(), deployment.GetName()), timeline.Returned, at)
				}
			}),
		)
	}
	for _, watcher := range watchers {
		go watcher.run(ctx)
	}
	return watchers
}

// record shows the stages that a Deployment has newly reached.
func (d *demo) record(route timeline.Route, stage timeline.Stage, at time.Time) {
	j, reached := d.log.Record(route, stage, at)
	if len(reached) == 0 {
		return
	}
	if d.screen.Live() {
		d.redraw()
		return
	}
	for _, stage := range reached {
		d.screen.Println(timeline.Line(j, stage))
	}
}

func (d *demo) redraw() { d.screen.Draw(timeline.Table(d.log.Timelines())) }
