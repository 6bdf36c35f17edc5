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
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	gosync "sync"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/writes"
	"github.com/synchub-dev/synchub/controllers/placement/fleetcache"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/topic"
)

// ConfigName is the name of the SyncerConfig that selects the copies of placements in a mailbox. Each workload
// workspace with upsync has a further config, named ConfigName, a dash and the workspace's logical cluster. The
// hub owns these names.
const ConfigName = "placement"

// configKey names a SyncerConfig of the hub: for the downsync of all copies in a mailbox, or for the upsync of one workspace.
type configKey struct {
	mailbox logicalcluster.Name
	// workspace is empty for the downsync.
	workspace logicalcluster.Name
}

func (k configKey) name() string {
	if k.workspace == "" {
		return ConfigName
	}
	return ConfigName + "-" + k.workspace.String()
}

// configKeyOf returns the key of a SyncerConfig of a mailbox; ok is false if the hub does not own the name.
func configKeyOf(mailbox logicalcluster.Name, name string) (key configKey, ok bool) {
	if name == ConfigName {
		return configKey{mailbox: mailbox}, true
	}
	workspace, ok := strings.CutPrefix(name, ConfigName+"-")
	return configKey{mailbox, logicalcluster.Name(workspace)}, ok
}

// configs keeps the SyncerConfigs of the hub in line with the placements.
type configs struct {
	fleet     *fleetcache.Fleet
	mailboxes *mailboxes.Mailboxes
	policy    *CachePolicy
	marks     marks
	verifier  verifier
	pairs     *mailboxPairs
	// requests get the configs that may have to change.
	requests   *topic.Topic[configKey]
	workspaces *workspaces
	clock      clock.PassiveClock
	writer     writes.WorkspaceWriter[configKey]
	// writes are the writes that the caches do not show yet.
	writes writes.Expectations[configKey, *unstructured.Unstructured]
	// written holds the spec that the hub has written, with the backoff of repairs, as *writtenConfig by configKey.
	written gosync.Map
}

// writtenConfig is used by the only reconcile of its config.
type writtenConfig struct {
	spec    edgev2alpha1.SyncerConfigSpec
	backoff writes.DriftBackoff
}

func newConfigs(s *shared) *configs {
	o := s.options
	c := &configs{
		fleet: o.Fleet, mailboxes: o.Mailboxes, policy: o.CachePolicy, marks: s.marks, verifier: s.verifier, pairs: s.inMailboxes,
		requests: &s.requests.config, workspaces: s.workspaces, clock: o.Clock,
		writes: writes.NewExpectations[configKey, *unstructured.Unstructured](&gosync.Mutex{}, o.Clock),
	}
	c.writer = writes.WorkspaceWriter[configKey]{
		Workspaces: o.Mailboxes, FieldManager: ownership.FieldManager(o.Hub), Expectations: &c.writes,
		Locate: func(key configKey) writes.Object {
			return writes.Object{Workspace: key.mailbox, Resource: syncerConfigs, Name: types.NamespacedName{Name: key.name()}}
		},
	}
	return c
}

// onEvent enqueues a config of the hub that has changed.
func (c *configs) onEvent(mailbox logicalcluster.Name, event mailboxes.Event) {
	key, ok := configKeyOf(mailbox, event.Key.Name)
	if !ok {
		return
	}
	if event.New == nil && event.Old != nil {
		c.writes.DeletionObserved(key, event.Old.GetUID())
	}
	c.requests.Publish(key)
}

// enqueueAll enqueues the configs for downsync of all mailboxes.
func (c *configs) enqueueAll() {
	for mailbox := range c.fleet.Snapshot().Mailboxes() {
		c.requests.Publish(configKey{mailbox: mailbox})
	}
}

// reconcile brings one SyncerConfig in line with the placements.
func (c *configs) reconcile(ctx context.Context, key configKey) (reconcile.Result, error) {
	ctx = requestclass.With(ctx, requestclass.Extra)
	syncTarget, ok := c.fleet.Snapshot().SyncTargetOf(key.mailbox)
	if !ok || syncTarget.Terminating {
		c.written.Delete(key)
		return reconcile.Result{}, nil
	}
	existing, readable := c.read(key)
	if !readable {
		return reconcile.Result{}, nil
	}
	if key.workspace == "" {
		return c.put(ctx, key, existing, c.desiredDownsync(key.mailbox, existing, c.marks.ownerOf(syncTarget.UID)))
	}
	desired, again, err := c.desiredUpsync(ctx, key, existing)
	if desired == nil || err != nil {
		return reconcile.Result{}, err
	}
	result, err := c.put(ctx, key, existing, *desired)
	result.RequeueAfter = sooner(result.RequeueAfter, again)
	return result, err
}

// countRepair counts a write, and returns how long the write must wait because somebody keeps undoing it. A
// write of a new spec does not wait.
func (c *configs) countRepair(key configKey, spec edgev2alpha1.SyncerConfigSpec) time.Duration {
	if found, ok := c.written.Load(key); ok && apiequality.Semantic.DeepEqual(found.(*writtenConfig).spec, spec) {
		return found.(*writtenConfig).backoff.Next(c.clock.Now())
	}
	c.written.Store(key, &writtenConfig{spec: spec})
	return 0
}

// read returns a config from the cache, or the hub's last write if that is newer; nil if there is none.
// readable is false if the content is unknown.
func (c *configs) read(key configKey) (existing *edgev2alpha1.SyncerConfig, readable bool) {
	cached, state := c.mailboxes.Get(syncerConfigs, key.mailbox, types.NamespacedName{Name: key.name()})
	if state == mailboxes.Unknown {
		return nil, false
	}
	object, deleted := c.writes.Current(key, cached)
	if object == nil || deleted {
		return nil, !deleted
	}
	existing = &edgev2alpha1.SyncerConfig{}
	if mailboxes.ProjectionOf(object) != mailboxes.FullObject || runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, existing) != nil {
		return nil, false
	}
	return existing, true
}

// put writes a config if it differs from the desired one. A config that selects nothing is not created. A
// config for upsync that selects nothing is deleted, but the config for downsync stays, because placements are
// created and deleted often.
func (c *configs) put(ctx context.Context, key configKey, existing *edgev2alpha1.SyncerConfig, desired edgev2alpha1.SyncerConfigSpec) (reconcile.Result, error) {
	selects := len(desired.Upsync) > 0 || len(desired.ClusterScope) > 0 || len(desired.NamespaceScope.Resources) > 0
	switch {
	case existing == nil && !selects:
		c.written.Delete(key)
		return reconcile.Result{}, nil
	case existing != nil && apiequality.Semantic.DeepEqual(existing.Spec, desired):
		return reconcile.Result{}, nil
	case !selects && key.workspace != "":
		c.written.Delete(key)
		return reconcile.Result{}, configWritten(key, c.writer.Delete(ctx, key, existing, nil))
	}
	if wait := c.countRepair(key, desired); wait > 0 {
		log.FromContext(ctx).Info("somebody keeps changing a SyncerConfig of the hub, which repairs it less and less often", "wait", wait)
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	return reconcile.Result{}, configWritten(key, c.write(ctx, key, existing, desired))
}

// configWritten returns the error of a write to a config. It ignores ErrOutdated, because the event of the
// newer config enqueues the key again.
func configWritten(key configKey, err error) error {
	if err == nil || errors.Is(err, writes.ErrOutdated) {
		return nil
	}
	return fmt.Errorf("cannot write the SyncerConfig %s of the mailbox %s: %w", key.name(), key.mailbox, err)
}

// write creates a config, or replaces its spec.
func (c *configs) write(ctx context.Context, key configKey, existing *edgev2alpha1.SyncerConfig, spec edgev2alpha1.SyncerConfigSpec) error {
	config := &edgev2alpha1.SyncerConfig{
		TypeMeta:   metav1.TypeMeta{APIVersion: edgev2alpha1.GroupVersion.String(), Kind: "SyncerConfig"},
		ObjectMeta: metav1.ObjectMeta{Name: key.name()}, Spec: spec,
	}
	if existing != nil {
		config.UID, config.ResourceVersion = existing.UID, existing.ResourceVersion
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(config)
	if err != nil {
		return err
	}
	delete(content, "status")
	_, err = c.writer.Put(ctx, key, &unstructured.Unstructured{Object: content})
	return err
}

// mailboxPairs counts the pairs of all workspaces in each mailbox, by what the hub's SyncerConfigs select.
type mailboxPairs struct {
	lock   gosync.Mutex
	counts map[logicalcluster.Name]map[selectedKey]int
}

// selectedKey is a resource, or one CustomResourceDefinition. A pair of a CustomResourceDefinition counts for both.
type selectedKey struct {
	resource schema.GroupVersionResource
	crd      string
}

// change counts one pair more or less, and reports whether the config of the mailbox may have to change, because the
// pair is the first or the last of its resource or CustomResourceDefinition.
func (m *mailboxPairs) change(key pairKey, by int) (changesConfig bool) {
	m.lock.Lock()
	defer m.lock.Unlock()
	of := m.counts[key.mailbox]
	if of == nil {
		of = map[selectedKey]int{}
		m.counts[key.mailbox] = of
	}
	keys, count := [...]selectedKey{{resource: key.resource}, {key.resource, key.name.Name}}, 1
	if key.isCRD() {
		count = 2
	}
	for _, selected := range keys[:count] {
		before := of[selected]
		if of[selected] = before + by; before+by == 0 {
			delete(of, selected)
		}
		changesConfig = changesConfig || before == 0 || before+by == 0
	}
	if len(of) == 0 {
		delete(m.counts, key.mailbox)
	}
	return changesConfig
}

// of returns the resources and the sorted names of the CustomResourceDefinitions that have a pair in a mailbox.
func (m *mailboxPairs) of(mailbox logicalcluster.Name) (resources []schema.GroupVersionResource, crds []string) {
	m.lock.Lock()
	defer m.lock.Unlock()
	for selected := range m.counts[mailbox] {
		if selected.crd == "" {
			resources = append(resources, selected.resource)
		} else {
			crds = append(crds, selected.crd)
		}
	}
	slices.Sort(crds)
	return resources, crds
}
