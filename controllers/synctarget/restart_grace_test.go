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
	"fmt"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestRestartGrace(t *testing.T) {
	ago := func(age time.Duration) *metav1.Time { return &metav1.Time{Time: noon.Add(-age)} }
	since := func(transition time.Duration) *metav1.Condition {
		return &metav1.Condition{Status: metav1.ConditionTrue, Reason: "Stored", LastTransitionTime: *ago(transition)}
	}
	const hour = time.Hour
	for name, test := range map[string]struct {
		stored    *metav1.Condition
		reason    string
		heartbeat *metav1.Time
		// seen is how long the hub has observed the SyncTarget.
		seen, want time.Duration
	}{
		"a new SyncTarget":                       {nil, targets.ReasonConnecting, nil, 0, 0},
		"an answer":                              {since(hour), targets.ReasonConnected, ago(0), 0, 0},
		"a failure":                              {since(hour), targets.ReasonUnreachable, ago(0), 0, 0},
		"missing credentials":                    {since(hour), ReasonCredentialsMissing, ago(0), 0, 0},
		"this hub has said so":                   {since(0), targets.ReasonConnecting, ago(0), time.Second, 0},
		"a quick restart":                        {since(hour), targets.ReasonConnecting, ago(20 * time.Second), 0, 100 * time.Second},
		"a quick restart, a while later":         {since(hour), targets.ReasonConnecting, ago(time.Minute), 40 * time.Second, time.Minute},
		"too long ago":                           {since(hour), targets.ReasonConnecting, ago(2 * time.Minute), 100 * time.Second, 0},
		"a long outage":                          {since(hour), targets.ReasonConnecting, ago(hour), 0, restartGracePeriod},
		"a long outage, a while later":           {since(hour), targets.ReasonConnecting, ago(hour), restartGracePeriod, 0},
		"it never answered":                      {since(hour), targets.ReasonConnecting, nil, 0, restartGracePeriod},
		"a heartbeat from the future":            {since(hour), targets.ReasonConnecting, ago(-hour), 0, staleHeartbeatAge},
		"the mailbox is not read":                {since(hour), ReasonStarting, ago(0), time.Minute, time.Minute},
		"the mailbox is not read for long":       {since(hour), ReasonStarting, ago(0), 2 * time.Minute, 0},
		"the mailbox is not read after a outage": {since(hour), ReasonStarting, ago(hour), 0, staleHeartbeatAge},
	} {
		got := restartGrace(test.stored, metav1.Condition{Reason: test.reason}, test.heartbeat, noon.Add(-test.seen), noon)
		if got != test.want {
			t.Errorf("%s: want %v, got %v", name, test.want, got)
		}
	}
}

// statusSimulation computes the status of a SyncTarget again and again, and counts each difference as a write.
type statusSimulation struct {
	*edgev2alpha1.SyncTarget
	state  *syncTargetState
	view   statusView
	writes int
	// log holds the condition Ready of each write.
	log []string
}

func newStatusSimulation() *statusSimulation {
	l := &statusSimulation{SyncTarget: &edgev2alpha1.SyncTarget{}}
	l.Name, l.UID = "florin", "florin-uid"
	l.Status.Mailbox = &edgev2alpha1.MailboxStatus{Cluster: "m"}
	meta.SetStatusCondition(&l.Status.Conditions, metav1.Condition{Type: edgev2alpha1.ConditionMailboxReady, Status: metav1.ConditionTrue, Reason: "Ready"})
	l.view = statusView{now: noon, health: connecting, observedState: observedState{mailbox: "m"}}
	l.restart()
	return l
}

// restart simulates that another hub takes over.
func (l *statusSimulation) restart() {
	l.state = &syncTargetState{since: l.view.now}
	l.view.health, l.view.ConfigsKnown = connecting, false
}

// probeSucceeded simulates a successful probe.
func (l *statusSimulation) probeSucceeded() {
	l.view.health = targets.Health{Up: true, Reason: targets.ReasonConnected, Message: "it answers", Version: "v1", LastSeen: l.view.now}
	l.view.ConfigsKnown = true
}

func (l *statusSimulation) apply() time.Duration {
	stored := l.Status.DeepCopy()
	requeueAfter := l.view.apply(l.SyncTarget, l.state)
	for i := range l.Status.Conditions {
		// Transition times must follow the simulated clock.
		if before := meta.FindStatusCondition(stored.Conditions, l.Status.Conditions[i].Type); before == nil || before.Status != l.Status.Conditions[i].Status {
			l.Status.Conditions[i].LastTransitionTime = metav1.NewTime(l.view.now.Truncate(time.Second))
		}
	}
	if !apiequality.Semantic.DeepEqual(stored, &l.Status) {
		l.writes++
		ready := meta.FindStatusCondition(l.Status.Conditions, edgev2alpha1.ConditionReady)
		l.log = append(l.log, string(ready.Status)+" "+ready.Reason)
	}
	return requeueAfter
}

// run advances the clock second by second, with a probe every ten seconds. It computes the status when that was requested, and every
// seven seconds without a reason. It returns the number of writes.
func (l *statusSimulation) run(length time.Duration, probe func()) (writes int) {
	before, due := l.writes, l.view.now
	for range int(length / time.Second) {
		if l.view.now.Second()%10 == 3 {
			probe()
		}
		if !l.view.now.Before(due) || l.view.now.Second()%7 == 0 {
			if requeueAfter := l.apply(); requeueAfter > 0 {
				due = l.view.now.Add(requeueAfter)
			} else {
				due = l.view.now.Add(time.Hour)
			}
		}
		l.view.now = l.view.now.Add(time.Second)
	}
	return l.writes - before
}

func TestStatusWritesOfAQuietTarget(t *testing.T) {
	l := newStatusSimulation()
	l.run(2*time.Minute, l.probeSucceeded)
	if writes := l.run(10*time.Minute, l.probeSucceeded); writes > 10 || writes < 9 {
		t.Errorf("%d writes in ten quiet minutes", writes)
	}

	// Frequent changes of the leader do not add writes.
	l.log = nil
	writes := 0
	for range 80 {
		l.restart()
		writes += l.run(8*time.Second, l.probeSucceeded)
		if age := l.view.now.Sub(l.Status.LastSyncerHeartbeatTime.Time); age > staleHeartbeatAge {
			t.Fatalf("the heartbeat is %v old", age)
		}
	}
	if writes > 10 {
		t.Errorf("%d writes in ten minutes of restarts", writes)
	}
	if bad := strings.Join(l.log, ", "); strings.Contains(bad, "Unknown") || strings.Contains(bad, "False") {
		t.Errorf("restarts were written as %s", bad)
	}

	// After a long outage there is one write, since the target responds.
	l.log = nil
	l.view.now = l.view.now.Add(time.Hour)
	l.restart()
	if writes := l.run(time.Minute, l.probeSucceeded); writes != 1 || l.log[0] != "True Ready" {
		t.Errorf("after an outage there were the writes %q", l.log)
	}

	// A target that is down causes few writes, even if its error message differs each time.
	failures := 0
	fail := func() {
		failures++
		l.view.health = targets.Health{Reason: targets.ReasonUnreachable, Message: fmt.Sprint("failure ", failures), LastSeen: l.view.health.LastSeen}
	}
	l.run(time.Minute, fail)
	if writes := l.run(10*time.Minute, fail); writes > 10 {
		t.Errorf("%d writes in ten minutes of a target that is down", writes)
	}
}

// A condition that the hub cannot determine does not stay True for long.
func TestUnknownInsteadOfStale(t *testing.T) {
	for name, test := range map[string]struct {
		outage time.Duration
		// green is how long the condition may stay True, with a margin for the reconcile.
		green time.Duration
	}{
		"after a long outage":   {time.Hour, restartGracePeriod},
		"after a quick restart": {time.Second, staleHeartbeatAge},
	} {
		t.Run(name, func(t *testing.T) {
			l := newStatusSimulation()
			l.run(2*time.Minute, l.probeSucceeded)
			l.view.now = l.view.now.Add(test.outage)
			l.restart()
			l.log = nil
			l.run(test.green+time.Second, func() {})
			for _, conditionType := range []string{edgev2alpha1.ConditionReady, edgev2alpha1.ConditionHeartbeatHealthy, edgev2alpha1.ConditionSyncerReady} {
				if got := meta.FindStatusCondition(l.Status.Conditions, conditionType); got.Status != metav1.ConditionUnknown || got.Reason != targets.ReasonConnecting {
					t.Errorf("%s is %s", conditionType, formatCondition(*got))
				}
			}
			if len(l.log) > 2 {
				t.Errorf("it was written as %q", l.log)
			}
		})
	}
}

// Findings of the previous leader count for some time after a quick restart, if they were good and nothing has
// changed. The status does not count, since users may write it.
func TestTrustAfterRestart(t *testing.T) {
	type given struct {
		*edgev2alpha1.SyncTarget
		known ledger.Entry
		led   time.Time
	}
	for name, test := range map[string]struct {
		change func(*given)
		trusts bool
	}{
		"a quick restart":              {func(*given) {}, true},
		"a clock that is slow":         {func(g *given) { g.led = noon.Add(time.Minute) }, true},
		"a long outage":                {func(g *given) { g.led = noon.Add(-staleHeartbeatAge - time.Second) }, false},
		"a clock that is wrong":        {func(g *given) { g.led = noon.Add(time.Hour) }, false},
		"no hub has led":               {func(g *given) { g.led = time.Time{} }, false},
		"its cluster is not known":     {func(g *given) { g.known.Cluster.ID = "" }, false},
		"it has changed":               {func(g *given) { g.Generation++ }, false},
		"not all was well":             {func(g *given) { g.known.VerifiedGeneration = 0 }, false},
		"nothing is known":             {func(g *given) { g.known = ledger.Entry{} }, false},
		"only its status says so":      {func(g *given) { g.known, g.Generation = ledger.Entry{}, 0 }, false},
		"its status says the opposite": {func(g *given) { g.Status = edgev2alpha1.SyncTargetStatus{} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			given := given{SyncTarget: &edgev2alpha1.SyncTarget{}, led: noon.Add(-20 * time.Second)}
			given.UID, given.Generation, given.Status.ClusterID = "florin", 3, "x"
			given.Status.LastSyncerHeartbeatTime = &metav1.Time{Time: given.led}
			for _, kind := range []string{edgev2alpha1.ConditionReady, edgev2alpha1.ConditionSyncerAuthorized} {
				given.Status.Conditions = append(given.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, ObservedGeneration: 3})
			}
			given.known = ledger.Entry{Cluster: ledger.Cluster{ID: "x"}, VerifiedGeneration: 3}
			test.change(&given)
			got := trustAfterRestart(given.SyncTarget, given.known, given.led, noon)
			if !test.trusts {
				if !got.IsZero() {
					t.Errorf("got %v", got)
				}
				return
			}
			if got.Before(noon.Add(restartGracePeriod)) || got.After(noon.Add(restartGracePeriod+heartbeatInterval)) {
				t.Errorf("got %v", got)
			}
			first, second := &targets.Connection{}, &targets.Connection{}
			trusted := &startupGrace{until: got}
			for _, step := range []struct {
				connection *targets.Connection
				want       time.Time
			}{{first, got}, {first, got}, {second, time.Time{}}, {first, time.Time{}}} {
				if trusted := trusted.forConnection(step.connection); trusted != step.want {
					t.Errorf("want %v, got %v", step.want, trusted)
				}
			}
		})
	}
}

// The next hub may rely on findings of this one, but not on conditions that this one has only kept from its
// predecessor.
func TestVerified(t *testing.T) {
	up := targets.Health{Up: true, Reason: targets.ReasonConnected}
	all := statusView{observedState: observedState{mailbox: "m"}, health: up, Status: syncmanager.Status{ConfigsKnown: true}, permissions: targets.Permissions{Known: true}, now: noon}
	for name, test := range map[string]struct {
		change func(*statusView)
		want   int64
	}{
		"all is well":                {func(*statusView) {}, 3},
		"the target connects":        {func(v *statusView) { v.health = connecting }, 2},
		"the mailbox is being read":  {func(v *statusView) { v.ConfigsKnown = false }, 2},
		"rights are being asked for": {func(v *statusView) { v.permissions = targets.Permissions{} }, 2},
		"the target is away":         {func(v *statusView) { v.health = targets.Health{Reason: targets.ReasonUnreachable} }, 0},
		"another cluster":            {func(v *statusView) { v.health = targets.Health{Reason: targets.ReasonClusterChanged} }, 0},
		"rights are missing": {func(v *statusView) {
			v.permissions.Missing = []authorizationv1.ResourceAttributes{{Verb: "get"}}
		}, 0},
		"no mailbox":     {func(v *statusView) { v.mailbox = "" }, 0},
		"no credentials": {func(v *statusView) { v.problem = &blocker{ReasonCredentialsMissing, "none"} }, 0},
		"another one":    {func(v *statusView) { v.conflictingTarget = &clusterIdentity{} }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			syncTarget := &edgev2alpha1.SyncTarget{}
			syncTarget.Generation = 3
			view := all
			test.change(&view)
			if got := view.verifiedGeneration(syncTarget, 2); got != test.want {
				t.Errorf("want %d, got %d", test.want, got)
			}
		})
	}
}

// After a restart the heartbeats of a fleet are spread over the interval.
func TestFirstHeartbeatsAreSpread(t *testing.T) {
	for name, before := range map[string]*metav1.Time{
		"the first":       nil,
		"a quick restart": {Time: noon.Add(-30 * time.Second)},
		"a long outage":   {Time: noon.Add(-time.Hour)},
	} {
		t.Run(name, func(t *testing.T) { expectSpread(t, before) })
	}
}

func expectSpread(t *testing.T, before *metav1.Time) {
	t.Helper()
	perSecond := map[int]int{}
	for i := range 1000 {
		due := firstHeartbeat(types.UID(fmt.Sprint("target-", i)), noon, before).Sub(noon)
		if due < 0 || due >= heartbeatInterval {
			t.Fatalf("one is due after %v", due)
		}
		perSecond[int(due/time.Second)]++
	}
	for second, count := range perSecond {
		if count > 40 {
			t.Errorf("%d are due in second %d", count, second)
		}
	}
	if len(perSecond) != 60 {
		t.Errorf("they are due in %d seconds only", len(perSecond))
	}
}

func TestWithTokenExpiry(t *testing.T) {
	ended, valid := kubeconfig.Token{ExpiresAt: noon.Add(-time.Hour)}, kubeconfig.Token{ExpiresAt: noon.Add(time.Hour)}
	const advice = "ended at 2026-01-02T11:00:00Z. Run `kubectl synchub rotate florin --target-kubeconfig FILE`"
	for name, test := range map[string]struct {
		health       targets.Health
		token        kubeconfig.Token
		has          bool
		reason, says string
	}{
		"it is up":                    {up, ended, true, targets.ReasonConnected, "it answers"},
		"it is connecting":            {connecting, ended, true, targets.ReasonConnecting, "not yet"},
		"unauthorized, no token":      {unauthorized, ended, false, targets.ReasonUnauthorized, "expired"},
		"unauthorized, a valid token": {unauthorized, valid, true, targets.ReasonUnauthorized, "expired"},
		"unauthorized, an ended one":  {unauthorized, ended, true, ReasonTokenExpired, advice},
		"unreachable, a valid token":  {unreachable, valid, true, targets.ReasonUnreachable, "refused"},
		"unreachable, an ended one":   {unreachable, ended, true, ReasonTokenExpired, advice},
		"why it is unreachable":       {unreachable, ended, true, ReasonTokenExpired, "The target could not be reached: refused"},
		"it just ends":                {unauthorized, kubeconfig.Token{ExpiresAt: noon}, true, ReasonTokenExpired, "ended at 2026-01-02T12:00:00Z"},
		"its network is denied":       {targets.Health{Reason: targets.ReasonDenied, Message: "denied"}, ended, true, targets.ReasonDenied, "denied"},
	} {
		got := withTokenExpiry(test.health, test.token, test.has, "florin", noon)
		if got.Reason != test.reason || !strings.Contains(got.Message, test.says) || got.Up != test.health.Up {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}
