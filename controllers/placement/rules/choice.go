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

package rules

import (
	"cmp"
	"hash/fnv"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

// defaultToleration is the default of spec.tolerationSeconds, and that of Pods for a Node that is unreachable.
const defaultToleration = 300 * time.Second

// Choice says how many of the matching SyncTargets a placement uses, and which.
type Choice struct {
	Number int
	// Spread are the keys of labels over whose values the SyncTargets are spread, the most important one first.
	Spread []string
	// Toleration is how long a chosen SyncTarget may be not Ready.
	Toleration time.Duration
}

func newChoice(spec *edgev2alpha1.EdgePlacementSpec) *Choice {
	if spec.NumberOfClusters == nil {
		return nil
	}
	choice := &Choice{Number: int(*spec.NumberOfClusters), Toleration: defaultToleration}
	for _, constraint := range spec.Spread {
		choice.Spread = append(choice.Spread, constraint.Label)
	}
	if spec.TolerationSeconds != nil {
		choice.Toleration = time.Duration(*spec.TolerationSeconds) * time.Second
	}
	return choice
}

// Readiness tells since when SyncTargets are not Ready.
type Readiness interface {
	// NotReadySince returns since when a SyncTarget is not Ready; notReady is false if it is Ready.
	NotReadySince(syncTarget types.UID) (since time.Time, notReady bool)
}

// Chooser chooses the destinations of one placement. Its decisions depend on its fields and arguments only.
type Chooser struct {
	*Choice
	// Placement is the UID of the placement. It decides between SyncTargets that are equally good, so that placements do not
	// all choose the same one.
	Placement types.UID
	// Previous are the SyncTargets that are chosen now.
	Previous map[types.UID]bool
	// KeepOnly is true if no SyncTarget may be chosen anew, because the hub does not see all of them yet.
	KeepOnly  bool
	Readiness Readiness
	Now       time.Time
}

// candidate is a matching SyncTarget.
type candidate struct {
	*Destination
	// chosen is true if it is chosen now. usable is true if it may stay so.
	chosen, usable bool
	// ready is true if it may be chosen anew.
	ready bool
	// domains are its values of the first labels of the spread: of one, of two, and so on.
	domains []string
	// order decides between equally good candidates.
	order uint64
}

// Choose returns the chosen ones of the matching destinations, in the same order. recheckAt is when one that is not Ready has to be
// replaced, zero if there is none.
func (c *Chooser) Choose(matching []Destination) (chosen []Destination, recheckAt time.Time) {
	var usable, unusable, others []*candidate
	for i := range matching {
		one, expires := c.candidate(&matching[i])
		switch {
		case one.chosen && one.usable:
			usable = append(usable, one)
			if !expires.IsZero() && (recheckAt.IsZero() || expires.Before(recheckAt)) {
				recheckAt = expires
			}
		case one.chosen:
			unusable = append(unusable, one)
		case one.ready && !c.KeepOnly:
			others = append(others, one)
		}
	}
	picked := picker{wanted: c.Number, selected: map[types.UID]bool{}, used: map[string]int{}}
	picked.pick(usable)
	picked.pick(others)
	// An unusable one stays until another can take its place.
	picked.pick(unusable)
	for i := range matching {
		if picked.selected[matching[i].UID] {
			chosen = append(chosen, matching[i])
		}
	}
	return chosen, recheckAt
}

// candidate returns the state of a matching destination. expires is when it ceases to be usable, zero if that is not foreseen.
func (c *Chooser) candidate(of *Destination) (one *candidate, expires time.Time) {
	one = &candidate{Destination: of, chosen: c.Previous[of.UID], order: orderOf(c.Placement, of.UID)}
	var values strings.Builder
	for _, label := range c.Spread {
		values.WriteString(of.Labels[label] + "\n")
		one.domains = append(one.domains, values.String())
	}
	since, notReady := c.Readiness.NotReadySince(of.UID)
	one.usable, one.ready = !of.Unschedulable, !of.Unschedulable && !notReady
	if notReady {
		if expires = since.Add(c.Toleration); !c.Now.Before(expires) {
			one.usable = false
		}
	}
	return one, expires
}

// picker picks candidates, spread evenly over their domains.
type picker struct {
	wanted   int
	selected map[types.UID]bool
	// used counts the selected candidates by domain. No two labels of a spread share a domain, since a domain ends with as many
	// lines as it has labels.
	used map[string]int
}

// pick selects candidates until there are as many as wanted: in each step the one whose domains are used least.
func (p *picker) pick(from []*candidate) {
	if len(from) <= p.wanted-len(p.selected) {
		for _, one := range from {
			p.add(one)
		}
		return
	}
	slices.SortFunc(from, func(a, b *candidate) int { return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.UID, b.UID)) })
	for len(p.selected) < p.wanted {
		best := 0
		for i := range from {
			if p.compare(from[i], from[best]) < 0 {
				best = i
			}
		}
		p.add(from[best])
		from = slices.Delete(from, best, best+1)
	}
}

// compare is negative if the domains of a are used less than those of b.
func (p *picker) compare(a, b *candidate) int {
	for depth := range a.domains {
		if order := cmp.Compare(p.used[a.domains[depth]], p.used[b.domains[depth]]); order != 0 {
			return order
		}
	}
	return 0
}

func (p *picker) add(one *candidate) {
	p.selected[one.UID] = true
	for _, domain := range one.domains {
		p.used[domain]++
	}
}

func orderOf(placement, syncTarget types.UID) uint64 {
	hash := fnv.New64a()
	_, _ = io.WriteString(hash, string(placement)+"/"+string(syncTarget))
	return hash.Sum64()
}
