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

package rules_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/findings"
	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
)

var choiceTime = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// notReady are the SyncTargets that are not Ready, and for how long.
type notReady map[types.UID]time.Duration

func (n notReady) registry() *findings.Readiness {
	registry := &findings.Readiness{}
	for _, first := range "abcdefg" {
		for second := range 13 {
			// The names of SyncTargets are a letter, and a number in random tests.
			name := types.UID(fmt.Sprintf("%c%d", first, second-1))
			if second == 0 {
				name = types.UID(first)
			}
			since, failing := n[name]
			registry.Set(name, !failing, choiceTime.Add(-since), time.Time{})
		}
	}
	return registry
}

// matching returns SyncTargets with the label zone. A name that begins with c is cordoned.
func matching(namesAndZones ...string) (all []rules.Destination) {
	for pair := range slices.Chunk(namesAndZones, 2) {
		name, zone := pair[0], pair[1]
		all = append(all, rules.Destination{SyncTarget: fleet.SyncTarget{
			Name: name, UID: types.UID(name), Labels: map[string]string{"zone": zone}, Unschedulable: strings.HasPrefix(name, "c"),
		}})
	}
	return all
}

func chooser(number int, failing notReady, previous ...types.UID) *rules.Chooser {
	chosen := map[types.UID]bool{}
	for _, uid := range previous {
		chosen[uid] = true
	}
	return &rules.Chooser{
		Choice: &rules.Choice{Number: number, Toleration: 5 * time.Minute}, Placement: "p", Previous: chosen, Readiness: failing.registry(), Now: choiceTime,
	}
}

// Without a number a placement uses all matching SyncTargets. The default toleration of a failure is the
// toleration of Pods for an unreachable Node. Zero tolerates no failure.
func TestCompileChoice(t *testing.T) {
	if got := compile(t, edgev2alpha1.EdgePlacementSpec{TolerationSeconds: new(int64(7))}).Choice; got != nil {
		t.Errorf("without a number: %+v", got)
	}
	for name, test := range map[string]struct {
		seconds *int64
		want    time.Duration
	}{
		"the default": {nil, 5 * time.Minute}, "said": {new(int64(7)), 7 * time.Second}, "none": {new(int64(0)), 0},
	} {
		spec := edgev2alpha1.EdgePlacementSpec{NumberOfClusters: new(int32(3)), TolerationSeconds: test.seconds, Spread: []edgev2alpha1.SpreadConstraint{{Label: "region"}, {Label: "zone"}}}
		got := compile(t, spec).Choice
		if got == nil || got.Number != 3 || got.Toleration != test.want || !slices.Equal(got.Spread, []string{"region", "zone"}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func namesOf(destinations []rules.Destination) (names []string) {
	for _, destination := range destinations {
		names = append(names, destination.Name)
	}
	return names
}

func TestChoose(t *testing.T) {
	four := matching("a", "1", "b", "1", "d", "2", "e", "2")
	for name, test := range map[string]struct {
		chooser  *rules.Chooser
		matching []rules.Destination
		want     []string
		recheck  time.Duration
	}{
		"as many as wanted":                      {chooser(4, nil), four, []string{"a", "b", "d", "e"}, 0},
		"fewer than wanted":                      {chooser(9, nil), four, []string{"a", "b", "d", "e"}, 0},
		"the chosen ones stay":                   {chooser(2, nil, "b", "e"), four, []string{"b", "e"}, 0},
		"one that is not Ready is not chosen":    {chooser(9, notReady{"a": time.Second}), four, []string{"b", "d", "e"}, 0},
		"one that is cordoned is not chosen":     {chooser(9, nil), matching("a", "1", "c", "1"), []string{"a"}, 0},
		"a short failure is tolerated":           {chooser(1, notReady{"a": time.Minute}, "a"), four[:2], []string{"a"}, 4 * time.Minute},
		"the first of two ends first":            {chooser(2, notReady{"a": time.Minute, "b": 3 * time.Minute}, "a", "b"), four[:4], []string{"a", "b"}, 2 * time.Minute},
		"the second of two ends first":           {chooser(2, notReady{"a": 3 * time.Minute, "b": time.Minute}, "a", "b"), four[:4], []string{"a", "b"}, 2 * time.Minute},
		"a long one is not":                      {chooser(1, notReady{"a": 5 * time.Minute}, "a"), four[:2], []string{"b"}, 0},
		"unless nothing can take its place":      {chooser(1, notReady{"a": time.Hour, "b": time.Second}, "a"), four[:2], []string{"a"}, 0},
		"a cordoned one is replaced at once":     {chooser(1, nil, "c"), matching("a", "1", "c", "1"), []string{"a"}, 0},
		"unless nothing is Ready":                {chooser(1, notReady{"a": 0}, "c"), matching("a", "1", "c", "1"), []string{"c"}, 0},
		"one that does not match is replaced":    {chooser(1, nil, "gone"), four[:1], []string{"a"}, 0},
		"a smaller number keeps the usable ones": {chooser(1, notReady{"a": time.Hour}, "a", "b"), four, []string{"b"}, 0},
	} {
		got := test.chooser.Choose(test.matching)
		recheck := time.Duration(0)
		if !got.RecheckAt.IsZero() {
			recheck = got.RecheckAt.Sub(choiceTime)
		}
		if !slices.Equal(namesOf(got.Destinations), test.want) || recheck != test.recheck {
			t.Errorf("%s: %v, again in %s", name, namesOf(got.Destinations), recheck)
		}
	}
}

// After a start the hub does not know yet which SyncTargets are Ready.
func TestChooseUnknown(t *testing.T) {
	c := chooser(2, nil, "b")
	c.Readiness = &findings.Readiness{}
	if got := c.Choose(matching("a", "1", "b", "1", "d", "2")); !slices.Equal(namesOf(got.Destinations), []string{"b"}) || !got.RecheckAt.IsZero() {
		t.Errorf("chosen are %v, again at %s", namesOf(got.Destinations), got.RecheckAt)
	}
}

// A chosen SyncTarget that vanished without proof keeps its place for the toleration, like a SyncTarget that is
// not Ready.
func TestChooseWithMissing(t *testing.T) {
	four := matching("a", "1", "b", "1", "d", "2", "e", "2")
	for name, test := range map[string]struct {
		number   int
		since    time.Duration
		matching []rules.Destination
		chosen   int
		keeps    bool
	}{
		"it is tolerated":                {1, time.Minute, four, 0, true},
		"others fill the other places":   {3, time.Minute, four, 2, true},
		"after that another one follows": {1, 5 * time.Minute, four, 1, false},
		"unless there is none":           {1, time.Hour, nil, 0, true},
	} {
		c := chooser(test.number, nil)
		c.Missing = map[types.UID]time.Time{"gone": choiceTime.Add(-test.since)}
		got := c.Choose(test.matching)
		if len(got.Destinations) != test.chosen || slices.Contains(got.Missing, "gone") != test.keeps {
			t.Errorf("%s: %v, missing %v", name, namesOf(got.Destinations), got.Missing)
		}
		if isTolerated := test.since < 5*time.Minute; got.RecheckAt.IsZero() == isTolerated {
			t.Errorf("%s: again at %s", name, got.RecheckAt)
		}
	}
}

func TestChooseSpreads(t *testing.T) {
	all := matching("a", "1", "b", "1", "d", "1", "e", "1", "f", "2", "g", "3")
	spread := chooser(3, nil)
	spread.Spread = []string{"zone"}
	got := spread.Choose(all).Destinations
	zones := map[string]bool{}
	for _, one := range got {
		zones[one.Labels["zone"]] = true
	}
	if len(zones) != 3 {
		t.Errorf("chosen are %v", namesOf(got))
	}
	// The chosen ones stay, and the new one is in the domain without any.
	spread = chooser(3, nil, "a", "b")
	spread.Spread = []string{"zone"}
	if got := spread.Choose(all).Destinations; len(got) != 3 || !slices.Equal(namesOf(got)[:2], []string{"a", "b"}) || got[2].Labels["zone"] == "1" {
		t.Errorf("chosen are %v", namesOf(got))
	}
	// With a smaller number, the remaining SyncTargets are still spread.
	spread = chooser(2, nil, "a", "b", "f")
	spread.Spread = []string{"zone"}
	if got := spread.Choose(all).Destinations; len(got) != 2 || got[1].Name != "f" {
		t.Errorf("chosen are %v", namesOf(got))
	}
}

// randomMatching returns random SyncTargets, with a random chooser for them.
func randomMatching(random *rand.Rand) (*rules.Chooser, []rules.Destination) {
	var names []string
	failing, previous := notReady{}, []types.UID{}
	for i := range random.IntN(12) {
		name := fmt.Sprintf("%c%d", "abc"[random.IntN(3)], i)
		names = append(names, name, fmt.Sprint(random.IntN(3)))
		if random.IntN(3) == 0 {
			failing[types.UID(name)] = time.Duration(random.IntN(10)) * time.Minute
		}
		if random.IntN(3) == 0 {
			previous = append(previous, types.UID(name))
		}
	}
	made := chooser(1+random.IntN(6), failing, previous...)
	made.Spread = [][]string{nil, {"zone"}, {"none", "zone"}}[random.IntN(3)]
	return made, matching(names...)
}

// After any change of the SyncTargets, never more than the wanted number are chosen, as many as possible are,
// and only matching ones. A usable one is never replaced. Equal inputs give equal results.
func TestChooseProperties(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the test repeats
	for range 2000 {
		c, all := randomMatching(random)
		got := c.Choose(all).Destinations
		if again := c.Choose(all).Destinations; !slices.Equal(namesOf(got), namesOf(again)) {
			t.Fatalf("%v, and then %v", namesOf(got), namesOf(again))
		}
		able, usable, kept := 0, 0, 0
		for _, one := range all {
			isFresh, isUsable := stateOf(c, one)
			isKept := slices.Contains(namesOf(got), one.Name)
			able += count(c.Previous[one.UID] || isFresh)
			usable += count(c.Previous[one.UID] && isUsable)
			kept += count(c.Previous[one.UID] && isUsable && isKept)
			if isKept && !c.Previous[one.UID] && !isFresh {
				t.Fatalf("%s is newly chosen, although it may not be", one.Name)
			}
		}
		if len(got) != min(able, c.Number) || kept != min(usable, c.Number) {
			t.Fatalf("%d of %d chosen, %d of %d kept, and %d wanted", len(got), able, kept, usable, c.Number)
		}
	}
}

// stateOf reports whether a SyncTarget may be newly chosen, and whether it may stay chosen.
func stateOf(c *rules.Chooser, one rules.Destination) (isFresh, isUsable bool) {
	ready, since, _ := c.Readiness.Of(one.UID)
	return !one.Unschedulable && ready, !one.Unschedulable && (ready || choiceTime.Sub(since) < c.Toleration)
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}
