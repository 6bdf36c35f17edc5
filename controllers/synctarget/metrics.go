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

	"github.com/synchub-dev/synchub/provider/metrics/targetlabels"
)

var info = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "synchub_sync_target_info",
	Help: "1 for each SyncTarget, with its name and the logical cluster of its inventory workspace.",
}, targetlabels.Names())

// Collectors returns the package's metrics. Register them once.
func Collectors() []prometheus.Collector { return []prometheus.Collector{info} }

func setInfo(syncTarget types.UID, request mcreconcile.Request) {
	targetlabels.Set(syncTarget, request.Name, string(request.ClusterName))
	info.WithLabelValues(targetlabels.Values(syncTarget)...).Set(1)
}

func deleteInfo(syncTarget types.UID) {
	info.DeletePartialMatch(prometheus.Labels{targetlabels.UID: string(syncTarget)})
	targetlabels.Forget(syncTarget)
}
