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
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/synchub-dev/synchub/test/framework"
)

// workload is the content that a user creates in a mailbox.
type workload struct {
	namespace, deployment string
	// configManifest contains the namespace, the SyncerConfig that selects everything, and the objects that the
	// Deployment needs.
	configManifest, deploymentManifest string
}

var (
	//go:embed manifests/common.yaml
	commonManifest string
	//go:embed manifests/commond.yaml
	commondManifest string
	//go:embed manifests/special.yaml
	specialManifest string
	//go:embed manifests/speciald.yaml
	specialdManifest string

	common  = workload{"commonstuff", "commond", commonManifest, commondManifest}
	special = workload{"specialstuff", "speciald", specialManifest, specialdManifest}
)

// greeting is the name of the ConfigMap in the common workload.
const greeting = "greeting"

// fill creates a target's workloads in its mailbox. It calls created for each Deployment, with the time of the
// creation.
func (t *target) fill(ctx context.Context, created func(namespace, deployment string, at time.Time)) error {
	client, err := dynamic.NewForConfig(t.mailbox)
	if err != nil {
		return fmt.Errorf("make a client for the mailbox of %s: %w", t.name, err)
	}
	for _, w := range t.workloads {
		if err := framework.Apply(ctx, t.mailbox, w.configManifest); err != nil {
			return err
		}
		deployment := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(w.deploymentManifest), &deployment.Object); err != nil {
			return fmt.Errorf("read the manifest of %s: %w", w.deployment, err)
		}
		if _, err := client.Resource(deployments).Namespace(w.namespace).Create(ctx, deployment, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create %s/%s in the mailbox of %s: %w", w.namespace, w.deployment, t.name, err)
		}
		created(w.namespace, w.deployment, time.Now())
	}
	return nil
}

// checkRest waits until each cluster has the ConfigMap of the common workload. It returns an error if a cluster has a
// Deployment that its mailbox does not have.
func (d *demo) checkRest(ctx context.Context) error {
	for _, target := range d.targets {
		err := eventually(ctx, func(ctx context.Context) error {
			_, err := framework.Get(ctx, target.config, configMaps, common.namespace, greeting)
			return err
		})
		if err != nil {
			return fmt.Errorf("look for the ConfigMap on %s: %w", target.name, err)
		}
		objects, err := framework.List(ctx, target.config, deployments, "", "")
		if err != nil {
			return fmt.Errorf("list the Deployments on %s: %w", target.name, err)
		}
		if len(objects) != len(target.workloads) {
			return fmt.Errorf("%s has %d Deployments, and its mailbox %d", target.name, len(objects), len(target.workloads))
		}
	}
	return nil
}
