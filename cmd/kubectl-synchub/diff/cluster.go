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
	"errors"
	"fmt"
	"sync"

	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
)

const (
	// minListed objects of a resource in a namespace, or more, are listed: one list is cheaper than so many single reads.
	minListed = 10
	// pageSize and maxPages bound a list. Objects beyond it are read one by one.
	pageSize, maxPages = 500, 4
)

// cluster is the cluster of a SyncTarget.
type cluster struct {
	// inventory is the logical cluster of the SyncTarget. syncTarget has only the name and the UID if the user may not read it.
	inventory  logicalcluster.Name
	syncTarget *edgev2alpha1.SyncTarget
	// isAmbiguous is true if a SyncTarget of another inventory has the same name.
	isAmbiguous bool
	// reader reads the cluster. It is nil if err is set, the reason why the cluster cannot be asked.
	reader *cli.Reader
	err    error

	lock sync.Mutex
	// writers are clients for dry runs, by the user that they impersonate.
	writers map[string]dynamic.Interface
	// wanted are the numbers of objects that will be read, and lists what was listed for them.
	wanted map[place]int
	lists  map[place]*list
}

// place is a resource in a namespace.
type place struct {
	resource  schema.GroupVersionResource
	namespace string
}

// list are the objects of a place.
type list struct {
	once    sync.Once
	objects map[string]*unstructured.Unstructured
	// complete is true if the place has no other objects.
	complete bool
}

// name returns the name of the SyncTarget, with its inventory if SyncTargets of several inventories have the name.
func (c *cluster) name() string {
	if c.isAmbiguous {
		return c.inventory.String() + "/" + c.syncTarget.Name
	}
	return c.syncTarget.Name
}

// setAmbiguous sets which clusters have the name of a SyncTarget of another inventory.
func setAmbiguous(clusters []*cluster) {
	inventories := map[string]map[logicalcluster.Name]bool{}
	for _, one := range clusters {
		if inventories[one.syncTarget.Name] == nil {
			inventories[one.syncTarget.Name] = map[logicalcluster.Name]bool{}
		}
		inventories[one.syncTarget.Name][one.inventory] = true
	}
	for _, one := range clusters {
		one.isAmbiguous = len(inventories[one.syncTarget.Name]) > 1
	}
}

// isDrained reports whether the hub removes all its objects from the cluster, or leaves the cluster.
func (c *cluster) isDrained() bool {
	return c.syncTarget.Spec.Drain || c.syncTarget.DeletionTimestamp != nil
}

// expect announces that an object will be read.
func (c *cluster) expect(at place) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.wanted == nil {
		c.wanted, c.lists = map[place]int{}, map[place]*list{}
	}
	if c.wanted[at]++; c.wanted[at] == minListed {
		c.lists[at] = &list{}
	}
}

// get returns an object of the cluster, or nil if it does not exist.
func (c *cluster) get(ctx context.Context, resource schema.GroupVersionResource, key types.NamespacedName) (*unstructured.Unstructured, error) {
	at := place{resource, key.Namespace}
	c.lock.Lock()
	listed := c.lists[at]
	c.lock.Unlock()
	if listed != nil {
		listed.once.Do(func() { c.list(ctx, at, listed) })
		if object := listed.objects[key.Name]; object != nil || listed.complete {
			return object, nil
		}
	}
	return c.reader.Get(ctx, resource, key)
}

// list lists the objects of a place. If it fails, for example because the user may only get single objects, these are read one by one.
func (c *cluster) list(ctx context.Context, at place, into *list) {
	into.objects = map[string]*unstructured.Unstructured{}
	options := metav1.ListOptions{Limit: pageSize}
	for range maxPages {
		page, err := c.reader.Objects.Resource(at.resource).Namespace(at.namespace).List(ctx, options)
		if err != nil {
			return
		}
		for i := range page.Items {
			into.objects[page.Items[i].GetName()] = &page.Items[i]
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			into.complete = true
			return
		}
	}
}

// dryRun returns the object that an apply of the manager as the user would leave; an empty user is the reader's own.
func (c *cluster) dryRun(ctx context.Context, resource schema.GroupVersionResource, object *unstructured.Unstructured, manager, user string) (*unstructured.Unstructured, error) {
	writer, err := c.writerAs(user)
	if err != nil {
		return nil, err
	}
	options := metav1.ApplyOptions{FieldManager: manager, Force: true, DryRun: []string{metav1.DryRunAll}}
	return writer.Resource(resource).Namespace(object.GetNamespace()).Apply(ctx, object.GetName(), object, options)
}

// writerAs returns a client that impersonates a user.
func (c *cluster) writerAs(user string) (dynamic.Interface, error) {
	if user == "" {
		return c.reader.Objects, nil
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	if writer, ok := c.writers[user]; ok {
		return writer, nil
	}
	config := rest.CopyConfig(c.reader.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	writer, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	if c.writers == nil {
		c.writers = map[string]dynamic.Interface{}
	}
	c.writers[user] = writer
	return writer, nil
}

// targetAccess opens clusters with the kubeconfig that the user names, or else with the hub's.
type targetAccess struct{ cli.TargetFlags }

// reader returns a reader of the cluster of a SyncTarget. workspace reads its inventory. isOnly is true if no other cluster is asked.
func (a *targetAccess) reader(ctx context.Context, workspace client.Client, syncTarget *edgev2alpha1.SyncTarget, isOnly bool) (*cli.Reader, error) {
	if a.Kubeconfig == "" {
		reader, err := cli.ReaderByCredentials(ctx, workspace, syncTarget)
		if err != nil {
			return nil, fmt.Errorf("%w; give --target-kubeconfig, a kubeconfig with a context of the SyncTarget's name", err)
		}
		return reader, nil
	}
	named := a.TargetFlags
	loaded, err := clientcmd.LoadFromFile(a.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("cannot read the target's kubeconfig: %w", err)
	}
	_, hasContext := loaded.Contexts[syncTarget.Name]
	switch {
	case a.Context == "" && hasContext:
		named.Context = syncTarget.Name
	case !isOnly:
		return nil, errors.New("the kubeconfig of --target-kubeconfig has no context of this name")
	}
	return named.Reader()
}
