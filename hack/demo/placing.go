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
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/servers"
)

const (
	shopWorkspace = "root:shop"
	// shopNamespace and web name the Deployment that is written once; placement is the name of its EdgePlacement.
	shopNamespace, web, placement = "shop", "web", "shop"
)

var (
	edgePlacements = edgev2alpha1.GroupVersion.WithResource("edgeplacements")

	//go:embed manifests/location.yaml
	locationManifest string
	//go:embed manifests/shop.yaml
	shopManifest string
)

// place writes one Deployment into a workspace of its own, and shows where it runs while labels and rules change.
func (d *demo) place(ctx context.Context) error {
	d.screen.Println("\nA team writes a Deployment once, in its own workspace root:shop. An EdgePlacement says where it runs.\n")
	return d.take(ctx,
		step{"kubectl synchub allow prod --workspace root:shop", stepLimit, d.allow},
		step{"kubectl synchub bind compute root:inventory --location-selectors env=prod", stepLimit, d.bindCompute},
		step{"run web on one cluster of env=prod, and bring its status back", stepLimit, d.placeOnOne},
		step{"label that cluster env=test: web moves, the new copy before the old", stepLimit, d.moveByLabel},
		step{"label it env=prod again, and use all clusters", stepLimit, d.placeOnAll},
		step{"roll a new image out, one cluster after the other: kubectl synchub rollout status shop", stepLimit, d.changeImage},
		step{"kubectl synchub rollout undo shop", stepLimit, d.undo},
	)
}

// allow makes a Location available to the workspace.
func (d *demo) allow(ctx context.Context) error {
	if err := framework.Apply(ctx, d.world.KCP.Workspace(inventoryWorkspace), locationManifest); err != nil {
		return err
	}
	_, err := d.pluginIn(ctx, "inventory", "allow", "prod", "--workspace", shopWorkspace, "--yes")
	return err
}

// bindCompute makes the workspace a workload workspace.
func (d *demo) bindCompute(ctx context.Context) error {
	_, err := d.plugin(ctx, "bind", "compute", inventoryWorkspace, "--location-selectors", "env=prod", "--name", placement, "--provider-workspace", providerWorkspace)
	return err
}

func (d *demo) placeOnOne(ctx context.Context) error {
	shop := d.world.KCP.Workspace(shopWorkspace)
	if err := patch(ctx, shop, edgePlacements, "", placement, `{"spec": {"numberOfClusters": 1}}`); err != nil {
		return err
	}
	if err := framework.Apply(ctx, shop, shopManifest); err != nil {
		return err
	}
	return d.awaitAvailable(ctx, 1)
}

// moveByLabel takes the label env=prod from the cluster on which the Deployment runs.
func (d *demo) moveByLabel(ctx context.Context) error {
	before, err := d.running(ctx)
	if err != nil {
		return err
	}
	if err := patch(ctx, d.world.KCP.Workspace(inventoryWorkspace), syncTargets, "", before[0], `{"metadata": {"labels": {"env": "test"}}}`); err != nil {
		return err
	}
	d.moved = before[0]
	return eventually(ctx, func(ctx context.Context) error {
		now, err := d.running(ctx)
		if err == nil && (len(now) != 1 || now[0] == before[0]) {
			err = fmt.Errorf("web runs on %s", strings.Join(now, " and "))
		}
		if err == nil {
			d.screen.Println(fmt.Sprintf("  web has left %s and runs on %s", before[0], now[0]))
		}
		return err
	})
}

func (d *demo) placeOnAll(ctx context.Context) error {
	if err := patch(ctx, d.world.KCP.Workspace(inventoryWorkspace), syncTargets, "", d.moved, `{"metadata": {"labels": {"env": "prod"}}}`); err != nil {
		return err
	}
	rules := `{"spec": {"numberOfClusters": null, "rolloutStrategy": {"type": "Progressive", "progressive": {"maxConcurrency": 1}}}}`
	if err := patch(ctx, d.world.KCP.Workspace(shopWorkspace), edgePlacements, "", placement, rules); err != nil {
		return err
	}
	return d.awaitRollout(ctx)
}

func (d *demo) changeImage(ctx context.Context) error {
	image := `{"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "example.org/web:2"}]}}}}`
	if err := patch(ctx, d.world.KCP.Workspace(shopWorkspace), deployments, shopNamespace, web, image); err != nil {
		return err
	}
	return d.awaitRollout(ctx)
}

func (d *demo) undo(ctx context.Context) error {
	if _, err := d.plugin(ctx, "rollout", "undo", placement); err != nil {
		return err
	}
	return d.awaitRollout(ctx)
}

// awaitRollout waits until all clusters have the Deployment as it is in the workspace.
func (d *demo) awaitRollout(ctx context.Context) error {
	output, err := d.plugin(ctx, "rollout", "status", placement)
	if err != nil {
		return err
	}
	d.screen.Println("  " + strings.ReplaceAll(strings.TrimSpace(output), "\n", "\n  "))
	return d.awaitAvailable(ctx, len(d.targets))
}

// awaitAvailable waits until the Deployment runs on so many clusters, and its status in the workspace shows it.
func (d *demo) awaitAvailable(ctx context.Context, clusters int) error {
	const replicas = 2
	err := eventually(ctx, func(ctx context.Context) error {
		object, err := framework.Get(ctx, d.world.KCP.Workspace(shopWorkspace), deployments, shopNamespace, web)
		if err != nil {
			return err
		}
		available, _, _ := unstructured.NestedInt64(object.Object, "status", "availableReplicas")
		names, err := d.running(ctx)
		if err == nil && (len(names) != clusters || available != int64(replicas)) {
			err = fmt.Errorf("web runs on %d clusters, and %d replicas are available on each", len(names), available)
		}
		return err
	})
	if err != nil {
		return err
	}
	names, err := d.running(ctx)
	if err == nil {
		d.screen.Println(fmt.Sprintf("  web runs on %s; its status in root:shop has %d available replicas", strings.Join(names, " and "), replicas*clusters))
	}
	return err
}

// running returns the names of the clusters that have the Deployment.
func (d *demo) running(ctx context.Context) (names []string, err error) {
	for _, target := range d.targets {
		exists, err := framework.Exists(ctx, target.config, deployments, shopNamespace, web)
		if err != nil {
			return nil, err
		}
		if exists {
			names = append(names, target.name)
		}
	}
	if len(names) == 0 {
		return nil, errors.New("web runs nowhere")
	}
	return names, nil
}

// plugin runs kubectl-synchub in the workspace of the shop, and returns its output.
func (d *demo) plugin(ctx context.Context, args ...string) (string, error) {
	return d.pluginIn(ctx, "shop", args...)
}

// pluginIn runs kubectl-synchub in a workspace, and returns its output.
func (d *demo) pluginIn(ctx context.Context, workspace string, args ...string) (string, error) {
	name := strings.Join(args[:min(2, len(args))], "-")
	process, err := servers.Start(d.options, name, filepath.Join(d.options.Bin, "kubectl-synchub"), append(args, "--kubeconfig", d.state.kubeconfig(workspace)), nil)
	if err != nil {
		return "", err
	}
	code, err := process.Wait(ctx)
	if err != nil {
		return "", errors.Join(err, process.Kill9())
	}
	output := process.LogTail(tailLines)
	if code != 0 {
		return "", fmt.Errorf("the plugin ended with exit code %d:\n%s", code, output)
	}
	return output, nil
}

// patchLimit bounds one request.
const patchLimit = 10 * time.Second

func patch(ctx context.Context, config *rest.Config, resource schema.GroupVersionResource, namespace, name, content string) error {
	ctx, cancel := limited(ctx, patchLimit)
	defer cancel()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	_, err = client.Resource(resource).Namespace(namespace).Patch(ctx, name, types.MergePatchType, []byte(content), metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("change %s %s: %w", resource.Resource, name, err)
	}
	return nil
}
