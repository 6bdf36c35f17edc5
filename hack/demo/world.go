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
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/yaml"

	"github.com/synchub-dev/synchub/apis/schemas"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/servers"
)

const (
	providerWorkspace  = "root:synchub"
	hostingWorkspace   = "root:hosting"
	inventoryWorkspace = "root:inventory"

	// publishedFiles are the PublishedResources that the chart installs, and their schemas.
	publishedFiles = "charts/synchub/files/published/*.yaml"
)

// errEnded means that a server or the hub ended before the run did.
var errEnded = errors.New("a program ended by itself")

func (d *demo) startWorld(ctx context.Context) (err error) {
	options := map[string]servers.TargetOptions{}
	for _, cluster := range d.clusters {
		options[cluster.name] = servers.TargetOptions{Controllers: true}
	}
	if d.world, err = servers.StartEnvironment(ctx, d.options, options); err != nil {
		return err
	}
	for _, cluster := range d.clusters {
		server := d.world.Targets[cluster.name]
		cluster.config = server.Config
		if err := d.state.addContext(cluster.name, server.Kubeconfig); err != nil {
			return err
		}
	}
	return nil
}

// createWorkspaces creates the workspaces below root. The workspace "hosting" takes the place of a hosting cluster
// and gets the CRD of PublishedResources.
func (d *demo) createWorkspaces(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return d.createWorkspace(ctx, "inventory") })
	for _, team := range d.teams {
		group.Go(func() error { return d.createTeam(ctx, team) })
	}
	group.Go(func() error {
		if err := d.createWorkspace(ctx, "hosting"); err != nil {
			return err
		}
		crd, err := yaml.Marshal(schemas.PublishedResourceCRD())
		if err != nil {
			return fmt.Errorf("write the definition of PublishedResources: %w", err)
		}
		return framework.Apply(ctx, d.world.KCP.Workspace(hostingWorkspace), string(crd))
	})
	return group.Wait()
}

// createWorkspace creates a workspace and adds its context.
func (d *demo) createWorkspace(ctx context.Context, name string) error {
	if _, err := framework.CreateWorkspace(ctx, d.world.KCP.Config, "root", name, ""); err != nil {
		return err
	}
	return d.keepWorkspace(name, "root:"+name)
}

// keepWorkspace adds a context for a workspace to the demo's kubeconfig.
func (d *demo) keepWorkspace(name, workspace string) error {
	file, err := d.world.KCP.WorkspaceKubeconfig(workspace)
	if err != nil {
		return err
	}
	return d.state.addContext(name, file)
}

// publish applies the PublishedResources and schemas that the chart installs in a hosting cluster.
func (d *demo) publish(ctx context.Context) error {
	files, err := filepath.Glob(filepath.Join(d.state.root, publishedFiles))
	if err != nil || len(files) == 0 {
		return errors.Join(fmt.Errorf("there are no files %s", publishedFiles), err)
	}
	for _, file := range files {
		manifest, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read what the chart publishes: %w", err)
		}
		if err := framework.Apply(ctx, d.world.KCP.Workspace(hostingWorkspace), string(manifest)); err != nil {
			return err
		}
	}
	return nil
}

// guard calls fail when a server or the hub ends before ctx does.
func (d *demo) guard(ctx context.Context, fail context.CancelCauseFunc) {
	processes := []*servers.Process{d.hub.Process}
	for _, server := range d.world.Servers() {
		processes = append(processes, server.Process())
	}
	for _, process := range processes {
		go func() {
			select {
			case <-ctx.Done():
			case <-process.Done():
				fail(fmt.Errorf("%w, see the end of %s", errEnded, d.state.relative(process.LogFile())))
			}
		}()
	}
}
