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

package objectsync

import (
	"errors"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/health"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/provider/targets"
)

// cachedCopy is an object with the hub's label in the cache of a target: its identity and status, with the facts that decisions
// need. The hub parses and verifies a mark once, when it enters the cache.
type cachedCopy struct {
	*unstructured.Unstructured
	// observed is nil if the object is not a copy of the hub's; else mark is the verified annotation.
	observed *plan.TargetObject
	mark     string
	// unverified is true if the object's mark names this hub but does not verify.
	unverified bool
}

// verifiedMark is a mark of the hub's, and the annotation with it.
type verifiedMark struct {
	mark ownership.Mark
	text string
}

// isOf reports whether an object with the annotation text carries the verified mark, and not another object's.
func (v verifiedMark) isOf(object *unstructured.Unstructured, text string) bool {
	return v.text != "" && v.text == text && v.mark.Self == transform.SelfOf(object)
}

// verifiedMark returns the mark of a copy of the hub's, and the zero value for another object.
func (c *cachedCopy) verifiedMark() verifiedMark {
	if c == nil || c.observed == nil {
		return verifiedMark{}
	}
	return verifiedMark{c.observed.Mark, c.mark}
}

// health returns the health of a copy of the hub's.
func (c *cachedCopy) health() health.Health {
	if c.observed == nil {
		return health.Health{}
	}
	return c.observed.Health
}

// asRemoval returns the facts that matter after the copy was removed.
func (c *cachedCopy) asRemoval() *plan.Removal {
	removed := &plan.Removal{Mark: c.observed.Mark}
	if c.observed.Finished {
		removed.Finished = c.Unstructured
	}
	return removed
}

// SizeOfFacts implements [cachesize.Extended].
func (c *cachedCopy) SizeOfFacts() int64 {
	if c.observed == nil {
		return 0
	}
	return c.observed.Size() + int64(len(c.mark))
}

// copyCache is the cache of the hub's copies of one resource on a target.
type copyCache struct{ *targets.Cache }

// Get returns a cached object, or nil. The caller must not change it.
func (c copyCache) Get(key types.NamespacedName) *cachedCopy {
	cached, _ := c.Cache.Get(key).(*cachedCopy)
	return cached
}

// transformForCache returns a transform that reduces objects of the target to [cachedCopy]. It does not change a cachedCopy or a
// tombstone.
func (t *targetView) transformForCache(target *targetResource) cache.TransformFunc {
	return func(obj any) (any, error) {
		object, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return obj, nil
		}
		key := keyOf(object)
		known, _ := t.writes.Current(target.Ref(key), target.cache.Get(key))
		cached, _ := t.cachedCopyOf(object, known.verifiedMark())
		return cached, nil
	}
}

// cachedCopyOf returns the cached form of a target object. An object with the mark known is not verified again. The error is the
// reason why the object is not a copy of the hub's. Drift shows in the managedFields, so values are kept only if a rule of the
// PublishedResource reads them.
func (t *targetView) cachedCopyOf(object *unstructured.Unstructured, known verifiedMark) (*cachedCopy, error) {
	all, _ := object.Object["metadata"].(map[string]any)
	var content, metadata map[string]any
	if t.cachesWholeObjects {
		content, metadata = maps.Clone(object.Object), maps.Clone(all)
		delete(metadata, "managedFields")
	} else {
		content = subset(object.Object, "apiVersion", "kind")
		metadata = subset(all, "namespace", "name", "uid", "resourceVersion", "generation", "deletionTimestamp")
		if status, ok := object.Object["status"]; ok && t.resource.StatusReturn {
			content["status"] = status
		}
	}
	content["metadata"] = metadata
	cached := &cachedCopy{Unstructured: &unstructured.Unstructured{Object: content}}
	text, _ := plan.Annotation(object, ownership.MarkAnnotation)
	if known.isOf(object, text) {
		cached.mark, cached.observed = known.text, t.resource.NewTargetObject(t.owner, t.mailbox, object, known.mark)
		return cached, nil
	}
	observed, err := t.observeObject(object)
	if err != nil {
		cached.unverified = errors.Is(err, ownership.ErrUnverified)
		return cached, err
	}
	cached.mark, cached.observed = text, observed
	return cached, nil
}

// subset returns the entries of a map that have one of the keys.
func subset(all map[string]any, keys ...string) map[string]any {
	some := make(map[string]any, len(keys))
	for _, key := range keys {
		if value, ok := all[key]; ok {
			some[key] = value
		}
	}
	return some
}

// observeObject returns the facts about a copy that decisions need, or why the object is not a copy of the hub's.
func (t *targetView) observeObject(object *unstructured.Unstructured) (*plan.TargetObject, error) {
	mark, err := plan.TargetMark(t.owner, object)
	if err != nil {
		return nil, err
	}
	return t.resource.NewTargetObject(t.owner, t.mailbox, object, mark), nil
}
