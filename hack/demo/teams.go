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
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/controllers/plan/tenancy"
	"github.com/synchub-dev/synchub/hack/demo/timeline"
	"github.com/synchub-dev/synchub/test/framework"
)

const (
	// namespace and web name the Deployment that each team writes, and placement its EdgePlacement.
	namespace, web, placement = "app", "web", "web"
	location                  = "prod"
	// manifestFile is what the teams apply.
	manifestFile = "web.yaml"
)

var (
	//go:embed manifests/location.yaml
	locationManifest string
	//go:embed manifests/web.yaml
	webManifest string
)

// team has a workspace of its own.
type team struct {
	name    string
	logical logicalcluster.Name
	// config is the administrator's client configuration for the workspace.
	config *rest.Config
}

func (t *team) workspace() string { return "root:" + t.name }

// namespaceOnClusters is the name of the team's namespace on the clusters, which the teams share.
func (t *team) namespaceOnClusters() string {
	return tenancy.NamingOf(perWorkspace).Namespace(t.logical, namespace)
}

func (d *demo) createTeam(ctx context.Context, t *team) error {
	workspace, err := framework.CreateWorkspace(ctx, d.world.KCP.Config, "root", t.name, "")
	if err != nil {
		return err
	}
	t.logical = logicalcluster.Name(workspace.Spec.Cluster)
	t.config = d.world.KCP.Workspace(t.workspace())
	return d.keepWorkspace(t.name, t.workspace())
}

// offer creates the Location of the fleet, which no workspace may use yet.
func (d *demo) offer(ctx context.Context) error {
	return framework.Apply(ctx, d.world.KCP.Workspace(inventoryWorkspace), locationManifest)
}

// share lets both teams use the fleet.
func (d *demo) share(ctx context.Context) error {
	d.screen.Println("\nTwo teams share the fleet. The administrator of the inventory lets them:\n")
	allow := []string{"synchub", "allow", location, "--yes"}
	for _, team := range d.teams {
		allow = append(allow, "--workspace", team.workspace())
	}
	if err := d.show(ctx, in("inventory", allow...)); err != nil {
		return err
	}
	d.screen.Println("\nEach team says once that its workspace runs on the fleet:\n")
	for _, team := range d.teams {
		if err := d.show(ctx, in(team.name, "synchub", "bind", "compute", inventoryWorkspace, "--name", placement)); err != nil {
			return err
		}
	}
	return nil
}

// apply applies the same manifest in both workspaces, with the version of the image.
func (d *demo) apply(ctx context.Context, version int, teams ...*team) error {
	file := filepath.Join(d.state.dir, manifestFile)
	if err := os.WriteFile(file, fmt.Appendf(nil, webManifest, version), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	for _, team := range teams {
		for _, cluster := range d.clusters {
			d.record(timeline.Route{Team: team.name, Cluster: cluster.name}, timeline.Created, time.Now())
		}
		if err := d.show(ctx, in(team.name, "apply", "--server-side", "--filename", d.state.relative(file))); err != nil {
			return err
		}
	}
	return nil
}
