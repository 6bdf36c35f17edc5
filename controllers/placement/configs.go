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
	"maps"
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
	"github.com/synchub-dev/synchub/controllers/internal/driftbackoff"
	"github.com/synchub-dev/synchub/controllers/internal/expectations"
	"github.com/synchub-dev/synchub/controllers/internal/mailboxwrite"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/requestclass"
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

// configs is the state of the hub's SyncerConfigs that the caches do not contain.
type configs struct {
	clock clock.PassiveClock
	// writes are the writes that the caches do not show yet.
	writes expectations.Writes[configKey, *unstructured.Unstructured]

	lock gosync.Mutex
	// pairs holds, for each mailbox, the numbers of pairs by resource.
	pairs map[logicalcluster.Name]map[schema.GroupVersionResource]int
	// crds holds, for each mailbox, the numbers of pairs by the name of their CustomResourceDefinition.
	crds map[logicalcluster.Name]map[string]int
	// written are the specs that the hub has written, with the backoff of repairs.
	written map[configKey]*writtenConfig
}

type writtenConfig struct {
	spec    edgev2alpha1.SyncerConfigSpec
	backoff driftbackoff.Backoff
}

func newConfigs(clock clock.PassiveClock) *configs {
	c := &configs{clock: clock, pairs: map[logicalcluster.Name]map[schema.GroupVersionResource]int{}, crds: map[logicalcluster.Name]map[string]int{}, written: map[configKey]*writtenConfig{}}
	c.writes = expectations.New[configKey, *unstructured.Unstructured](&gosync.Mutex{}, clock)
	return c
}

// addPair counts a pair, and reports whether the config of the mailbox may have to change, because the pair is
// the first of its resource or CRD.
func (c *configs) addPair(key pairKey) (first bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	first = increment(c.pairs, key.mailbox, key.resource)
	if key.resource.GroupResource() == crdGroupResource {
		first = increment(c.crds, key.mailbox, key.name.Name) || first
	}
	return first
}

// removePair removes a pair from the counts, and reports whether it was the last of its resource in the
// mailbox, or of a CRD.
func (c *configs) removePair(key pairKey) (last bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	last = decrement(c.pairs, key.mailbox, key.resource)
	if key.resource.GroupResource() == crdGroupResource {
		last = decrement(c.crds, key.mailbox, key.name.Name) || last
	}
	return last
}

// increment adds one to a count of a mailbox, and reports whether it is the first.
func increment[K comparable](counts map[logicalcluster.Name]map[K]int, mailbox logicalcluster.Name, key K) (first bool) {
	if counts[mailbox] == nil {
		counts[mailbox] = map[K]int{}
	}
	counts[mailbox][key]++
	return counts[mailbox][key] == 1
}

// decrement subtracts one from a count of a mailbox, and reports whether the count is zero now.
func decrement[K comparable](counts map[logicalcluster.Name]map[K]int, mailbox logicalcluster.Name, key K) (last bool) {
	of := counts[mailbox]
	if of[key]--; of[key] > 0 {
		return false
	}
	if delete(of, key); len(of) == 0 {
		delete(counts, mailbox)
	}
	return true
}

// crdNames returns the names of the CustomResourceDefinitions that have a pair in a mailbox, sorted.
func (c *configs) crdNames(mailbox logicalcluster.Name) []string {
	c.lock.Lock()
	defer c.lock.Unlock()
	return slices.Sorted(maps.Keys(c.crds[mailbox]))
}

// resources returns the resources that have a pair in a mailbox.
func (c *configs) resources(mailbox logicalcluster.Name) (all []schema.GroupVersionResource) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for resource := range c.pairs[mailbox] {
		all = append(all, resource)
	}
	return all
}

// countRepair counts a write, and returns how long the write must wait because somebody keeps undoing it. A
// write of a new spec does not wait.
func (c *configs) countRepair(key configKey, spec edgev2alpha1.SyncerConfigSpec) time.Duration {
	c.lock.Lock()
	defer c.lock.Unlock()
	known := c.written[key]
	if known == nil || !apiequality.Semantic.DeepEqual(known.spec, spec) {
		c.written[key] = &writtenConfig{spec: spec}
		return 0
	}
	return known.backoff.Next(c.clock.Now())
}

// forget drops the state of a config that is no longer needed.
func (c *configs) forget(key configKey) {
	c.lock.Lock()
	defer c.lock.Unlock()
	delete(c.written, key)
}

// ensureConfig brings one SyncerConfig in line with the placements.
func (c *Controller) ensureConfig(ctx context.Context, key configKey) (reconcile.Result, error) {
	ctx = requestclass.With(ctx, requestclass.Extra)
	syncTarget, ok := c.Fleet.Snapshot().SyncTargetOf(key.mailbox)
	if !ok || syncTarget.Terminating {
		c.configs.forget(key)
		return reconcile.Result{}, nil
	}
	existing, readable := c.readConfig(key)
	if !readable {
		return reconcile.Result{}, nil
	}
	if key.workspace == "" {
		return c.putConfig(ctx, key, existing, c.desiredDownsync(key.mailbox, existing, c.ownerOf(syncTarget.UID)))
	}
	desired, err := c.desiredUpsync(ctx, key, existing)
	if desired == nil || err != nil {
		return reconcile.Result{}, err
	}
	return c.putConfig(ctx, key, existing, *desired)
}

// readConfig returns a config from the cache, or the hub's last write if that is newer; nil if there is none.
// readable is false if the content is unknown.
func (c *Controller) readConfig(key configKey) (existing *edgev2alpha1.SyncerConfig, readable bool) {
	cached, state := c.Mailboxes.Get(syncerConfigs, key.mailbox, types.NamespacedName{Name: key.name()})
	if state == mailboxes.Unknown {
		return nil, false
	}
	object, deleted := c.configs.writes.Current(key, cached)
	if object == nil || deleted {
		return nil, !deleted
	}
	existing = &edgev2alpha1.SyncerConfig{}
	if mailboxes.ProjectionOf(object) != mailboxes.FullObject || runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, existing) != nil {
		return nil, false
	}
	return existing, true
}

// putConfig writes a config if it differs from the desired one. A config that selects nothing is not created. A
// config for upsync that selects nothing is deleted, but the config for downsync stays, because placements are
// created and deleted often.
func (c *Controller) putConfig(ctx context.Context, key configKey, existing *edgev2alpha1.SyncerConfig, desired edgev2alpha1.SyncerConfigSpec) (reconcile.Result, error) {
	selects := len(desired.Upsync) > 0 || len(desired.ClusterScope) > 0 || len(desired.NamespaceScope.Resources) > 0
	switch {
	case existing == nil && !selects:
		c.configs.forget(key)
		return reconcile.Result{}, nil
	case existing != nil && apiequality.Semantic.DeepEqual(existing.Spec, desired):
		return reconcile.Result{}, nil
	case !selects && key.workspace != "":
		c.configs.forget(key)
		return reconcile.Result{}, configWritten(key, c.configWriter.Delete(ctx, key, existing.UID, nil))
	}
	if wait := c.configs.countRepair(key, desired); wait > 0 {
		log.FromContext(ctx).Info("somebody keeps changing a SyncerConfig of the hub, which repairs it less and less often", "wait", wait)
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	return reconcile.Result{}, configWritten(key, c.writeConfig(ctx, key, existing, desired))
}

// configWritten returns the error of a write to a config. It ignores ErrOutdated, because the event of the
// newer config enqueues the key again.
func configWritten(key configKey, err error) error {
	if err == nil || errors.Is(err, mailboxwrite.ErrOutdated) {
		return nil
	}
	return fmt.Errorf("cannot write the SyncerConfig %s of the mailbox %s: %w", key.name(), key.mailbox, err)
}

// writeConfig creates a config, or replaces its spec.
func (c *Controller) writeConfig(ctx context.Context, key configKey, existing *edgev2alpha1.SyncerConfig, spec edgev2alpha1.SyncerConfigSpec) error {
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
	_, err = c.configWriter.Put(ctx, key, &unstructured.Unstructured{Object: content})
	return err
}
