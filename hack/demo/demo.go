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

	"github.com/synchub-dev/synchub/hack/demo/recording"
	"github.com/synchub-dev/synchub/hack/demo/timeline"
	"github.com/synchub-dev/synchub/hack/screen"
	"github.com/synchub-dev/synchub/test/framework/servers"
)

// Limits for each part of the demo.
const (
	worldLimit  = 6 * time.Minute
	stepLimit   = 2 * time.Minute
	followLimit = 3 * time.Minute
	stopLimit   = 30 * time.Second

	pollEvery = 100 * time.Millisecond
	// tailLines is how much of a log an error has, maxOutputLines how much of the output of a command is shown.
	tailLines, maxOutputLines = 25, 60
)

// demo is the environment and everything shown in it: a fleet of clusters, and two teams that share them.
type demo struct {
	state       *state
	screen      *screen.Screen
	options     servers.Options
	hubLogLevel string
	clusters    []*cluster
	teams       []*team
	log         *timeline.Log
	fleet       *fleetTable
	// execute runs a command and returns its output, and await checks until a check succeeds.
	execute func(context.Context, command) (string, error)
	await   func(ctx context.Context, check func(context.Context) error) error
	// recording receives what is shown once everything is up. It may be nil.
	recording *recording.Recording
	// pictures is the directory for pictures of the dashboards, with something broken, or "".
	pictures string

	world      *servers.Environment
	hub        *hub
	monitoring *monitoring
}

// cluster is a cluster of the fleet.
type cluster struct {
	name string
	// config is the administrator's client configuration for the cluster, mailbox the one for its mailbox.
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
		clusters: []*cluster{{name: "florin"}, {name: "guilder"}},
		teams:    []*team{{name: "shop"}, {name: "bank"}},
	}
	var routes []timeline.Route
	for _, team := range d.teams {
		for _, cluster := range d.clusters {
			routes = append(routes, timeline.Route{Team: team.name, Cluster: cluster.name})
		}
	}
	d.log = timeline.NewLog(routes...)
	d.fleet = newFleetTable(d.clusters, screen)
	d.execute, d.await = d.output, eventually
	return d
}

// run shows the demo until ctx ends, or until everything has been shown if once is set, and stops everything.
func (d *demo) run(ctx context.Context, once bool) error {
	working, fail := context.WithCancelCause(ctx)
	err := d.present(working, fail, once)
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

func (d *demo) present(ctx context.Context, fail context.CancelCauseFunc, once bool) error {
	begun := time.Now()
	if err := d.up(ctx, fail); err != nil {
		return err
	}
	for _, prepare := range []func(context.Context) error{d.offer, d.watch} {
		if err := prepare(ctx); err != nil {
			return err
		}
	}
	if d.recording != nil {
		d.screen.Record(d.recording.Add)
		defer d.screen.Record(nil)
	}
	parts := d.story()
	if d.pictures != "" {
		parts = append(parts, d.breakFleet, d.paint)
	}
	for _, part := range parts {
		if err := part(ctx); err != nil {
			return err
		}
	}
	d.screen.Println(fmt.Sprintf("\nAll of this took %s. Each status was back in its mailbox within %s of its change on the cluster.",
		time.Since(begun).Round(time.Second), timeline.Milliseconds(d.log.LongestReturn())))
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

// story returns the parts that show something, in order. They reach servers by execute and await only.
func (d *demo) story() []func(context.Context) error {
	return []func(context.Context) error{d.share, d.follow, d.place, d.ask}
}

// step is a part of the demo that has a title and a time limit.
type step struct {
	title string
	limit time.Duration
	do    func(context.Context) error
}

// up starts everything that the teams need.
func (d *demo) up(ctx context.Context, fail context.CancelCauseFunc) error {
	err := d.take(ctx,
		step{"start etcd, kcp and the clusters florin and guilder", worldLimit, d.startWorld},
		// In this order, kcp starts to serve the APIs of one step during the next steps.
		step{"create the workspaces of the inventory and of two teams", stepLimit, d.createWorkspaces},
		step{"synchub init: prepare kcp", stepLimit, d.initProvider},
		step{"bind the hub's API in root:inventory", stepLimit, d.bind},
		step{"publish what the chart publishes", stepLimit, d.publish},
		step{"synchub run: start the hub", stepLimit, d.startHub},
	)
	if err != nil {
		return err
	}
	d.guard(ctx, fail)
	if d.pictures != "" {
		if err := d.takeOne(ctx, step{"start a Prometheus for the hub", stepLimit, d.startMonitoring}); err != nil {
			return err
		}
	}
	return d.take(ctx,
		step{"wait until the hub has published the APIs", stepLimit, d.awaitPublished},
		step{"register florin and guilder", stepLimit, d.register},
		// Before the hub watches the mailboxes, the table would show the hub's start time instead of sync times.
		step{"wait until the hub watches the mailboxes", stepLimit, d.awaitRegistered},
	)
}

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

// because adds the reason to an error of work that ended because its context did.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

func (d *demo) withLog(err error) error {
	if d.hub == nil {
		return err
	}
	return fmt.Errorf("%w\n\nThe end of %s:\n%s", err, d.state.relative(d.hub.LogFile()), d.hub.LogTail(tailLines))
}

// down stops the hub and the servers, and removes their data.
func (d *demo) down(ctx context.Context) error {
	var errs []error
	if d.monitoring != nil {
		errs = append(errs, d.monitoring.Stop())
	}
	if d.hub != nil {
		errs = append(errs, d.screen.Step("stop the hub", func() error { return d.hub.stop(ctx) }))
	}
	if d.world != nil {
		errs = append(errs, d.screen.Step("stop kcp and the clusters", d.world.Stop))
	}
	return errors.Join(append(errs, d.state.keepLogs())...)
}
