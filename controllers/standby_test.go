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

package controllers

import (
	"testing"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	configv1alpha1 "github.com/synchub-dev/synchub/apis/config/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/targets"
)

// A warm standby, and a replica that owns shards, runs the components that fill its caches. Without
// NeedLeaderElection, the manager would run them on the leader only.
func TestRunsOnReplicasThatDoNotLead(t *testing.T) {
	for _, leaderOnly := range []bool{false, true} {
		settings := &configv1alpha1.HubConfiguration{}
		if leaderOnly {
			settings.LeaderElection.Standby = configv1alpha1.StandbyCold
		}
		for name, runnable := range map[string]any{
			"ledger":               ledger.New(ledger.Options{LeaderOnly: leaderOnly}),
			"mailboxes":            mailboxes.New(mailboxes.Options{LeaderOnly: leaderOnly, Clock: clock.RealClock{}}),
			"targets":              targets.NewRegistry(targets.Options{LeaderOnly: leaderOnly, Clock: clock.RealClock{}}),
			"sync manager":         syncmanager.New(syncmanager.Dependencies{}, settings),
			"inventory workspaces": &inventoryWorkspaces{leaderOnly: leaderOnly},
		} {
			one, ok := runnable.(manager.LeaderElectionRunnable)
			if !ok || one.NeedLeaderElection() != leaderOnly {
				t.Errorf("%s: with leaderOnly %t it runs elsewhere", name, leaderOnly)
			}
		}
	}
}
