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

package synctarget

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

// secretKey names a Secret of an inventory workspace.
type secretKey struct {
	inventory multicluster.ClusterName
	types.NamespacedName
}

// secretIndex maps Secrets to the SyncTargets whose kubeconfig they contain. It replaces a field index, which
// the manager would add to the cache of an inventory workspace while other goroutines already read the cache.
// That is a data race, and the Go runtime aborts the process (multicluster-runtime 0.24, multicluster-provider
// 0.8).
type secretIndex struct {
	secretOf      map[mcreconcile.Request]secretKey
	syncTargetsOf map[secretKey][]mcreconcile.Request
}

// set stores which Secret a SyncTarget refers to.
func (r *secretIndex) set(syncTarget mcreconcile.Request, secret secretKey) {
	if before, ok := r.secretOf[syncTarget]; ok && before == secret {
		return
	}
	r.delete(syncTarget)
	if r.secretOf == nil {
		r.secretOf, r.syncTargetsOf = map[mcreconcile.Request]secretKey{}, map[secretKey][]mcreconcile.Request{}
	}
	r.secretOf[syncTarget] = secret
	r.syncTargetsOf[secret] = append(r.syncTargetsOf[secret], syncTarget)
}

// delete removes the SyncTarget from the index.
func (r *secretIndex) delete(syncTarget mcreconcile.Request) {
	secret, ok := r.secretOf[syncTarget]
	if !ok {
		return
	}
	delete(r.secretOf, syncTarget)
	others := slices.DeleteFunc(r.syncTargetsOf[secret], func(one mcreconcile.Request) bool { return one == syncTarget })
	if len(others) == 0 {
		delete(r.syncTargetsOf, secret)
		return
	}
	r.syncTargetsOf[secret] = others
}
