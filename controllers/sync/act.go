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

package sync

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/sync/decide"
	"github.com/synchub-dev/synchub/controllers/sync/ownership"
	"github.com/synchub-dev/synchub/provider/requests"
	"github.com/synchub-dev/synchub/provider/targets"
)

// create makes the desired object. A namespace that is missing is ensured first. If the name is taken, the object there
// is read once: it may be ours, without its label.
func (c *Controller) create(ctx context.Context, key types.NamespacedName, desired *unstructured.Unstructured) error {
	c.memory.begin(key)
	created, err := c.Connection.Create(ctx, c.Resource.GroupVersionResource, desired)
	if isMissingNamespace(err, key.Namespace) {
		extra := requests.As(ctx, requests.Extra)
		if err := c.Connection.EnsureNamespace(extra, key.Namespace, map[string]string{ownership.EnsuredAnnotation: c.Owner.LabelValue()}); err != nil {
			c.memory.applied(key, nil)
			return fmt.Errorf("cannot create the namespace %s: %w", key.Namespace, err)
		}
		created, err = c.Connection.Create(extra, c.Resource.GroupVersionResource, desired)
	}
	if errors.Is(err, targets.ErrExists) {
		c.memory.applied(key, nil)
		return c.reclaim(requests.As(ctx, requests.Extra), key, desired, err)
	}
	if err != nil {
		c.memory.applied(key, nil)
		return err
	}
	return c.remember(key, created, desired)
}

// reclaim applies to the object that has taken the name if it is ours, and reports a conflict otherwise.
func (c *Controller) reclaim(ctx context.Context, key types.NamespacedName, desired *unstructured.Unstructured, refused error) error {
	object, err := c.Connection.Get(ctx, c.Resource.GroupVersionResource, key)
	if err != nil {
		return fmt.Errorf("the target refused to create the object: %w; and reading it failed: %w", refused, err)
	}
	if _, err := c.verify(object); err != nil && !c.takeable(object, err) {
		return fmt.Errorf("%w: %w", errTaken, err)
	}
	return c.apply(ctx, key, desired, object.GetUID())
}

func (c *Controller) apply(ctx context.Context, key types.NamespacedName, desired *unstructured.Unstructured, uid types.UID) error {
	c.memory.begin(key)
	applied, err := c.Connection.Apply(ctx, c.Resource.GroupVersionResource, desired, uid)
	if err != nil {
		c.memory.applied(key, nil)
		return err
	}
	return c.remember(key, applied, desired)
}

// remember keeps the target's answer until the cache shows it, and notes which of the desired paths the target did not
// keep, so that they are not taken for drift for ever.
func (c *Controller) remember(key types.NamespacedName, answer, desired *unstructured.Unstructured) error {
	kept := c.stripped(answer)
	c.memory.applied(key, kept)
	observed, err := c.verify(kept)
	if err != nil {
		return fmt.Errorf("the target did not keep the hub's mark: %w", err)
	}
	dropped, err := ownership.Uncovered(desired.Object, observed.Fields)
	if err != nil {
		return err
	}
	c.memory.setDropped(key, dropped)
	return nil
}

func (c *Controller) delete(ctx context.Context, key types.NamespacedName, uid types.UID) error {
	c.memory.begin(key)
	if err := c.Connection.Delete(ctx, c.Resource.GroupVersionResource, key, uid); err != nil {
		c.memory.applied(key, nil)
		return err
	}
	c.memory.deleted(key, uid)
	return nil
}

func (c *Controller) release(ctx context.Context, key types.NamespacedName, observed *decide.Observed) error {
	var labels []string
	if observed.Labelled {
		labels = append(labels, ownership.OwnerLabel)
	}
	c.memory.begin(key)
	if err := c.Connection.Strip(ctx, c.Resource.GroupVersionResource, key, observed.UID, labels, []string{ownership.MarkAnnotation}); err != nil {
		c.memory.applied(key, nil)
		return err
	}
	c.memory.deleted(key, observed.UID)
	return nil
}
