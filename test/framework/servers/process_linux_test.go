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

package servers

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

const patience = 3 * time.Minute

func startRole(t *testing.T, dir, role string, args ...string) *Process {
	t.Helper()
	p, err := Start(Options{Dir: dir}, role, os.Args[0], args, []string{roleVariable + "=" + role})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill9(); err != nil {
			t.Error(err)
		}
	})
	NewWithT(t).Eventually(p.LogTail).WithArguments(1).WithTimeout(patience).ShouldNot(BeEmpty())
	return p
}

func alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func TestTerminateReturnsTheExitCode(t *testing.T) {
	g := NewWithT(t)
	p := startRole(t, t.TempDir(), roleWaiter)
	g.Expect(p.Ended()).To(BeFalse())
	g.Expect(p.Terminate(t.Context())).To(Equal(exitOnTerm))
	g.Expect(p.Ended()).To(BeTrue())
	g.Expect(alive(p.Pid())).To(BeFalse())
	g.Expect(p.Terminate(t.Context())).To(Equal(exitOnTerm), "terminating twice")
}

func TestTerminateReachesAPausedProcess(t *testing.T) {
	g := NewWithT(t)
	p := startRole(t, t.TempDir(), roleWaiter)
	g.Expect(p.Pause()).To(Succeed())
	g.Expect(p.Terminate(t.Context())).To(Equal(exitOnTerm))
}

func TestAPausedProcessStandsStill(t *testing.T) {
	g := NewWithT(t)
	p := startRole(t, t.TempDir(), roleWaiter)
	for range 100 {
		g.Expect(p.Pause()).To(Succeed())
		threads, err := os.ReadDir("/proc/" + strconv.Itoa(p.Pid()) + "/task")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(len(threads)).To(BeNumerically(">", 1))
		for _, thread := range threads {
			g.Expect(stateOf(strconv.Itoa(p.Pid()) + "/task/" + thread.Name())).To(Equal("T"))
		}
		g.Expect(p.Pause()).To(Succeed(), "pausing twice")
		g.Expect(p.Resume()).To(Succeed())
	}
	g.Expect(p.Kill9()).To(Succeed())
	g.Expect(p.Pause()).To(Succeed(), "pausing what has ended")
}

func TestTerminateKillsProcessesThatIgnoreSIGTERM(t *testing.T) {
	g := NewWithT(t)
	p := startRole(t, t.TempDir(), roleIgnoresSignals)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := p.Terminate(ctx)
	g.Expect(err).To(MatchError(ContainSubstring("did not end on SIGTERM and was killed")))
	g.Expect(alive(p.Pid())).To(BeFalse())
}

func TestKill9(t *testing.T) {
	g := NewWithT(t)
	p := startRole(t, t.TempDir(), roleIgnoresSignals)
	g.Expect(p.Kill9()).To(Succeed())
	g.Expect(p.Wait(t.Context())).To(Equal(-1))
	g.Expect(alive(p.Pid())).To(BeFalse())
}

func TestLogTailHasOnlyThisRun(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	first := startRole(t, dir, roleWaiter)
	g.Expect(first.Kill9()).To(Succeed())
	second := startRole(t, dir, roleWaiter)
	g.Expect(second.LogFile()).To(Equal(first.LogFile()))
	g.Expect(second.LogTail(10)).To(Equal("started"))
	g.Expect(os.ReadFile(second.LogFile())).To(BeEquivalentTo("started\nstarted\n"))
}

func TestProcessIsOutOfReachOfTheTerminal(t *testing.T) {
	g := NewWithT(t)
	p := startRole(t, t.TempDir(), roleWaiter)
	group, err := syscall.Getpgid(p.Pid())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(group).To(Equal(p.Pid()))
}

func TestNothingOutlivesAKilledStarter(t *testing.T) {
	g := NewWithT(t)
	starter := startRole(t, t.TempDir(), roleParent, t.TempDir())
	child, err := strconv.Atoi(starter.LogTail(1))
	g.Expect(err).NotTo(HaveOccurred(), starter.LogTail(10))
	g.Expect(alive(child)).To(BeTrue())

	g.Expect(starter.Kill9()).To(Succeed())
	// Another process reaps the orphan, so a zombie counts as dead.
	g.Eventually(stateOf).WithArguments(strconv.Itoa(child)).WithTimeout(patience).Should(BeElementOf("", "Z"))
}

// stateOf returns the one-letter state of a process or a thread, or "" if it does not exist.
func stateOf(process string) string {
	content, err := os.ReadFile("/proc/" + process + "/stat")
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(content), ") ")
	return rest[:1]
}
