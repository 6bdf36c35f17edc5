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

package diff

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/pager"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
)

const publishedLong = `Show what a change of PublishedResources would do to the objects that are in the mailboxes now. Nothing is written.

In an inventory workspace the command asks about the mailboxes of its SyncTargets, and in a mailbox about that one. It shows only what
the rules in the files change, not what else differs on a cluster. The API of a PublishedResource, its schema and its limits are not compared.

Output, access to clusters and exit status are as with kubectl synchub diff.`

const publishedExample = `  kubectl synchub diff published-resource -f deployments.yaml

  # On one cluster
  kubectl synchub diff published-resource -f deployments.yaml --sync-targets florin`

func newPublishedResourceCommand(streams genericiooptions.IOStreams) *cobra.Command {
	command, _ := newCommand(streams, &cobra.Command{
		Use: "published-resource -f FILE", Aliases: []string{"publishedresource", "pubres"},
		Short: "Show what a change of PublishedResources would do to each cluster", Long: publishedLong, Example: publishedExample,
	}, "PublishedResources", diffPublished)
	return command
}

// diffPublished finds the items of other PublishedResources: all objects of the resources in all mailboxes.
func diffPublished(ctx context.Context, o *options, here *cli.Reader, objects []*unstructured.Unstructured) (*scope, error) {
	var changed []synchubv1alpha1.PublishedResource
	for _, object := range objects {
		if object.GroupVersionKind() != synchubv1alpha1.GroupVersion.WithKind("PublishedResource") {
			return nil, fmt.Errorf("%s %s is no PublishedResource", object.GetKind(), object.GetName())
		}
		var one synchubv1alpha1.PublishedResource
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &one, true); err != nil {
			return nil, fmt.Errorf("PublishedResource %s: %w", object.GetName(), err)
		}
		changed = append(changed, one)
	}
	boxes, err := o.mailboxes(ctx, here)
	if err != nil {
		return nil, err
	}
	all := &scope{clusters: boxes.clusters()}
	for _, box := range boxes.all {
		for i := range changed {
			if box.cluster.err != nil {
				break
			}
			found, err := box.ofPublished(ctx, &changed[i])
			if err != nil {
				box.cluster.err = err
			}
			all.items = append(all.items, found...)
		}
	}
	return all, nil
}

// ofPublished returns the items of the objects of a PublishedResource that is changed. A mailbox that does not serve the API has none.
func (m *mailbox) ofPublished(ctx context.Context, changed *synchubv1alpha1.PublishedResource) (items []*item, err error) {
	after := m.facts
	after.Published.Value = withPublished(m.facts.Published.Value, changed)
	for _, resource := range m.resourcesOf(changed) {
		served, err := m.reader.Served(resource)
		if err != nil {
			return nil, err
		}
		if served == nil {
			continue
		}
		before := m.rulesFor(served)
		after.Resource, after.Served.Value = resource, served
		next := newRuleSet(after)
		if next.predictor.Err() != nil {
			return nil, fmt.Errorf("the PublishedResource %s is wrong: %w", changed.Name, next.predictor.Err())
		}
		namespaces := map[string]*unstructured.Unstructured{}
		err = each(ctx, m.reader, before.predictor.Resource().GroupVersionResource, func(object *unstructured.Unstructured) error {
			key := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
			if _, ok := namespaces[key.Namespace]; !ok && key.Namespace != "" {
				namespaces[key.Namespace], _ = m.reader.Get(ctx, cli.NamespacesResource, types.NamespacedName{Name: key.Namespace})
			}
			items = append(items, &item{
				cluster: m.cluster, key: key, namespace: namespaces[key.Namespace], before: side{object, before}, after: side{object, next}, onlyRules: true,
			})
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("cannot list %s in its mailbox: %w", resource, err)
		}
	}
	return items, nil
}

// withPublished returns the PublishedResources with another version of one of them. A new one is the youngest.
func withPublished(all []synchubv1alpha1.PublishedResource, changed *synchubv1alpha1.PublishedResource) []synchubv1alpha1.PublishedResource {
	all = slices.Clone(all)
	for i := range all {
		if all[i].Name == changed.Name {
			all[i].Spec = changed.Spec
			return all
		}
	}
	added := *changed
	added.CreationTimestamp = metav1.Now()
	return append(all, added)
}

// resourcesOf returns the resources that a PublishedResource has in mailboxes, before and after its change.
func (m *mailbox) resourcesOf(changed *synchubv1alpha1.PublishedResource) (resources []schema.GroupResource) {
	add := func(spec *synchubv1alpha1.PublishedResourceSpec) {
		inMailbox := publishedresource.InMailbox(spec)
		resource := schema.GroupResource{Group: inMailbox.Group, Resource: inMailbox.Resource}
		if resource.Resource == "" {
			mapping, err := m.reader.Mapper.RESTMapping(schema.GroupKind{Group: inMailbox.Group, Kind: inMailbox.Kind})
			if err != nil {
				return
			}
			resource = mapping.Resource.GroupResource()
		}
		if !slices.Contains(resources, resource) {
			resources = append(resources, resource)
		}
	}
	add(&changed.Spec)
	for i := range m.facts.Published.Value {
		if one := &m.facts.Published.Value[i]; one.Name == changed.Name {
			add(&one.Spec)
		}
	}
	return resources
}

// each calls a function for each object of a resource.
func each(ctx context.Context, r *cli.Reader, resource schema.GroupVersionResource, call func(*unstructured.Unstructured) error) error {
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return r.Objects.Resource(resource).List(ctx, options)
	})
	return pages.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error { return call(item.(*unstructured.Unstructured)) })
}
