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
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

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

// register registers each cluster as an operator would: it creates a Secret with the kubeconfig, and a SyncTarget
// that names the Secret.
func (d *demo) register(ctx context.Context) error {
	for _, target := range d.targets {
		kubeconfig, err := os.ReadFile(d.state.kubeconfig(target.name))
		if err != nil {
			return fmt.Errorf("read the kubeconfig of %s: %w", target.name, err)
		}
		manifest, err := target.registration(string(kubeconfig))
		if err != nil {
			return err
		}
		if err := framework.Apply(ctx, d.world.KCP.Workspace(inventoryWorkspace), manifest); err != nil {
			return err
		}
	}
	return nil
}

// registration returns the manifest of a target's Secret and SyncTarget.
func (t *target) registration(kubeconfig string) (string, error) {
	var manifest strings.Builder
	for _, object := range []map[string]any{
		{
			"apiVersion": "v1",
			"kind":       "Secret",
			"metadata": map[string]any{
				"name":      t.name,
				"namespace": edgev2alpha1.DefaultCredentialNamespace,
				"labels":    map[string]string{edgev2alpha1.LabelCredential: edgev2alpha1.CredentialKubeconfig},
				// The reference in the SyncTarget grants nothing: the Secret must name the SyncTargets that may use
				// it.
				"annotations": map[string]string{edgev2alpha1.AnnotationAllowedSyncTargets: t.name},
			},
			"stringData": map[string]string{edgev2alpha1.DefaultCredentialKey: kubeconfig},
		},
		{
			"apiVersion": edgev2alpha1.GroupVersion.String(),
			"kind":       "SyncTarget",
			"metadata":   map[string]any{"name": t.name, "labels": t.labels},
			"spec":       map[string]any{"kubeconfigSecretRef": map[string]any{"name": t.name}},
		},
	} {
		document, err := yaml.Marshal(object)
		if err != nil {
			return "", fmt.Errorf("write the registration of %s: %w", t.name, err)
		}
		fmt.Fprintf(&manifest, "---\n%s", document)
	}
	return manifest.String(), nil
}

// awaitRegistered waits until every SyncTarget is Ready and its mailbox is known.
func (d *demo) awaitRegistered(ctx context.Context) error {
	for _, target := range d.targets {
		err := eventually(ctx, func(ctx context.Context) error {
			object, err := framework.Get(ctx, d.world.KCP.Workspace(inventoryWorkspace), syncTargets, "", target.name)
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
			target.mailbox = d.world.KCP.Workspace(status.Mailbox.Workspace)
			return d.keepWorkspaceKubeconfig(mailboxOf(target.name), status.Mailbox.Workspace)
		})
		if err != nil {
			return err
		}
	}
	return nil
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
