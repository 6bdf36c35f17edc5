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

package syncmanager

import (
	"context"
	"errors"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

// What the hub keeps for workspaces is recorded before it is written, and stays recorded while some of it may be left.
func TestTenantResourcesAreRecorded(t *testing.T) {
	t.Parallel()
	shared := &edgev2alpha1.Tenancy{}
	identity := &edgev2alpha1.Tenancy{Namespaces: edgev2alpha1.NamespacesPerWorkspace, Identity: edgev2alpha1.TenantIdentityWorkspace, Role: "edit"}
	for name, c := range map[string]struct {
		recorded []string
		tenancy  *edgev2alpha1.Tenancy
		want     []string
		isStored bool
	}{
		"no tenancy":                       {nil, shared, nil, false},
		"an identity":                      {nil, identity, []string{"rolebindings", "serviceaccounts"}, true},
		"no change":                        {[]string{"rolebindings", "serviceaccounts"}, identity, []string{"rolebindings", "serviceaccounts"}, false},
		"a quota ended while no hub ran":   {[]string{"resourcequotas"}, identity, []string{"resourcequotas", "rolebindings", "serviceaccounts"}, true},
		"all of it ended while no hub ran": {[]string{"resourcequotas"}, shared, []string{"resourcequotas"}, false},
	} {
		manager, _ := newManager(t)
		failure, stored := errors.New("no"), [][]string{}
		manager.StoreTenantResources = func(_ context.Context, _ types.UID, resources []string) error {
			if failure == nil {
				stored = append(stored, resources)
			}
			return failure
		}
		state := manager.newTargetState(Target{UID: "florin", Tenancy: c.tenancy, TenantResources: c.recorded})
		record := passWith(manager, state)
		if err := record.recordTenants(t.Context()); (err != nil) != c.isStored || !slices.Equal(state.tenantResources, c.recorded) {
			t.Errorf("%s: after a failure: %v, %v", name, err, state.tenantResources)
		}
		failure = nil
		for range 2 {
			if err := record.recordTenants(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if !slices.Equal(state.tenantResources, c.want) || (len(stored) == 1) != c.isStored || len(stored) > 1 {
			t.Errorf("%s: recorded %v, stored %v", name, state.tenantResources, stored)
		}
	}
}
