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

// defaultToleration is the default of spec.tolerationSeconds. Pods tolerate an unreachable Node as long.
const defaultToleration = 300 * time.Second

// Choice is the number of matching SyncTargets that a placement uses, with the rules for choosing them.
type Choice struct {
	Number int
	// Spread are label keys. The SyncTargets are spread over the values of these labels, the most important one
	// first.
	Spread []string
	// Toleration is how long a chosen SyncTarget may be not Ready before it is replaced.
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

// Chooser chooses the destinations of one placement. Its decisions depend on its fields and arguments only.
type Chooser struct {
	*Choice
	// Placement is the UID of the placement. It decides between SyncTargets that are equally good, so that placements do not
	// all choose the same one.
	Placement types.UID
	// Previous are the matching SyncTargets that are chosen now.
	Previous map[types.UID]bool
	// Missing are chosen SyncTargets that stopped matching without proof, with the time when they stopped. They
	// keep their places for the toleration.
	Missing map[types.UID]time.Time
	// Readiness reports which SyncTargets are Ready, and since when they are or are not. A SyncTarget of unknown readiness keeps its
	// place, but is not chosen newly.
	Readiness interface {
		Of(syncTarget types.UID) (ready bool, since time.Time, known bool)
	}
	Now time.Time
}

// Chosen is the decision of a Chooser.
type Chosen struct {
	// Destinations are the chosen destinations, in the order of the matching ones.
	Destinations []Destination
	// Missing are the missing SyncTargets that keep their places.
	Missing []types.UID
	// RecheckAt is when the toleration of a SyncTarget ends that is not Ready or missing; zero if there is
	// none.
	RecheckAt time.Time
}

// candidate is a SyncTarget that matches or is missing.
type candidate struct {
	uid types.UID
	// domains contains the candidate's values of the first label of the spread, of the first two, and so on. It
	// is empty for a missing SyncTarget.
	domains []string
	// order decides between equally good candidates.
	order uint64
}

// Choose chooses from the matching destinations.
func (c *Chooser) Choose(matching []Destination) (chosen Chosen) {
	sorted := c.sort(matching)
	picked := picker{wanted: c.Number, selected: map[types.UID]bool{}, used: map[string]int{}}
	picked.pick(sorted.usable)
	picked.pick(sorted.others)
	// An unusable SyncTarget stays until another one can replace it.
	picked.pick(sorted.unusable)
	chosen.RecheckAt = sorted.expiresAt
	for i := range matching {
		if picked.selected[matching[i].UID] {
			chosen.Destinations = append(chosen.Destinations, matching[i])
		}
	}
	for missing := range c.Missing {
		if picked.selected[missing] {
			chosen.Missing = append(chosen.Missing, missing)
		}
	}
	return chosen
}

// candidates are SyncTargets by their usability: chosen ones that may stay, further ones that may be chosen,
// and chosen ones that must be replaced.
type candidates struct {
	usable, others, unusable []*candidate
	// expiresAt is when the toleration of the first usable one ends; zero if there is none.
	expiresAt time.Time
}

func (c *Chooser) sort(matching []Destination) candidates {
	var sorted candidates
	for i := range matching {
		of := &matching[i]
		one, isChosen := c.candidate(of.UID, of.Labels), c.Previous[of.UID]
		ready, since, known := c.Readiness.Of(of.UID)
		switch {
		case isChosen && of.Unschedulable:
			sorted.unusable = append(sorted.unusable, one)
		case isChosen && known && !ready:
			c.tolerate(one, since, &sorted)
		case isChosen:
			sorted.usable = append(sorted.usable, one)
		case !of.Unschedulable && ready:
			sorted.others = append(sorted.others, one)
		}
	}
	for missing, since := range c.Missing {
		c.tolerate(c.candidate(missing, nil), since, &sorted)
	}
	return sorted
}

// tolerate adds a chosen SyncTarget that is not Ready, or missing, since the given time.
func (c *Chooser) tolerate(one *candidate, since time.Time, to *candidates) {
	expiresAt := since.Add(c.Toleration)
	if !c.Now.Before(expiresAt) {
		to.unusable = append(to.unusable, one)
		return
	}
	to.usable = append(to.usable, one)
	if to.expiresAt.IsZero() || expiresAt.Before(to.expiresAt) {
		to.expiresAt = expiresAt
	}
}

func (c *Chooser) candidate(uid types.UID, labels map[string]string) *candidate {
	one := &candidate{uid: uid, order: orderOf(c.Placement, uid)}
	if labels == nil {
		return one
	}
	var values strings.Builder
	for _, label := range c.Spread {
		values.WriteString(labels[label] + "\n")
		one.domains = append(one.domains, values.String())
	}
	return one
}

// picker picks candidates, spread evenly over their domains.
type picker struct {
	wanted   int
	selected map[types.UID]bool
	// used counts the selected candidates by domain. No two labels of a spread share a domain, since a domain ends with as many
	// lines as it has labels.
	used map[string]int
}

// pick selects candidates until the wanted number is reached. In each step it selects the candidate whose
// domains are used least.
func (p *picker) pick(from []*candidate) {
	if len(from) <= p.wanted-len(p.selected) {
		for _, one := range from {
			p.add(one)
		}
		return
	}
	slices.SortFunc(from, func(a, b *candidate) int { return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.uid, b.uid)) })
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

// compare is negative if the domains of a are used less than the domains of b.
func (p *picker) compare(a, b *candidate) int {
	for depth := range min(len(a.domains), len(b.domains)) {
		if order := cmp.Compare(p.used[a.domains[depth]], p.used[b.domains[depth]]); order != 0 {
			return order
		}
	}
	return 0
}

func (p *picker) add(one *candidate) {
	p.selected[one.uid] = true
	for _, domain := range one.domains {
		p.used[domain]++
	}
}

func orderOf(placement, syncTarget types.UID) uint64 {
	hash := fnv.New64a()
	_, _ = io.WriteString(hash, string(placement)+"/"+string(syncTarget))
	return hash.Sum64()
}
