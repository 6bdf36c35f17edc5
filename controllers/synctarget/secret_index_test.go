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
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

func TestSecretIndex(t *testing.T) {
	c := &store{}
	request := func(inventory, name string) mcreconcile.Request {
		return mcreconcile.Request{ClusterName: multicluster.ClusterName(inventory), Request: reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}}
	}
	refer := func(inventory, name, secret string) {
		syncTarget := &edgev2alpha1.SyncTarget{}
		if secret != "" {
			syncTarget.Spec.KubeconfigSecretRef = &edgev2alpha1.SecretReference{Name: secret}
		}
		c.indexSecret(request(inventory, name), syncTarget)
	}
	expect := func(inventory, secret string, want ...string) {
		t.Helper()
		var got []string
		for _, request := range c.requestsForSecret(secretKey{multicluster.ClusterName(inventory), types.NamespacedName{Namespace: "default", Name: secret}}) {
			got = append(got, request.Name)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("the Secret %s of %s: want %q to refer to it, got %q", secret, inventory, want, got)
		}
	}
	refer("here", "florin", "old")
	refer("here", "guilder", "old")
	refer("here", "guilder", "old")
	refer("there", "florin", "old")
	refer("here", "thaler", "")
	expect("here", "old", "florin", "guilder")
	expect("there", "old", "florin")
	expect("here", "new")

	refer("here", "florin", "new")
	expect("here", "old", "guilder")
	expect("here", "new", "florin")
	refer("here", "florin", "")
	expect("here", "new")
	c.deleteUID(request("here", "guilder"))
	c.deleteUID(request("here", "thaler"))
	expect("here", "old")
	expect("there", "old", "florin")
	c.deleteUID(request("there", "florin"))
	if len(c.secrets.secretOf)+len(c.secrets.syncTargetsOf) != 0 {
		t.Errorf("something is left: %+v", c.secrets)
	}
}
