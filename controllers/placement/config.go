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

package placement

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	gosync "sync"

	"github.com/kcp-dev/logicalcluster/v3"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/topic"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

// ConfigName is the name of the SyncerConfig by which a mailbox selects the copies of placements. The hub owns it.
const ConfigName = "placement"

// mailboxConfigs knows what the SyncerConfig of each mailbox must select: the resources of which the mailbox has copies, or is to
// have some, and the upsync of the placements.
type mailboxConfigs struct {
	lock      gosync.Mutex
	mailboxes map[logicalcluster.Name]*mailboxUse
}

// mailboxUse is what placements use a mailbox for.
type mailboxUse struct {
	// pairs are the numbers of pairs of each resource.
	pairs map[schema.GroupVersionResource]int
	// upsync holds the upsync of the placements of each workspace.
	upsync map[logicalcluster.Name][]edgev2alpha1.UpsyncSet
}

func (m *mailboxConfigs) use(mailbox logicalcluster.Name) *mailboxUse {
	found, ok := m.mailboxes[mailbox]
	if !ok {
		found = &mailboxUse{pairs: map[schema.GroupVersionResource]int{}, upsync: map[logicalcluster.Name][]edgev2alpha1.UpsyncSet{}}
		m.mailboxes[mailbox] = found
	}
	return found
}

// addPair counts a pair, and asks for another config with the first of its resource.
func (m *mailboxConfigs) addPair(key pairKey, requests *topic.Topic[logicalcluster.Name]) {
	m.lock.Lock()
	defer m.lock.Unlock()
	use := m.use(key.mailbox)
	if use.pairs[key.resource]++; use.pairs[key.resource] == 1 {
		requests.Publish(key.mailbox)
	}
}

// removePair counts a pair less, and asks for another config after the last of its resource.
func (m *mailboxConfigs) removePair(key pairKey, requests *topic.Topic[logicalcluster.Name]) {
	m.lock.Lock()
	defer m.lock.Unlock()
	use := m.use(key.mailbox)
	if use.pairs[key.resource]--; use.pairs[key.resource] <= 0 {
		delete(use.pairs, key.resource)
		requests.Publish(key.mailbox)
	}
}

// setUpsync sets the upsync of the placements of a workspace.
func (m *mailboxConfigs) setUpsync(workspace logicalcluster.Name, inForce *placements, requests *topic.Topic[logicalcluster.Name]) {
	wanted := map[logicalcluster.Name][]edgev2alpha1.UpsyncSet{}
	for _, one := range inForce.all {
		if len(one.Upsync) == 0 {
			continue
		}
		for mailbox, destination := range one.mailboxes {
			if destination.MayUpsync {
				wanted[mailbox] = append(wanted[mailbox], one.Upsync...)
			}
		}
	}
	m.lock.Lock()
	defer m.lock.Unlock()
	for mailbox := range wanted {
		m.use(mailbox)
	}
	for mailbox, use := range m.mailboxes {
		if apiequality.Semantic.DeepEqual(use.upsync[workspace], wanted[mailbox]) {
			continue
		}
		if use.upsync[workspace] = wanted[mailbox]; len(wanted[mailbox]) == 0 {
			delete(use.upsync, workspace)
		}
		requests.Publish(mailbox)
	}
}

// of returns the resources and the upsync of a mailbox, in a stable order.
func (m *mailboxConfigs) of(mailbox logicalcluster.Name) (resources []schema.GroupVersionResource, upsync []edgev2alpha1.UpsyncSet) {
	m.lock.Lock()
	defer m.lock.Unlock()
	found, ok := m.mailboxes[mailbox]
	if !ok {
		return nil, nil
	}
	resources = slices.SortedFunc(maps.Keys(found.pairs), compareResources)
	for _, workspace := range slices.Sorted(maps.Keys(found.upsync)) {
		upsync = append(upsync, found.upsync[workspace]...)
	}
	if len(found.pairs) == 0 && len(found.upsync) == 0 {
		delete(m.mailboxes, mailbox)
	}
	return resources, upsync
}

// ensureConfig makes the SyncerConfig of a mailbox select the copies of placements. It leaves the config of a mailbox without
// copies empty, so that their removal from the target is seen through.
func (c *Controller) ensureConfig(ctx context.Context, mailbox logicalcluster.Name) (reconcile.Result, error) {
	syncTarget, ok := c.Fleet.Snapshot().SyncTargetOf(mailbox)
	if !ok || syncTarget.Terminating {
		return reconcile.Result{}, nil
	}
	object, state := c.Mailboxes.Get(syncerConfigs, mailbox, types.NamespacedName{Name: ConfigName})
	resources, upsync := c.configs.of(mailbox)
	owner := c.ownerOf(syncTarget.UID)
	if object != nil {
		resources = c.withOrphans(mailbox, object, resources, owner)
	}
	switch {
	case state == mailboxes.Unknown:
		return reconcile.Result{}, nil
	case object == nil && len(resources) == 0 && len(upsync) == 0:
		return reconcile.Result{}, nil
	}
	desired := c.configSpec(resources, upsync, owner)
	if object != nil && specOf(object, desired) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, c.writeConfig(requestmetrics.WithClass(ctx, requestmetrics.Extra), mailbox, object, desired)
}

// withOrphans adds the resources of which the mailbox has released copies: the config goes on to select them, so that they stay on
// the target.
func (c *Controller) withOrphans(mailbox logicalcluster.Name, config *unstructured.Unstructured, resources []schema.GroupVersionResource, owner ownership.Owner) []schema.GroupVersionResource {
	published := c.published.Load()
	if published == nil {
		return resources
	}
	for of := range *published {
		if !slices.Contains(resources, of) && selectsResource(config, of.GroupResource()) && c.hasLabelled(mailbox, of, owner.LabelValue()) {
			resources = append(resources, of)
		}
	}
	slices.SortFunc(resources, compareResources)
	return resources
}

// selectsResource reports whether a cached config has an entry for downsync of a resource.
func selectsResource(object *unstructured.Unstructured, resource schema.GroupResource) bool {
	var config edgev2alpha1.SyncerConfig
	if runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &config) != nil {
		return false
	}
	name := edgev2alpha1.GroupResource{Group: resource.Group, Resource: resource.Resource}
	return slices.ContainsFunc(config.Spec.NamespaceScope.Resources, func(one edgev2alpha1.NamespaceScopeDownsyncResource) bool { return one.GroupResource == name }) ||
		slices.ContainsFunc(config.Spec.ClusterScope, func(one edgev2alpha1.ClusterScopeDownsyncResource) bool { return one.GroupResource == name })
}

// hasLabelled reports whether a mailbox has objects of a resource with the label of an owner.
func (c *Controller) hasLabelled(mailbox logicalcluster.Name, of schema.GroupVersionResource, label string) bool {
	objects, known := c.Mailboxes.List(of, mailbox)
	return !known || slices.ContainsFunc(objects, func(object *unstructured.Unstructured) bool { return object.GetLabels()[ownership.OwnerLabel] == label })
}

func compareResources(a, b schema.GroupVersionResource) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
}

// configSpec returns the spec of the SyncerConfig that selects the owner's copies, with all defaults.
func (c *Controller) configSpec(resources []schema.GroupVersionResource, upsync []edgev2alpha1.UpsyncSet, owner ownership.Owner) edgev2alpha1.SyncerConfigSpec {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{ownership.OwnerLabel: owner.LabelValue()}}
	spec := edgev2alpha1.SyncerConfigSpec{Upsync: upsync, StatusReturn: new(true), DeletionPolicy: edgev2alpha1.DeletionPolicyDelete}
	for _, of := range resources {
		resource, ok := c.resource(of)
		if !ok {
			continue
		}
		name := edgev2alpha1.GroupResource{Group: of.Group, Resource: of.Resource}
		if resource.Namespaced {
			spec.NamespaceScope.Namespaces = []string{edgev2alpha1.Wildcard}
			spec.NamespaceScope.Resources = append(spec.NamespaceScope.Resources, edgev2alpha1.NamespaceScopeDownsyncResource{GroupResource: name, LabelSelector: selector})
			continue
		}
		spec.ClusterScope = append(spec.ClusterScope, edgev2alpha1.ClusterScopeDownsyncResource{GroupResource: name, Objects: []string{edgev2alpha1.Wildcard}, LabelSelector: selector})
	}
	return spec
}

// specOf reports whether a cached config has the desired spec.
func specOf(object *unstructured.Unstructured, desired edgev2alpha1.SyncerConfigSpec) bool {
	var config edgev2alpha1.SyncerConfig
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &config); err != nil {
		return false
	}
	return apiequality.Semantic.DeepEqual(config.Spec, desired)
}

// writeConfig creates the config, or replaces its spec.
func (c *Controller) writeConfig(ctx context.Context, mailbox logicalcluster.Name, before *unstructured.Unstructured, spec edgev2alpha1.SyncerConfigSpec) error {
	client, ok := c.Mailboxes.Client(mailbox)
	if !ok {
		return fmt.Errorf("the mailbox %s cannot be reached now", mailbox)
	}
	config := &edgev2alpha1.SyncerConfig{
		TypeMeta:   metav1.TypeMeta{APIVersion: edgev2alpha1.GroupVersion.String(), Kind: "SyncerConfig"},
		ObjectMeta: metav1.ObjectMeta{Name: ConfigName}, Spec: spec,
	}
	if before != nil {
		config.UID, config.ResourceVersion = before.GetUID(), before.GetResourceVersion()
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(config)
	if err != nil {
		return fmt.Errorf("cannot write the SyncerConfig %s: %w", ConfigName, err)
	}
	delete(content, "status")
	object, configs := &unstructured.Unstructured{Object: content}, client.Resource(syncerConfigs)
	if before == nil {
		_, err = configs.Create(ctx, object, metav1.CreateOptions{FieldManager: c.fieldManager})
	} else {
		_, err = configs.Update(ctx, object, metav1.UpdateOptions{FieldManager: c.fieldManager})
	}
	if err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("cannot write the SyncerConfig %s of the mailbox %s: %w", ConfigName, mailbox, err)
	}
	// After a conflict, the event of the newer config enqueues the mailbox again.
	return nil
}
