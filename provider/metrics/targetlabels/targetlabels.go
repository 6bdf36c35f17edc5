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

package targetlabels

import (
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// UID is the label with which the hub finds and deletes the series of a SyncTarget: another SyncTarget may take its name
// later.
const UID = "sync_target"

// labels are the common labels of all metrics about one SyncTarget, so that a query needs no join: the UID, the name, and the
// logical cluster of the inventory workspace.
var labels = []string{UID, "name", "inventory"}

// Names returns the labels of a metric about one SyncTarget, followed by the given ones.
func Names(others ...string) []string { return slices.Concat(labels, others) }

// named maps the UID of each known SyncTarget to its name and inventory.
var named sync.Map

type name struct{ name, inventory string }

// Set names a SyncTarget. It is safe for concurrent use, as the other functions are.
func Set(syncTarget types.UID, syncTargetName, inventory string) {
	named.Store(syncTarget, name{syncTargetName, inventory})
}

// Forget removes the name of a deleted SyncTarget.
func Forget(syncTarget types.UID) { named.Delete(syncTarget) }

// Values returns the values for [Names], followed by the given ones. A deleted SyncTarget has no name, only a UID.
func Values(syncTarget types.UID, others ...string) []string {
	known, _ := named.Load(syncTarget)
	of, _ := known.(name)
	return slices.Concat([]string{string(syncTarget), of.name, of.inventory}, others)
}

// Inventory returns the logical cluster of the inventory workspace of a SyncTarget; empty if the SyncTarget has no name.
func Inventory(syncTarget types.UID) string {
	known, _ := named.Load(syncTarget)
	of, _ := known.(name)
	return of.inventory
}

// Labels returns the labels of a SyncTarget, to curry a vector with them.
func Labels(syncTarget types.UID) prometheus.Labels {
	curried := prometheus.Labels{}
	for i, value := range Values(syncTarget) {
		curried[labels[i]] = value
	}
	return curried
}

// LogValues returns the fields that identify a SyncTarget in the log: its name, if the hub knows it, and its UID.
func LogValues(syncTarget types.UID) []any {
	known, _ := named.Load(syncTarget)
	if of, _ := known.(name); of.name != "" {
		return []any{"syncTarget", of.name, "inventory", of.inventory, "syncTargetUID", syncTarget}
	}
	return []any{"syncTargetUID", syncTarget}
}

// LogConstructor returns the LogConstructor of a controller whose keys are SyncTargets.
func LogConstructor(log logr.Logger) func(syncTarget *types.UID) logr.Logger {
	return func(syncTarget *types.UID) logr.Logger {
		if syncTarget == nil {
			return log.V(2)
		}
		return log.WithValues(LogValues(*syncTarget)...)
	}
}
