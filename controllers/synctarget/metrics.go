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
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

// info maps the UID, by which all other metrics are labelled, to the name. They do not have the name as a label, because another
// SyncTarget, of another user, may take the name later.
var info = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "synchub_sync_target_info",
	Help: "1 for each SyncTarget, with its name and the logical cluster of its inventory workspace.",
}, []string{"sync_target", "name", "inventory"})

// Collectors returns the package's metrics. Register them once.
func Collectors() []prometheus.Collector { return []prometheus.Collector{info} }

func setInfo(syncTarget types.UID, request mcreconcile.Request) {
	info.WithLabelValues(string(syncTarget), request.Name, string(request.ClusterName)).Set(1)
}

func deleteInfo(syncTarget types.UID) {
	info.DeletePartialMatch(prometheus.Labels{"sync_target": string(syncTarget)})
}
