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
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/hack/demo/timeline"
	"github.com/synchub-dev/synchub/hack/screen"
	"github.com/synchub-dev/synchub/test/framework/servers"
)

// Limits of the steps. All are a multiple of the time on an idle machine.
const (
	worldLimit  = 6 * time.Minute
	stepLimit   = 2 * time.Minute
	followLimit = 3 * time.Minute
	stopLimit   = 30 * time.Second

	pollEvery = 100 * time.Millisecond
	tailLines = 25
)

// demo is one run.
type demo struct {
	state       *state
	screen      *screen.Screen
	options     servers.Options
	hubLogLevel string
	targets     []*target
	log         *timeline.Log

	world *servers.Environment
	hub   *hub
	// moved is the cluster that the placed Deployment left.
	moved string
}

// target is a cluster, and the content of its mailbox.
type target struct {
	name      string
	labels    map[string]string
	workloads []workload

	// config and mailbox are clients' configurations of the administrator, for the cluster and for its mailbox.
	config, mailbox *rest.Config
}

func newDemo(state *state, screen *screen.Screen, hubLogLevel string) *demo {
	d := &demo{
		state:       state,
		screen:      screen,
		hubLogLevel: hubLogLevel,
		options: servers.Options{
			Dir: state.dir,
			Bin: filepath.Join(state.root, "bin"),
			Log: func(line string) { screen.Println("  " + line) },
			// The demo may run for hours next to other work.
			AsInstalled: true,
		},
		targets: []*target{
			{name: "florin", labels: map[string]string{"env": "prod"}, workloads: []workload{common}},
			{name: "guilder", labels: map[string]string{"env": "prod", "extended": "yes"}, workloads: []workload{common, special}},
		},
	}
	var routes []timeline.Route
	for _, target := range d.targets {
		for _, workload := range target.workloads {
			routes = append(routes, target.route(workload.namespace, workload.deployment))
		}
	}
	d.log = timeline.NewLog(routes...)
	return d
}

func (t *target) route(namespace, deployment string) timeline.Route {
	return timeline.Route{Target: t.name, Namespace: namespace, Name: deployment}
}

// run starts everything, shows it, and stops everything. Unless once is set, it waits for ctx to end before it stops.
func (d *demo) run(ctx context.Context, once bool) error {
	working, fail := context.WithCancelCause(ctx)
	err := d.show(working, fail, once)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		err = errors.New("interrupted before everything was up")
	default:
		err = d.withLog(err)
	}
	fail(nil)
	return errors.Join(err, d.down(context.WithoutCancel(ctx)))
}

// show returns nil if everything worked and once is set, or if ctx ended after everything worked.
func (d *demo) show(ctx context.Context, fail context.CancelCauseFunc, once bool) error {
	begun := time.Now()
	if err := d.up(ctx, fail); err != nil {
		return err
	}
	if err := d.follow(ctx); err != nil {
		return err
	}
	if err := d.place(ctx); err != nil {
		return err
	}
	d.screen.Println(fmt.Sprintf("\nAll of this took %s. Each status was back in its mailbox within %s of its change on the cluster.",
		time.Since(begun).Round(time.Second), timeline.Milliseconds(d.log.LongestReturn())))
	if err := d.ask(ctx); err != nil {
		return err
	}
	if once {
		return nil
	}
	d.screen.Println(d.summary())
	<-ctx.Done()
	if cause := context.Cause(ctx); errors.Is(cause, errEnded) {
		return cause
	}
	return nil
}

// step is one step of the start.
type step struct {
	title string
	limit time.Duration
	do    func(context.Context) error
}

// up starts everything. It calls fail if a started program ends unexpectedly.
func (d *demo) up(ctx context.Context, fail context.CancelCauseFunc) error {
	err := d.take(ctx,
		step{"start etcd, kcp and the clusters florin and guilder", worldLimit, d.startWorld},
		// In this order, kcp starts to serve the APIs of one step during the next steps.
		step{"create the workspaces root:hosting, root:inventory and root:shop", stepLimit, d.createWorkspaces},
		step{"synchub init: set up the provider workspace root:synchub", stepLimit, d.initProvider},
		step{"bind the hub's API in root:inventory", stepLimit, d.bind},
		step{"publish what the chart publishes in root:hosting", stepLimit, d.publish},
		step{"synchub run: start the hub", stepLimit, d.startHub},
	)
	if err != nil {
		return err
	}
	d.guard(ctx, fail)
	return d.take(ctx,
		step{"wait until the hub has published the mailboxes' APIs", stepLimit, d.awaitPublished},
		step{"register florin and guilder", stepLimit, d.register},
		step{"wait until the hub has connected and made the mailboxes", stepLimit, d.awaitRegistered},
		// Before the hub watches the mailboxes, the table would show the hub's start time instead of sync times.
		step{"wait until the hub watches the mailboxes", stepLimit, func(ctx context.Context) error { return d.hub.awaitReady(ctx) }},
	)
}

// take runs steps until one fails. The error names the step, and the cause if its context ended.
func (d *demo) take(ctx context.Context, steps ...step) error {
	for _, step := range steps {
		if err := d.takeOne(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) takeOne(ctx context.Context, step step) error {
	ctx, cancel := limited(ctx, step.limit)
	defer cancel()
	err := d.screen.Step(step.title, func() error { return step.do(ctx) })
	if err != nil {
		return fmt.Errorf("%s: %w", step.title, because(ctx, err))
	}
	return nil
}

func limited(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than %s", limit))
}

// because prefixes an error with the cause of the end of ctx, if ctx has ended.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// withLog appends the end of the hub's log to an error.
func (d *demo) withLog(err error) error {
	if d.hub == nil {
		return err
	}
	return fmt.Errorf("%w\n\nThe end of %s:\n%s", err, d.state.relative(d.hub.LogFile()), d.hub.LogTail(tailLines))
}

// down stops the hub before the servers, because the hub would only log errors without them.
func (d *demo) down(ctx context.Context) error {
	var errs []error
	if d.hub != nil {
		errs = append(errs, d.screen.Step("stop the hub", func() error { return d.hub.stop(ctx) }))
	}
	if d.world != nil {
		errs = append(errs, d.screen.Step("stop kcp and the clusters", d.world.Stop))
	}
	return errors.Join(append(errs, d.state.keepLogs())...)
}
