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
	"sigs.k8s.io/controller-runtime/pkg/manager"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
)

// standbyHosting returns a manager of the hosting cluster whose runnables run on every replica, or only on the leader with
// options.ColdStandby.
func standbyHosting(hosting manager.Manager, options Options) manager.Manager {
	if options.ColdStandby {
		return hosting
	}
	return hostingOfEveryReplica{hosting}
}

type hostingOfEveryReplica struct{ manager.Manager }

// Add implements [manager.Manager].
func (m hostingOfEveryReplica) Add(runnable manager.Runnable) error {
	return m.Manager.Add(everyReplica{runnable})
}

// standbyInventories returns a manager of the inventory workspaces whose runnables run on every replica, or only on the leader with
// options.ColdStandby.
func standbyInventories(inventories mcmanager.Manager, options Options) mcmanager.Manager {
	if options.ColdStandby {
		return leaderInventories{inventories}
	}
	return inventoriesOfEveryReplica{inventories}
}

type inventoriesOfEveryReplica struct{ mcmanager.Manager }

// Add implements [mcmanager.Manager].
func (m inventoriesOfEveryReplica) Add(runnable mcmanager.Runnable) error {
	return m.Manager.Add(everyMulticlusterReplica{runnable})
}

// everyReplica is a Runnable that runs on replicas that do not lead, too.
type everyReplica struct{ manager.Runnable }

// NeedLeaderElection implements [manager.LeaderElectionRunnable].
func (everyReplica) NeedLeaderElection() bool { return false }

// everyMulticlusterReplica is the same for a Runnable that is told of clusters.
type everyMulticlusterReplica struct{ mcmanager.Runnable }

// NeedLeaderElection implements [manager.LeaderElectionRunnable].
func (everyMulticlusterReplica) NeedLeaderElection() bool { return false }
