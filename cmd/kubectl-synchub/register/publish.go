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

package register

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/publish"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/registration"
)

// publishing creates PublishedResources for the requested APIs.
type publishing struct {
	*registerOptions
	hosting      client.WithWatch
	publications []publish.Publication
	// forbidden is the error of a write that the hosting cluster forbids to the user.
	forbidden error
}

// planPublishing decides which APIs to publish. It creates nothing.
func (o *registerOptions) planPublishing(ctx context.Context, plan *registration.Registrar) (*publishing, error) {
	if !o.hosting.IsSet() {
		if len(plan.Requested.Resources)+len(plan.Requested.Additional) > 0 {
			o.Note("Unpublished resources are not brought to mailboxes: to publish them, name the hosting cluster by --hosting-kubeconfig or --hosting-context.")
		}
		return &publishing{registerOptions: o}, nil
	}
	hosting, err := o.hosting.Client(o.Cluster)
	if err != nil {
		return nil, err
	}
	cluster, err := registration.InventoryID(ctx, plan.Inventory.Client)
	if err != nil {
		return nil, err
	}
	importing := &publishing{registerOptions: o, hosting: hosting}
	var existing synchubv1alpha1.PublishedResourceList
	err = hosting.List(ctx, &existing)
	switch {
	case apierrors.IsForbidden(err) && len(plan.Requested.Resources)+len(plan.Requested.Additional) > 0:
		importing.forbidden = err
	case meta.IsNoMatchError(err):
		return nil, fmt.Errorf("the cluster of --hosting-kubeconfig and --hosting-context hosts no hub: it serves no PublishedResources: %w", err)
	case err != nil:
		return nil, fmt.Errorf("in the hosting cluster: %w", err)
	}
	if err := o.addPublishedRules(plan, existing.Items); err != nil {
		return nil, err
	}
	var resources []schema.GroupResource
	for _, resource := range slices.Concat(plan.Requested.Resources, plan.Requested.Additional) {
		resources = append(resources, resource.GroupResource())
	}
	source := synchubv1alpha1.SyncTargetSchema{Cluster: cluster, Name: plan.Name}
	importing.publications, err = publish.Plan(resources, source, plan.TargetClient.RESTMapper(), existing.Items)
	if err != nil {
		return nil, fmt.Errorf("--resources: %w", err)
	}
	for _, found := range importing.publications {
		if found.HasOtherSchema(synchubv1alpha1.SchemaFrom{SyncTarget: &source}) {
			o.Note(fmt.Sprintf("%s is published already, not from this target: the PublishedResource %s is left as it is.", found.Resource, found.Existing.Name))
		}
	}
	return importing, nil
}

// addPublishedRules grants the hub rights for all published resources, unless --resources is given.
func (o *registerOptions) addPublishedRules(plan *registration.Registrar, existing []synchubv1alpha1.PublishedResource) error {
	published, unserved, err := registration.PublishedResources(existing, plan.TargetClient.RESTMapper())
	if err != nil {
		return err
	}
	for _, name := range unserved {
		o.Note(fmt.Sprintf("The target does not serve the kind of the PublishedResource %s, so no rights are given for it: name its plural with --add-resources.", name))
	}
	plan.Requested.Published = published
	return nil
}

// publish creates the PublishedResources. A forbidden write is no error here: remainingSteps reports it.
func (i *publishing) publish(ctx context.Context) error {
	for _, found := range i.publications {
		if found.Existing != nil {
			i.Report(registration.Change{Object: found.Existing, Result: registration.Unchanged})
			continue
		}
		if i.forbidden != nil {
			continue
		}
		made := found.Desired.DeepCopy()
		switch err := i.WithDryRun(i.hosting).Create(ctx, made); {
		case apierrors.IsForbidden(err):
			i.forbidden = err
			continue
		case apierrors.IsAlreadyExists(err):
			return fmt.Errorf("the hosting cluster has a PublishedResource %s that publishes something else: publish %s under another name yourself", made.Name, found.Resource)
		case err != nil:
			return fmt.Errorf("cannot publish %s in the hosting cluster: %w", found.Resource, err)
		}
		i.Report(registration.Change{Object: made, Result: registration.Created})
	}
	return nil
}

// remainingSteps returns an error with the manifests that somebody else must apply for the user, or nil.
func (i *publishing) remainingSteps() error {
	if i.forbidden == nil {
		return nil
	}
	var manifests []string
	for _, found := range i.publications {
		if found.Desired == nil {
			continue
		}
		manifest, err := cli.Manifest(found.Desired)
		if err != nil {
			return err
		}
		text, err := yaml.Marshal(manifest)
		if err != nil {
			return err
		}
		manifests = append(manifests, string(text))
	}
	return fmt.Errorf("the target is registered, but the hosting cluster does not let you publish its resources: %w\nHave this applied there, unless it is published already:\n%s", i.forbidden, strings.Join(manifests, "---\n"))
}

// waitPublished waits until the PublishedResources are ready.
func (i *publishing) waitPublished(ctx context.Context) error {
	wait := publish.ReadyWait{InventoryOptions: i.InventoryOptions, Hosting: i.hosting, WaitFlags: i.WaitFlags}
	if i.forbidden == nil {
		return wait.Run(ctx, i.publications)
	}
	return nil
}
