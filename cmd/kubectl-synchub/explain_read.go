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
	"net/url"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/explain"
	"github.com/synchub-dev/synchub/provider/registration"
	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
)

// targetTimeout bounds the requests to a target, which may be unreachable.
const targetTimeout = 15 * time.Second

// facts reads all facts that are readable. It returns an error only if the question makes no sense.
func (o *explainOptions) facts(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget, resource string, key types.NamespacedName) (*explain.Facts, error) {
	facts := &explain.Facts{Now: time.Now(), SyncTarget: syncTarget, Key: key}
	var err error
	if facts.Published, err = o.published(ctx); err != nil {
		return nil, err
	}
	below, err := o.targetReader(ctx, syncTarget)
	if err != nil && o.target.kubeconfig != "" {
		return nil, err
	}
	facts.Target.Err = err
	if facts.Served.Err = o.readMailbox(ctx, facts, resource); facts.Served.Err != nil {
		facts.Resource = guessResource(below, resource)
	}
	if served := facts.Served.Value; served != nil && served.Namespaced != (facts.Key.Namespace != "") {
		if served.Namespaced {
			return nil, fmt.Errorf("%s are in namespaces: give NAMESPACE/NAME", facts.Resource)
		}
		return nil, fmt.Errorf("%s are in no namespace: give the NAME only", facts.Resource)
	}
	if facts.Target.Err == nil {
		facts.Target = below.readTarget(ctx, facts)
	}
	return facts, nil
}

// published returns the PublishedResources of the files, or of the hosting cluster. A source that the user names must
// be readable.
func (o *explainOptions) published(ctx context.Context) (observed explain.Observed[[]synchubv1alpha1.PublishedResource], err error) {
	if len(o.files) > 0 {
		found, err := readManifests(o.In, o.files)
		if err != nil {
			return observed, err
		}
		observed.Value = found.published
		return observed, nil
	}
	if o.hosting.kubeconfig == "" && o.hosting.context == "" {
		observed.Err = errors.New("they are in the hosting cluster, which was not named")
		return observed, nil
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.hosting.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.hosting.context}).ClientConfig()
	if err != nil {
		return observed, fmt.Errorf("cannot use the kubeconfig of the hosting cluster: %w", err)
	}
	hosting, err := clientOf(config)
	if err != nil {
		return observed, fmt.Errorf("cannot reach the hosting cluster: %w", err)
	}
	var list synchubv1alpha1.PublishedResourceList
	if err := hosting.List(ctx, &list); err != nil {
		observed.Err = fmt.Errorf("the hosting cluster does not tell: %w", err)
	}
	observed.Value = list.Items
	return observed, nil
}

// targetReader returns a reader for the cluster, with the kubeconfig that the user named or else with the hub's.
func (o *explainOptions) targetReader(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget) (*reader, error) {
	if o.target.kubeconfig != "" {
		admin, err := registration.LoadAdminConfig(o.target.kubeconfig, o.target.context)
		if err != nil {
			return nil, err
		}
		return newTargetReader(admin.Config)
	}
	workspace, err := o.client()
	if err != nil {
		return nil, err
	}
	return readerByCredentials(ctx, workspace, syncTarget)
}

// readerByCredentials returns a reader for the cluster of a SyncTarget, with the hub's kubeconfig.
func readerByCredentials(ctx context.Context, workspace client.Client, syncTarget *edgev2alpha1.SyncTarget) (*reader, error) {
	inventory := &registration.Inventory{Client: workspace}
	content, err := inventory.Kubeconfig(ctx, syncTarget)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the Secret with its kubeconfig cannot be read: %w", err)
	case content == nil:
		return nil, errors.New("there is no Secret with its kubeconfig")
	}
	config, err := kubeconfig.Parse(content)
	if err != nil {
		return nil, err
	}
	return newTargetReader(config)
}

func newTargetReader(config *rest.Config) (*reader, error) {
	config.Timeout = targetTimeout
	return newReader(config)
}

// workspaceReader returns a reader for another workspace of the kcp that serves the inventory workspace.
func (o *explainOptions) workspaceReader(workspace string) (*reader, error) {
	config, err := o.cluster.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	server, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	prefix, _, found := strings.Cut(server.Path, "/clusters/")
	if !found {
		return nil, fmt.Errorf("the current context is no workspace of kcp: its server %s has no /clusters/ in its path", config.Host)
	}
	server.Path = prefix + "/clusters/" + workspace
	config.Host = server.String()
	return newReader(config)
}

// guessResource returns the resource of an argument when the mailbox cannot resolve it. It asks the target, or else
// parses the argument literally.
func guessResource(target *reader, resource string) schema.GroupResource {
	if target != nil {
		if found, err := target.find(resource); err == nil {
			return found.GroupResource()
		}
	}
	return parseResource(resource)
}

var isVersion = regexp.MustCompile(`^v[0-9]`)

// parseResource parses the name of a resource without a server: deployments.v1.apps, or deployments.apps.
func parseResource(resource string) schema.GroupResource {
	full, group := schema.ParseResourceArg(strings.ToLower(resource))
	if full != nil && isVersion.MatchString(full.Version) {
		return full.GroupResource()
	}
	return group
}

// readTarget reads the object at the location on the target to which the mailbox object belongs.
func (r *reader) readTarget(ctx context.Context, facts *explain.Facts) (observed explain.Observed[*unstructured.Unstructured]) {
	place, err := facts.TargetRef()
	if err != nil {
		return observed
	}
	resource := place.GroupVersionResource
	if resource.Resource == "" {
		mapping, err := r.mapper.RESTMapping(place.GroupVersion().WithKind(place.Kind).GroupKind())
		if err != nil {
			observed.Err = err
			return observed
		}
		resource = mapping.Resource
	}
	if resource.Version == "" {
		if resource, err = r.mapper.ResourceFor(resource); err != nil {
			observed.Err = err
			return observed
		}
	}
	observed.Value, observed.Err = r.get(ctx, resource, place.NamespacedName)
	return observed
}
