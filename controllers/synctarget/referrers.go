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

// secretName names a Secret of an inventory workspace.
type secretName struct {
	inventory multicluster.ClusterName
	types.NamespacedName
}

// referrers are the SyncTargets by the Secret that holds their kubeconfig. A field index of the cache would say the same, but the
// manager adds it to the cache of an inventory workspace when others read that already (multicluster-runtime 0.24,
// multicluster-provider 0.8): a data race, for which Go ends a program.
type referrers struct {
	to   map[mcreconcile.Request]secretName
	from map[secretName][]mcreconcile.Request
}

// set notes to which Secret a SyncTarget refers.
func (r *referrers) set(syncTarget mcreconcile.Request, secret secretName) {
	if before, ok := r.to[syncTarget]; ok && before == secret {
		return
	}
	r.drop(syncTarget)
	if r.to == nil {
		r.to, r.from = map[mcreconcile.Request]secretName{}, map[secretName][]mcreconcile.Request{}
	}
	r.to[syncTarget] = secret
	r.from[secret] = append(r.from[secret], syncTarget)
}

// drop forgets to which Secret a SyncTarget refers, if it does.
func (r *referrers) drop(syncTarget mcreconcile.Request) {
	secret, ok := r.to[syncTarget]
	if !ok {
		return
	}
	delete(r.to, syncTarget)
	others := slices.DeleteFunc(r.from[secret], func(one mcreconcile.Request) bool { return one == syncTarget })
	if len(others) == 0 {
		delete(r.from, secret)
		return
	}
	r.from[secret] = others
}
