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

package publish

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/registration"
)

// publisher publishes CustomResourceDefinitions in the hosting cluster.
type publisher struct {
	*publishOptions
	// hosting is nil in a client-side dry run without a cluster that answers.
	hosting  client.WithWatch
	existing []synchubv1alpha1.PublishedResource
	// replaced are the names of the schemas, by PublishedResource, whose definitions the command has changed.
	replaced map[string]string
}

// newPublisher asks the cluster which resources are published.
func (o *publishOptions) newPublisher(ctx context.Context) (*publisher, error) {
	made := &publisher{publishOptions: o, replaced: map[string]string{}}
	hosting, existing, err := o.listPublished(ctx)
	switch {
	case err == nil:
		made.hosting, made.existing = hosting, existing
	case o.DryRun == cli.DryRunClient && ctx.Err() == nil:
		o.Note(fmt.Sprintf("The cluster does not answer, so the command assumes that nothing is published there: %v", err))
	default:
		return nil, withMissingRight(err)
	}
	return made, nil
}

func (o *publishOptions) listPublished(ctx context.Context) (client.WithWatch, []synchubv1alpha1.PublishedResource, error) {
	config, err := o.Config()
	if err != nil {
		return nil, nil, err
	}
	hosting, err := cli.ClientOf(config)
	if err != nil {
		return nil, nil, err
	}
	var list synchubv1alpha1.PublishedResourceList
	err = hosting.List(ctx, &list)
	if meta.IsNoMatchError(err) {
		err = fmt.Errorf("the current cluster hosts no hub: it serves no PublishedResources. Choose another with --kubeconfig or --context: %w", err)
	}
	return hosting, list.Items, err
}

// plan returns the plan for each definition. It writes nothing. The error names all definitions that cannot be published.
func (p *publisher) plan(ctx context.Context, definitions []*unstructured.Unstructured) ([]Definition, error) {
	options := Options{Namespace: *p.Cluster.Namespace, InstallCRD: p.installCRD}
	var all []Definition
	var errs []error
	seen := map[string]bool{}
	for _, definition := range definitions {
		planned, err := PlanDefinition(ctx, definition, p.existing, options)
		name := planned.Resource.String()
		switch {
		case err != nil:
			errs = append(errs, err)
			continue
		case seen[name]:
			errs = append(errs, fmt.Errorf("the files define %s more than once: leave one CustomResourceDefinition", name))
		}
		seen[name] = true
		all = append(all, planned)
	}
	return all, errors.Join(errs...)
}

// apply writes the objects of one plan and reports them.
func (p *publisher) apply(ctx context.Context, planned Definition) error {
	p.noteDefinition(planned)
	if planned.ConfigMap == nil {
		return p.Print(planned.Existing, string(registration.Unchanged))
	}
	configMap, result, err := p.applyConfigMap(ctx, planned)
	if err != nil {
		return err
	}
	if result == registration.Changed && planned.Existing != nil && planned.Existing.Status.SchemaName != planned.SchemaName {
		p.replaced[planned.Existing.Name] = planned.Existing.Status.SchemaName
	}
	if err := p.Print(configMap, string(result)); err != nil {
		return err
	}
	resource, result, err := p.applyPublishedResource(ctx, planned)
	if err != nil {
		return err
	}
	return p.Print(resource, string(result))
}

// applyConfigMap creates the ConfigMap, or replaces the definition in the existing one.
func (p *publisher) applyConfigMap(ctx context.Context, planned Definition) (*corev1.ConfigMap, registration.Result, error) {
	desired, name := planned.ConfigMap, client.ObjectKeyFromObject(planned.ConfigMap)
	existing, err := p.getConfigMap(ctx, name)
	switch {
	case err != nil:
		return nil, "", withMissingRight(fmt.Errorf("cannot get the ConfigMap %s: %w", name, err))
	case existing == nil:
		made := desired.DeepCopy()
		return made, registration.Created, p.create(ctx, made, "ConfigMap "+name.String())
	case planned.Existing == nil && !IsOurs(existing):
		return nil, "", fmt.Errorf("the ConfigMap %s was not made by this command and is left as it is: delete it, or publish %s yourself", name, planned.Resource)
	}
	changed := existing.DeepCopy()
	metav1.SetMetaDataLabel(&changed.ObjectMeta, ManagedByLabel, ManagerName)
	if changed.Data == nil {
		changed.Data = map[string]string{}
	}
	maps.Copy(changed.Data, desired.Data)
	if apiequality.Semantic.DeepEqual(existing, changed) {
		return changed, registration.Unchanged, nil
	}
	return changed, registration.Changed, p.patch(ctx, changed, existing, "ConfigMap "+name.String())
}

// getConfigMap returns the ConfigMap, or nil if there is none.
func (p *publisher) getConfigMap(ctx context.Context, name types.NamespacedName) (*corev1.ConfigMap, error) {
	if p.hosting == nil {
		return nil, nil //nolint:nilnil // a missing ConfigMap is no error
	}
	found := &corev1.ConfigMap{}
	err := p.hosting.Get(ctx, name, found)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err) && p.DryRun == cli.DryRunClient:
		return nil, nil //nolint:nilnil // a missing ConfigMap is no error
	case err != nil:
		return nil, err
	}
	return found, nil
}

// applyPublishedResource creates the PublishedResource, or patches the existing one if it must change.
func (p *publisher) applyPublishedResource(ctx context.Context, planned Definition) (*synchubv1alpha1.PublishedResource, registration.Result, error) {
	what := "PublishedResource " + planned.Name()
	switch {
	case planned.Desired == nil:
		return planned.Existing, registration.Unchanged, nil
	case planned.Existing == nil:
		made := planned.Desired.DeepCopy()
		return made, registration.Created, p.create(ctx, made, what)
	default:
		changed := planned.Desired.DeepCopy()
		return changed, registration.Changed, p.patch(ctx, changed, planned.Existing, what)
	}
}

func (p *publisher) create(ctx context.Context, object client.Object, what string) error {
	if p.DryRun == cli.DryRunClient {
		return nil
	}
	err := p.WithDryRun(p.hosting).Create(ctx, object)
	switch {
	case apierrors.IsNotFound(err) && object.GetNamespace() != "":
		return fmt.Errorf("the cluster has no namespace %s: name the hub's namespace with -n: %w", object.GetNamespace(), err)
	case err != nil:
		return withMissingRight(fmt.Errorf("cannot create the %s: %w", what, err))
	}
	return nil
}

func (p *publisher) patch(ctx context.Context, object, before client.Object, what string) error {
	if p.DryRun == cli.DryRunClient {
		return nil
	}
	if err := p.WithDryRun(p.hosting).Patch(ctx, object, client.MergeFrom(before)); err != nil {
		return withMissingRight(fmt.Errorf("cannot change the %s: %w", what, err))
	}
	return nil
}

// withMissingRight adds the needed rights to an error of a user who lacks one.
func withMissingRight(err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	return fmt.Errorf("%w\nThe command needs the rights to get, create and patch ConfigMaps in the hub's namespace, and to list, watch, create and patch PublishedResources. "+
		"Without them, give the output of --dry-run=client -o yaml to an administrator of the cluster", err)
}

// waitReady waits until the PublishedResources of all plans are ready, with the schemas of the new definitions.
func (p *publisher) waitReady(ctx context.Context, planned []Definition) error {
	var publications []Publication
	for _, definition := range planned {
		publications = append(publications, definition.Publication)
	}
	wait := ReadyWait{
		InventoryOptions: p.InventoryOptions, Hosting: p.hosting, WaitFlags: p.WaitFlags,
		HasOldSchema: func(resource *synchubv1alpha1.PublishedResource) bool {
			former, ok := p.replaced[resource.Name]
			return ok && resource.Status.SchemaName == former
		},
	}
	return wait.Run(ctx, publications)
}
