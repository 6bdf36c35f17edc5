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

package rollout

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	handler "open-cluster-management.io/sdk-go/pkg/apis/cluster/v1alpha1"
	"open-cluster-management.io/sdk-go/pkg/apis/cluster/v1beta1"
)

// Progress is the progress of a destination with the present content of all objects of the placement.
type Progress int

const (
	// Waiting: some object is not as desired, and the destination is not admitted.
	Waiting Progress = iota
	// Progressing: the destination is admitted, and some object is not there yet or not healthy yet.
	Progressing
	// Succeeded: all objects are there, and healthy.
	Succeeded
	// Failed: all objects are there, or cannot be, and some object has failed.
	Failed
)

// Destination is a destination of a placement.
type Destination struct {
	// SyncTarget is the UID of the SyncTarget, and Name its name. Destinations are taken in the order of their names.
	SyncTarget types.UID
	Name       string
	// Group is the value of the label that defines the groups.
	Group    string
	Progress Progress
	// Since is when Progress last changed.
	Since time.Time
}

// Decision contains the destinations that may get the present content of the objects.
type Decision struct {
	// Admitted are the destinations that may get it. A destination that needs nothing may be missing.
	Admitted sets.Set[types.UID]
	// TimedOut are the destinations that were not successful within the deadline. They count as failed.
	TimedOut sets.Set[types.UID]
	// Stopped is true if destinations wait, none of them is admitted, and only failed destinations hold them
	// back.
	Stopped bool
	// RecheckAfter is the delay after which time alone may change the decision; zero for never.
	RecheckAfter time.Duration
}

// Decide decides for all destinations of a placement. It returns an error for a strategy that the handler
// refuses.
func (s *Strategy) Decide(destinations []Destination, now time.Time) (Decision, error) {
	decision := Decision{Admitted: sets.New[types.UID](), TimedOut: sets.New[types.UID]()}
	groups := s.groupsOf(destinations)
	byID := make(map[string]*Destination, len(destinations))
	var statuses []handler.ClusterRolloutStatus
	for i := range destinations {
		of := &destinations[i]
		byID[of.id()] = of
		if status, ok := s.statusOf(of, now); ok {
			statuses = append(statuses, status)
		}
	}
	tracker := v1beta1.NewPlacementDecisionClustersTrackerWithGroups(nil, nil, groups.clusters)
	// The handler needs the function only to make statuses, which are known here.
	rollouts, err := handler.NewRolloutHandler[struct{}](tracker, nil)
	if err != nil {
		return decision, fmt.Errorf("cannot roll out: %w", err)
	}
	_, result, err := rollouts.GetRolloutCluster(s.limited(len(destinations)), statuses)
	if err != nil {
		return decision, fmt.Errorf("spec.rolloutStrategy: %w", err)
	}
	for _, cluster := range result.ClustersTimeOut {
		decision.TimedOut.Insert(byID[cluster.ClusterName].SyncTarget)
	}
	admitted := make([]*Destination, 0, len(result.ClustersToRollout))
	for _, cluster := range result.ClustersToRollout {
		admitted = append(admitted, byID[cluster.ClusterName])
	}
	for _, of := range s.firstGroup(admitted, groups) {
		decision.Admitted.Insert(of.SyncTarget)
	}
	// A destination that timed out stays admitted so that it can finish.
	decision.Admitted = decision.Admitted.Union(decision.TimedOut)
	if s.Paused {
		decision.Admitted = sets.New[types.UID]()
	}
	decision.Stopped = !s.Paused && s.isStopped(destinations, decision, now)
	decision.RecheckAfter = s.recheckAfter(destinations, now)
	return decision, nil
}

// id returns the key that destinations are sorted by. SyncTargets of different inventories may have one name.
func (d *Destination) id() string { return d.Name + "\n" + string(d.SyncTarget) }

// statusOf returns the status of a destination to which the content has been applied; ok is false for the other
// destinations, which the handler admits in their order.
func (s *Strategy) statusOf(of *Destination, now time.Time) (status handler.ClusterRolloutStatus, ok bool) {
	// The handler has a clock of its own, so only the elapsed time matters.
	since := metav1.NewTime(handler.RolloutClock.Now().Add(of.Since.Sub(now)))
	status = handler.ClusterRolloutStatus{ClusterName: of.id(), LastTransitionTime: &since}
	switch of.Progress {
	case Progressing:
		status.Status = handler.Progressing
	case Succeeded:
		status.Status = handler.Succeeded
	case Failed:
		status.Status = handler.Failed
	case Waiting:
		return status, false
	}
	return status, true
}

// groups are the groups of a placement in their order.
type groups struct {
	clusters v1beta1.ClusterGroupsMap
	// position is the position of each group; mandatory groups come first.
	position map[string]int
}

func (s *Strategy) groupsOf(destinations []Destination) groups {
	members := map[string]sets.Set[string]{}
	var names []string
	for i := range destinations {
		of := &destinations[i]
		if members[of.Group] == nil {
			members[of.Group] = sets.New[string]()
			names = append(names, of.Group)
		}
		members[of.Group].Insert(of.id())
	}
	sortGroups(names)
	all := groups{v1beta1.ClusterGroupsMap{}, map[string]int{}}
	_, _, mandatory := s.config()
	for i, name := range names {
		all.clusters[v1beta1.GroupKey{GroupName: name, GroupIndex: int32(i)}] = members[name]
		all.position[name] = i
		if slices.ContainsFunc(mandatory, func(of clusterv1alpha1.MandatoryDecisionGroup) bool {
			return of.GroupName == name && name != "" || of.GroupName == "" && int(of.GroupIndex) == i
		}) {
			all.position[name] -= len(names)
		}
	}
	return all
}

// firstGroup drops the waiting destinations of all groups except the first unfinished one. The handler
// subtracts timed-out failures from the destinations in progress, although they are not among these. So it may
// admit two groups at once.
func (s *Strategy) firstGroup(admitted []*Destination, all groups) []*Destination {
	if s.strategy.Type != clusterv1alpha1.ProgressivePerGroup {
		return admitted
	}
	first := len(all.position)
	for _, of := range admitted {
		if of.Progress != Failed {
			first = min(first, all.position[of.Group])
		}
	}
	return slices.DeleteFunc(admitted, func(of *Destination) bool { return of.Progress == Waiting && all.position[of.Group] != first })
}

// isStopped reports whether only failed destinations hold back waiting ones. The handler reports only some of
// these cases.
func (s *Strategy) isStopped(all []Destination, decision Decision, now time.Time) bool {
	isWaiting, hasFailed := false, false
	for _, of := range all {
		switch {
		case of.Progress == Waiting && decision.Admitted.Has(of.SyncTarget),
			of.Progress == Progressing && !decision.TimedOut.Has(of.SyncTarget),
			of.Progress == Succeeded && now.Before(of.Since.Add(s.minSuccessTime)):
			return false
		case of.Progress == Waiting:
			isWaiting = true
		case of.Progress != Succeeded:
			hasFailed = true
		}
	}
	return isWaiting && hasFailed
}

// recheckAfter returns the delay until a destination will have been successful for long enough, or miss its
// deadline.
func (s *Strategy) recheckAfter(destinations []Destination, now time.Time) (after time.Duration) {
	for _, of := range destinations {
		var limit time.Duration
		switch of.Progress {
		case Succeeded:
			limit = s.minSuccessTime
		case Progressing, Failed:
			limit = s.progressDeadline
		case Waiting:
		}
		if left := of.Since.Add(limit).Sub(now); left > 0 && (after == 0 || left < after) {
			after = left
		}
	}
	return after
}
