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
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/test/framework"
)

var (
	publishedResources = synchubv1alpha1.GroupVersion.WithResource("publishedresources")
	syncTargets        = edgev2alpha1.GroupVersion.WithResource("synctargets")

	//go:embed manifests/inventory.yaml
	inventoryManifest string
)

// bind binds the inventory export, so that clusters can be registered in the workspace.
func (d *demo) bind(ctx context.Context) error {
	return framework.Apply(ctx, d.world.KCP.Workspace(inventoryWorkspace), inventoryManifest)
}

// awaitPublished waits until every PublishedResource is Ready.
func (d *demo) awaitPublished(ctx context.Context) error {
	return eventually(ctx, func(ctx context.Context) error {
		objects, err := framework.List(ctx, d.world.KCP.Workspace(hostingWorkspace), publishedResources, "", "")
		if err != nil {
			return err
		}
		for i := range objects {
			var published synchubv1alpha1.PublishedResource
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[i].Object, &published); err != nil {
				return err
			}
			if !meta.IsStatusConditionTrue(published.Status.Conditions, synchubv1alpha1.ConditionReady) {
				return notReady("PublishedResource", published.Name, published.Status.Conditions)
			}
		}
		return nil
	})
}

// perWorkspace gives each team namespaces of its own on the clusters.
var perWorkspace = &edgev2alpha1.Tenancy{Namespaces: edgev2alpha1.NamespacesPerWorkspace}

// register registers the clusters, so that each team has its own namespaces there, and the rights of the role edit in them.
func (d *demo) register(ctx context.Context) error {
	for _, cluster := range d.clusters {
		_, err := d.output(ctx, in("inventory", "synchub", "register", cluster.name,
			"--target-kubeconfig", d.state.kubeconfig(), "--target-context", cluster.name,
			"--hosting-kubeconfig", d.state.kubeconfig(), "--hosting-context", "hosting",
			"--tenancy", string(perWorkspace.Namespaces), "--tenant-role", "edit", "--labels", "env=prod", "--yes"))
		if err != nil {
			return err
		}
	}
	return nil
}

// awaitRegistered waits until the hub watches the mailboxes of all clusters.
func (d *demo) awaitRegistered(ctx context.Context) error {
	for _, cluster := range d.clusters {
		err := eventually(ctx, func(ctx context.Context) error {
			object, err := framework.Get(ctx, d.world.KCP.Workspace(inventoryWorkspace), syncTargets, "", cluster.name)
			if err != nil {
				return err
			}
			var syncTarget edgev2alpha1.SyncTarget
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &syncTarget); err != nil {
				return err
			}
			status := syncTarget.Status
			if status.Mailbox == nil || !meta.IsStatusConditionTrue(status.Conditions, edgev2alpha1.ConditionReady) {
				return notReady("SyncTarget", syncTarget.Name, status.Conditions)
			}
			cluster.mailbox = d.world.KCP.Workspace(status.Mailbox.Workspace)
			return d.keepWorkspace(mailboxOf(cluster.name), status.Mailbox.Workspace)
		})
		if err != nil {
			return err
		}
	}
	return d.hub.awaitReady(ctx)
}

// mailboxOf returns the name of the kubeconfig for a target's mailbox.
func mailboxOf(target string) string { return target + "-mailbox" }

// eventually polls until check succeeds. When ctx ends, it returns the last error of check.
func eventually(ctx context.Context, check func(context.Context) error) error {
	last := errors.New("not checked yet")
	err := wait.PollUntilContextCancel(ctx, pollEvery, true, func(ctx context.Context) (bool, error) {
		err := check(ctx)
		// The error of an interrupted check is not informative.
		if ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		return last
	}
	return nil
}

// notReady returns an error with all conditions of an object that is not Ready.
func notReady(kind, name string, conditions []metav1.Condition) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s is not Ready", kind, name)
	for _, condition := range conditions {
		fmt.Fprintf(&text, "\n  %s is %s, %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message)
	}
	return errors.New(text.String())
}
