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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/metrics"
	"github.com/synchub-dev/synchub/provider/metrics/targetlabels"
)

var info = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "synchub_sync_target_info",
	Help: "1 for each SyncTarget, with its name and the logical cluster of its inventory workspace.",
}, targetlabels.Names())

// conditionStates are the conditions of each SyncTarget as the hub has set them last.
var conditionStates = prometheus.NewDesc("synchub_sync_target_condition",
	"1 for the status that a condition of a SyncTarget has. None: the SyncTarget has no such condition.", targetlabels.Names("condition", "status"), nil)

// runningControllers collects from the started controllers. A hub that does not lead has none.
var runningControllers = metrics.New(collectConditions, conditionStates)

// Collectors returns the package's metrics. Register them once.
func Collectors() []prometheus.Collector { return []prometheus.Collector{info, runningControllers} }

// measuredConditions are the conditions in the metric. Users who may write the status of a SyncTarget can add
// other conditions.
var measuredConditions = []string{
	edgev2alpha1.ConditionReady, edgev2alpha1.ConditionMailboxReady, edgev2alpha1.ConditionHeartbeatHealthy, edgev2alpha1.ConditionSyncerAuthorized,
	edgev2alpha1.ConditionSyncerReady, edgev2alpha1.ConditionClusterShared, edgev2alpha1.ConditionMailboxLimitExceeded, edgev2alpha1.ConditionAPIsMissing, edgev2alpha1.ConditionResourcesUnreadable,
	edgev2alpha1.ConditionTenancyNotApplied, edgev2alpha1.ConditionNamespacesLeft, edgev2alpha1.ConditionDrained, edgev2alpha1.ConditionNotImplemented, edgev2alpha1.ConditionSuspended, edgev2alpha1.ConditionStoreWentBack, edgev2alpha1.ConditionTunnelRefused,
}

// conditionState is the status of a condition.
type conditionState struct {
	condition string
	status    metav1.ConditionStatus
}

// measure returns the conditions that the metric has.
func measure(conditions []metav1.Condition) (states []conditionState) {
	for _, condition := range measuredConditions {
		if found := meta.FindStatusCondition(conditions, condition); found != nil {
			switch found.Status {
			case metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown:
				states = append(states, conditionState{condition, found.Status})
			}
		}
	}
	return states
}

func collectConditions(running []*Controller, metrics chan<- prometheus.Metric) {
	of := map[types.UID][]conditionState{}
	for _, controller := range running {
		controller.store.lock.Lock()
		for uid, found := range controller.store.entries {
			if found.state != nil {
				of[uid] = found.state.conditions
			}
		}
		controller.store.lock.Unlock()
	}
	for uid, states := range of {
		for _, state := range states {
			metrics <- prometheus.MustNewConstMetric(conditionStates, prometheus.GaugeValue, 1, targetlabels.Values(uid, state.condition, string(state.status))...)
		}
	}
}

// setConditions records the conditions of a SyncTarget for the metric.
func (s *store) setConditions(state *syncTargetState, conditions []metav1.Condition) {
	measured := measure(conditions)
	s.lock.Lock()
	defer s.lock.Unlock()
	state.conditions = measured
}

func setInfo(syncTarget types.UID, request mcreconcile.Request) {
	targetlabels.Set(syncTarget, request.Name, string(request.ClusterName))
	info.WithLabelValues(targetlabels.Values(syncTarget)...).Set(1)
}

func deleteInfo(syncTarget types.UID) {
	info.DeletePartialMatch(prometheus.Labels{targetlabels.UID: string(syncTarget)})
	targetlabels.Forget(syncTarget)
}
