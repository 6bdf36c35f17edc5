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

package findings_test

import (
	"slices"
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"

	"github.com/synchub-dev/synchub/controllers/internal/findings"
)

func TestWithdrawals(t *testing.T) {
	registry := &findings.Withdrawals{}
	var published []logicalcluster.Name
	registry.Changes().Subscribe(t.Context(), func(inventory logicalcluster.Name) { published = append(published, inventory) })
	pending := func(inventory logicalcluster.Name, syncTarget, workspace string) findings.PendingWithdrawal {
		return findings.PendingWithdrawal{Inventory: inventory, Location: "prod", SyncTarget: syncTarget, Workspace: workspace, Copies: 4, At: time.Unix(60, 0)}
	}
	expect := func(what string, inventory logicalcluster.Name, want []findings.PendingWithdrawal, changed ...logicalcluster.Name) {
		t.Helper()
		if got := registry.Of(inventory)["prod"]; !slices.Equal(got, want) {
			t.Errorf("%s: got %+v", what, got)
		}
		if !slices.Equal(published, changed) {
			t.Errorf("%s: published %v", what, published)
		}
		published = nil
	}
	shop, annex := pending("one", "guilder", "root:shop"), pending("one", "florin", "root:annex")
	expect("at first", "one", nil)
	registry.Set("shop", []findings.PendingWithdrawal{shop})
	expect("the first workspace", "one", []findings.PendingWithdrawal{shop}, "one")
	registry.Set("shop", []findings.PendingWithdrawal{shop})
	expect("nothing has changed", "one", []findings.PendingWithdrawal{shop})
	registry.Set("annex", []findings.PendingWithdrawal{annex})
	expect("another workspace", "one", []findings.PendingWithdrawal{annex, shop}, "one")
	expect("another inventory", "two", nil)
	registry.Set("shop", nil)
	expect("the first workspace has none", "one", []findings.PendingWithdrawal{annex}, "one")
	registry.Set("annex", []findings.PendingWithdrawal{pending("two", "florin", "root:annex")})
	slices.Sort(published)
	expect("it moves", "one", nil, "one", "two")
}

func TestNoWithdrawals(t *testing.T) {
	var registry *findings.Withdrawals
	registry.Set("shop", []findings.PendingWithdrawal{{}})
	if len(registry.Of("one")) > 0 || registry.Changes() != nil {
		t.Error("it has withdrawals")
	}
}
