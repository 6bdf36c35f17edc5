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

package kcp

import (
	kcpcache "github.com/kcp-dev/apimachinery/v2/pkg/cache"
	"k8s.io/client-go/tools/cache"
)

// NewUnlistedDeleter returns an ignore function for one of kcp's informers. The function deletes from the cache each object
// that a new list lacks, and notifies the informer's handlers. It returns true for each entry that it has handled.
//
// When a reflector lists again, the informer's queue gets a [cache.DeletedFinalStateUnknown] for each object that is in the
// cache and not in the list: the watch missed its deletion. kcp's informers fail to delete such an object, since their stores
// have a key function that accepts objects only. The object would stay in the cache until the hub restarts, and no handler
// would get its deletion. An informer calls its ignore function for each entry of its queue, in order and under its own lock,
// before it handles the entry. It never batches two entries of one key.
func NewUnlistedDeleter(informer kcpcache.ScopeableSharedIndexInformer) func(entry any) (done bool) {
	// The informer is the handler of its own queue: it passes each event on to the handlers that were added, in order.
	handlers := informer.(cache.ResourceEventHandler)
	return func(entry any) bool {
		tombstone, isUnlisted := entry.(cache.DeletedFinalStateUnknown)
		if !isUnlisted {
			return false
		}
		// An object that was evicted while the cache was compared with the list has left nothing to delete.
		if tombstone.Obj != nil && informer.GetIndexer().Delete(tombstone.Obj) == nil {
			handlers.OnDelete(tombstone)
		}
		return true
	}
}
