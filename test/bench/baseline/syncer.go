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

package baseline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	kcpcache "github.com/kcp-dev/apimachinery/v2/pkg/cache"
	kcpinformers "github.com/kcp-dev/apimachinery/v2/third_party/informers"
	"github.com/kcp-dev/logicalcluster/v3"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// syncer writes mailbox objects to targets, and their status back.
type syncer struct {
	// mailboxes is a client for all mailboxes together.
	mailboxes dynamic.Interface
	// mailboxObjects caches the objects of all mailboxes. targets holds the targets by the logical clusters of their
	// mailboxes.
	mailboxObjects map[schema.GroupVersionResource]kcpcache.ScopeableSharedIndexInformer
	targets        map[logicalcluster.Name]*target
	// followed is the namespace that is followed.
	followed atomic.Pointer[string]
}

// target is one target, with its mailbox.
type target struct {
	mailbox               logicalcluster.Name
	mailboxClient, client dynamic.Interface
}

// newSyncer returns a syncer with complete caches.
func newSyncer(ctx context.Context, plan Config) (*syncer, error) {
	content, err := os.ReadFile(plan.Kubeconfig)
	if err != nil {
		return nil, err
	}
	config, err := unlimited(content)
	if err != nil {
		return nil, err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	at := func(endpoint, cluster string) (dynamic.Interface, error) {
		config := rest.CopyConfig(config)
		config.Host = endpoint + "/clusters/" + cluster
		return dynamic.NewForConfigAndClient(config, client)
	}
	s := &syncer{mailboxObjects: map[schema.GroupVersionResource]kcpcache.ScopeableSharedIndexInformer{}, targets: map[logicalcluster.Name]*target{}}
	if s.mailboxes, err = at(plan.Endpoint, "*"); err != nil {
		return nil, err
	}
	var synced []cache.InformerSynced
	for _, resource := range plan.Resources {
		synced = append(synced, s.watchMailboxes(ctx, resource))
	}
	for _, lists := range plan.ExtraLists {
		all, err := at(lists.Endpoint, "*")
		if err != nil {
			return nil, err
		}
		for _, resource := range lists.Resources {
			informer := newInformer(all.Resource(resource))
			go informer.RunWithContext(ctx)
			synced = append(synced, informer.HasSynced)
		}
	}
	for _, one := range plan.Targets {
		made, err := newTarget(one)
		if err != nil {
			return nil, err
		}
		if made.mailboxClient, err = at(plan.Endpoint, one.Mailbox); err != nil {
			return nil, err
		}
		s.targets[made.mailbox] = made
		for _, resource := range one.Resources {
			synced = append(synced, s.watchTarget(ctx, made, resource))
		}
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil, errors.New("the lists did not come")
	}
	return s, nil
}

// unlimited returns a client config for a connection of its own, without a rate limit.
func unlimited(kubeconfig []byte) (*rest.Config, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	return config, nil
}

func newTarget(plan Target) (*target, error) {
	config, err := unlimited(plan.Kubeconfig)
	if err != nil {
		return nil, err
	}
	below, err := dynamic.NewForConfig(config)
	return &target{mailbox: logicalcluster.Name(plan.Mailbox), client: below}, err
}

func (s *syncer) watchMailboxes(ctx context.Context, resource schema.GroupVersionResource) cache.InformerSynced {
	informer := newInformer(s.mailboxes.Resource(resource))
	// AddEventHandler fails only on a stopped informer.
	_, _ = informer.AddEventHandler(s.handler(ctx, func(ctx context.Context, object *unstructured.Unstructured) error {
		if to := s.targets[logicalcluster.From(object)]; to != nil {
			return to.apply(ctx, resource, object)
		}
		return nil
	}))
	s.mailboxObjects[resource] = informer
	go informer.RunWithContext(ctx)
	return informer.HasSynced
}

// newInformer returns an informer for all workspaces that a client reaches.
func newInformer(client dynamic.ResourceInterface) kcpcache.ScopeableSharedIndexInformer {
	return kcpinformers.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, options)
		},
	}, &unstructured.Unstructured{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
}

func (s *syncer) watchTarget(ctx context.Context, of *target, resource schema.GroupVersionResource) cache.InformerSynced {
	informer := dynamicinformer.NewFilteredDynamicInformer(of.client, resource, metav1.NamespaceAll, 0, cache.Indexers{},
		func(options *metav1.ListOptions) { options.LabelSelector = Label + "=true" }).Informer()
	_, _ = informer.AddEventHandler(s.handler(ctx, func(ctx context.Context, object *unstructured.Unstructured) error {
		return s.returnStatus(ctx, of, resource, object)
	}))
	go informer.RunWithContext(ctx)
	return informer.HasSynced
}

// handler calls do for each updated object of the followed namespace. It logs errors and does not retry.
func (s *syncer) handler(ctx context.Context, do func(context.Context, *unstructured.Unstructured) error) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, changed any) {
		object := changed.(*unstructured.Unstructured)
		if namespace := s.followed.Load(); namespace == nil || object.GetNamespace() != *namespace {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if err := do(ctx, object); err != nil {
			fmt.Fprintln(os.Stderr, "bare:", object.GetName(), err)
		}
	}}
}

func (s *syncer) handle(ctx context.Context, order Request) (objects int, err error) {
	switch order.Operation {
	case Burst:
		return s.burst(ctx, order)
	case Place:
		return s.place(ctx, order)
	case Follow:
		s.followed.Store(&order.Namespace)
		return 0, nil
	case Noop:
		return 0, nil
	default:
		return 0, fmt.Errorf("there is no order %q", order.Operation)
	}
}

// burst applies all objects of a namespace, with separate workers for each target.
func (s *syncer) burst(ctx context.Context, order Request) (objects int, err error) {
	found, err := s.mailboxObjects[order.Resource].GetIndexer().ByIndex(cache.NamespaceIndex, order.Namespace)
	if err != nil {
		return 0, err
	}
	work := map[*target][]*unstructured.Unstructured{}
	for _, one := range found {
		object := one.(*unstructured.Unstructured)
		if to := s.targets[logicalcluster.From(object)]; to != nil && !strings.HasPrefix(object.GetName(), "kube-") {
			work[to] = append(work[to], object)
			objects++
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	for to, all := range work {
		group.Go(func() error { return to.applyAll(ctx, order.Resource, all, order.Workers) })
	}
	return objects, group.Wait()
}

func (t *target) applyAll(ctx context.Context, resource schema.GroupVersionResource, objects []*unstructured.Unstructured, workers int) error {
	group, ctx := errgroup.WithContext(ctx)
	for part := range slices.Chunk(objects, (len(objects)+workers-1)/workers) {
		group.Go(func() error {
			for _, object := range part {
				if err := t.apply(ctx, resource, object); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// mark is as long as a hub's mark.
var mark = strings.Repeat("m", 520)

// apply applies the user's fields, with a label and an annotation.
func (t *target) apply(ctx context.Context, resource schema.GroupVersionResource, object *unstructured.Unstructured) error {
	content := map[string]any{"apiVersion": object.GetAPIVersion(), "kind": object.GetKind(), "metadata": map[string]any{
		"name": object.GetName(), "namespace": object.GetNamespace(),
		"labels": map[string]any{Label: "true"}, "annotations": map[string]any{markAnnotation: mark},
	}}
	for field, value := range object.Object {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, field) {
			content[field] = value
		}
	}
	_, err := t.client.Resource(resource).Namespace(object.GetNamespace()).Apply(ctx, object.GetName(), &unstructured.Unstructured{Object: content},
		metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	return err
}

// returnStatus writes a status to the mailbox.
func (s *syncer) returnStatus(ctx context.Context, of *target, resource schema.GroupVersionResource, object *unstructured.Unstructured) error {
	status, ok := object.Object["status"]
	if !ok {
		return nil
	}
	key := kcpcache.ToClusterAwareKey(of.mailbox.String(), object.GetNamespace(), object.GetName())
	cached, exists, err := s.mailboxObjects[resource].GetStore().GetByKey(key)
	if err != nil || !exists {
		return err
	}
	above := cached.(*unstructured.Unstructured)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": above.GetUID()}, "status": status})
	if err != nil {
		return err
	}
	_, err = of.mailboxClient.Resource(resource).Namespace(object.GetNamespace()).
		Patch(ctx, object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}
