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
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/test/framework"
)

const replicas = 2

// place shows where the Deployment of the first team runs while labels, rules and its image change.
func (d *demo) place(ctx context.Context) error {
	team := d.teams[0]
	one := `{"spec": {"numberOfClusters": 1}}`
	all := `{"spec": {"numberOfClusters": null, "rolloutStrategy": {"type": "Progressive", "progressive": {"maxConcurrency": 1}}}}`

	d.screen.Println(fmt.Sprintf("\nTeam %s now wants one cluster:\n", team.name))
	if err := d.change(ctx, team, in(team.name, "patch", "edgeplacement", placement, "--type", "merge", "--patch", one), d.runsOn(team, 1)); err != nil {
		return err
	}
	before := d.fleet.running(team.name)[0]
	d.screen.Println("That cluster is no longer for production. The Deployment moves: the new copy before the old one.\n")
	relabel := func(env string) command {
		return in("inventory", "label", "synctarget", before, "env="+env, "--overwrite")
	}
	moved := func(context.Context) error {
		if now := d.fleet.running(team.name); len(now) != 1 || now[0] == before {
			return fmt.Errorf("web runs on %s", strings.Join(now, " and "))
		}
		return nil
	}
	if err := d.change(ctx, team, relabel("test"), moved); err != nil {
		return err
	}
	d.screen.Println("Production again, on all clusters, and from now on one cluster after the other:\n")
	if err := d.show(ctx, relabel("prod")); err != nil {
		return err
	}
	if err := d.change(ctx, team, in(team.name, "patch", "edgeplacement", placement, "--type", "merge", "--patch", all), d.runsOn(team, len(d.clusters))); err != nil {
		return err
	}
	return d.changeImage(ctx, team)
}

// changeImage gives the Deployment a new image, and then the old one again.
func (d *demo) changeImage(ctx context.Context, team *team) error {
	d.screen.Println("A new image, and back:\n")
	if err := d.apply(ctx, 2, team); err != nil {
		return err
	}
	rolledOut := in(team.name, "synchub", "rollout", "status", placement)
	if err := d.change(ctx, team, rolledOut, d.runsImage(team, "example.org/web:2")); err != nil {
		return err
	}
	if err := d.show(ctx, in(team.name, "synchub", "rollout", "undo", placement)); err != nil {
		return err
	}
	return d.change(ctx, team, rolledOut, d.runsImage(team, "example.org/web:1"))
}

// change runs a command, and shows the clusters of a team until the condition is met.
func (d *demo) change(ctx context.Context, team *team, c command, met func(context.Context) error) error {
	ctx, cancel := limited(ctx, stepLimit)
	defer cancel()
	d.fleet.show(team.name)
	err := d.show(ctx, c)
	if err == nil {
		err = d.await(ctx, met)
	}
	d.fleet.hide()
	if err != nil {
		return fmt.Errorf("%s: %w", c, because(ctx, err))
	}
	return nil
}

// runsOn reports whether the Deployment of a team runs on so many clusters, and its status in the workspace shows it.
func (d *demo) runsOn(team *team, clusters int) func(context.Context) error {
	return func(ctx context.Context) error {
		object, err := framework.Get(ctx, team.config, deployments, namespace, web)
		if err != nil {
			return err
		}
		available, _, _ := unstructured.NestedInt64(object.Object, "status", "availableReplicas")
		if running := d.fleet.running(team.name); len(running) != clusters || available != replicas || !d.fleet.allAvailable(team.name) {
			return fmt.Errorf("web runs on %s, and its status has %d available replicas", strings.Join(running, " and "), available)
		}
		return nil
	}
}

func (d *demo) runsImage(team *team, image string) func(context.Context) error {
	return func(ctx context.Context) error {
		images := d.fleet.images(team.name)
		if slices.ContainsFunc(images, func(one string) bool { return one != image }) {
			return fmt.Errorf("the clusters have %s", strings.Join(images, " and "))
		}
		return d.runsOn(team, len(d.clusters))(ctx)
	}
}
