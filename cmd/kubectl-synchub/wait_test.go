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

package main

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
)

// --wait and --timeout mean the same in all commands, and each command that starts something that takes time has them.
func TestWaitFlags(t *testing.T) {
	g := NewWithT(t)
	waiting, timed := commandsWith("wait"), commandsWith("timeout")
	g.Expect(slices.Sorted(maps.Keys(waiting))).To(Equal([]string{
		"bind compute", "confirm-cluster", "confirm-restore", "drain", "publish", "register", "resume", "rollout resume", "rollout undo", "rotate", "suspend",
		"unbind compute", "unbind inventory", "uncordon", "unregister",
	}))
	for name, command := range waiting {
		g.Expect(command.Flags().Lookup("wait").Usage).To(HavePrefix("wait until "), name)
		g.Expect(timed).To(HaveKey(name))
	}
	for name, command := range timed {
		g.Expect(command.Flags().Lookup("timeout").Usage).To(Equal("how long to wait; 0 waits for ever"), name)
	}
	// These two wait in any case.
	for _, name := range []string{"bind inventory", "rollout status"} {
		g.Expect(timed).To(HaveKey(name))
	}
	g.Expect(timed).To(HaveLen(len(waiting) + 2))
}

func TestTimeoutMustNotBeNegative(t *testing.T) {
	for name := range commandsWith("timeout") {
		args := append(strings.Fields(name), "--timeout=-1s")
		switch name {
		case "bind inventory", "unbind inventory":
		case "publish":
			args = append(args, "-f", "crds.yaml")
		case "bind compute", "unbind compute":
			args = append(args, "root:inventory")
		case "register", "rotate":
			args = append(args, "florin", "--target-kubeconfig", "florin.kubeconfig")
		default:
			args = append(args, "florin")
		}
		if got := execute(t, "", args...); got.err == nil || got.err.Error() != "--timeout: it must not be negative" {
			t.Errorf("%s: %v", name, got.err)
		}
	}
}

func TestLimitOfAWait(t *testing.T) {
	if limit := (&cli.WaitFlags{Timeout: time.Minute}).Limit(); limit != time.Minute {
		t.Errorf("got %s", limit)
	}
	if limit := (&cli.WaitFlags{}).Limit(); time.Now().Add(limit).Before(time.Now().AddDate(100, 0, 0)) {
		t.Errorf("no timeout is %s", limit)
	}
}

// A hub's answers are simulated, because none runs here.
func waits(t *testing.T, f *testFleet) {
	t.Helper()
	g := NewWithT(t)
	prints := func(got printed, words string) { g.Expect(got.out).To(HaveSuffix("florin " + words + "\n")) }

	fail(t, "the SyncTarget florin was not suspended by the hub after 500ms: the hub has not seen the change yet", "suspend", "florin", "--wait", "--timeout", "500ms")
	f.report(t, "True", "Suspended")
	prints(succeed(t, "suspend", "florin", "--wait"), "suspended by the hub")

	// A status from before the change does not count.
	f.report(t, "True", "MailboxReady", "HeartbeatHealthy", "SyncerReady", "SyncerAuthorized", "Ready")
	got := plugin(t, "resume", "florin", "--wait", "--timeout", "500ms")
	g.Expect(got.err).To(HaveOccurred())
	// Progress is for logs too: no terminal is here.
	g.Expect(got.errs).To(HavePrefix("the hub has not seen the change yet\n"))
	g.Expect(got.errs).To(HaveSuffix("error: the SyncTarget florin was not ready after 500ms: the hub has not seen the change yet\n"))
	f.report(t, "False", "SyncerReady", "Ready")
	fail(t, "SyncerReady is False, Said: said so.", "resume", "florin", "--wait", "--timeout", "500ms")
	f.report(t, "True", "SyncerReady", "Ready")
	prints(succeed(t, "resume", "florin", "--wait"), "ready")
	prints(succeed(t, "uncordon", "florin", "--wait", "--timeout", "0"), "ready")
}
