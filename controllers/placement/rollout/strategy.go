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
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

// maxMandatoryGroups bounds mandatoryDecisionGroups.
const maxMandatoryGroups = 256

// Strategy is the compiled rollout of a placement. It is immutable.
type Strategy struct {
	// GroupBy is the key of the label that defines the groups; empty for one group.
	GroupBy string
	// Paused admits no destination.
	Paused bool

	strategy                         clusterv1alpha1.RolloutStrategy
	minSuccessTime, progressDeadline time.Duration
}

// New returns the rollout of a placement; nil if every change is rolled out to all destinations at once. The
// error names the field that cannot be parsed.
func New(spec *edgev2alpha1.EdgePlacementSpec) (*Strategy, error) {
	if spec.RolloutStrategy == nil && !spec.Paused {
		return nil, nil
	}
	s := &Strategy{Paused: spec.Paused, strategy: clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.All}}
	if spec.RolloutStrategy != nil {
		s.GroupBy, s.strategy = spec.RolloutStrategy.GroupBy, *spec.RolloutStrategy.RolloutStrategy.DeepCopy()
		s.strategy.Type = cmp.Or(s.strategy.Type, clusterv1alpha1.All)
	}
	config, field, groups := s.config()
	if config == nil {
		return s, nil
	}
	field = "spec.rolloutStrategy." + field
	if len(groups) > 0 && s.GroupBy == "" {
		return nil, fmt.Errorf("%s.mandatoryDecisionGroups needs spec.rolloutStrategy.groupBy, whose values are the names of the groups", field)
	}
	if len(groups) > maxMandatoryGroups {
		return nil, fmt.Errorf("%s.mandatoryDecisionGroups has %d groups, and may have %d", field, len(groups), maxMandatoryGroups)
	}
	if s.minSuccessTime = config.MinSuccessTime.Duration; s.minSuccessTime < 0 {
		return nil, fmt.Errorf("%s.minSuccessTime is negative", field)
	}
	if err := s.parseDeadline(field, config.ProgressDeadline); err != nil {
		return nil, err
	}
	// The handler checks the rest.
	if _, err := s.Decide(nil, time.Time{}); err != nil {
		return nil, err
	}
	return s, nil
}

// noDeadline is the value of progressDeadline that means no deadline. No value means the same.
const noDeadline = "None"

func (s *Strategy) parseDeadline(field, text string) (err error) {
	if text == "" || text == noDeadline {
		return nil
	}
	if s.progressDeadline, err = time.ParseDuration(text); err != nil || s.progressDeadline <= 0 {
		return fmt.Errorf("%s.progressDeadline is %q: it must be %s, or a positive duration such as 90s, 15m or 2h", field, text, noDeadline)
	}
	return nil
}

// config returns the settings of the strategy's type with the name of their field, and its mandatory groups; nil if there are none.
func (s *Strategy) config() (config *clusterv1alpha1.RolloutConfig, field string, mandatory []clusterv1alpha1.MandatoryDecisionGroup) {
	switch of := &s.strategy; {
	case of.Type == clusterv1alpha1.All && of.All != nil:
		return &of.All.RolloutConfig, "all", nil
	case of.Type == clusterv1alpha1.Progressive && of.Progressive != nil:
		return &of.Progressive.RolloutConfig, "progressive", of.Progressive.MandatoryDecisionGroups.MandatoryDecisionGroups
	case of.Type == clusterv1alpha1.ProgressivePerGroup && of.ProgressivePerGroup != nil:
		return &of.ProgressivePerGroup.RolloutConfig, "progressivePerGroup", of.ProgressivePerGroup.MandatoryDecisionGroups.MandatoryDecisionGroups
	default:
		return nil, "", nil
	}
}

// AdmitsAll reports whether no destination ever waits for another one, so that no decision is needed.
func (s *Strategy) AdmitsAll() bool {
	return s == nil || !s.Paused && s.strategy.Type == clusterv1alpha1.All
}

// limited returns the strategy with maxFailures limited to the number of destinations. The handler treats a
// larger number as the default, which is none.
func (s *Strategy) limited(destinations int) clusterv1alpha1.RolloutStrategy {
	strategy := *s.strategy.DeepCopy()
	if strategy.Progressive != nil {
		limit(&strategy.Progressive.MaxFailures, destinations)
	}
	return strategy
}

func limit(number *intstr.IntOrString, most int) {
	if number.Type == intstr.Int && number.IntValue() > most {
		*number = intstr.FromInt(most)
	}
}

// sortGroups sorts the names of groups: numbers by their values, then texts, and last the empty name.
func sortGroups(names []string) {
	slices.SortFunc(names, func(a, b string) int {
		first, errFirst := strconv.ParseUint(a, 10, 64)
		second, errSecond := strconv.ParseUint(b, 10, 64)
		return cmp.Or(cmp.Compare(rank(a, errFirst), rank(b, errSecond)), cmp.Compare(first, second), cmp.Compare(a, b))
	})
}

func rank(name string, notNumber error) int {
	switch {
	case notNumber == nil:
		return 0
	case name != "":
		return 1
	default:
		return 2
	}
}
