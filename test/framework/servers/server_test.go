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
	"net"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// serverOptions returns options whose Bin holds a program "fake" that plays roleServer.
func serverOptions(t *testing.T) Options {
	t.Helper()
	opts := Options{Dir: t.TempDir(), Bin: t.TempDir(), Log: func(line string) { t.Log(line) }}
	if err := os.Symlink(os.Args[0], filepath.Join(opts.Bin, "fake")); err != nil {
		t.Fatal(err)
	}
	t.Setenv(roleVariable, roleServer)
	return opts
}

func fakeLaunch(port int) launch {
	return launch{program: "fake", args: []string{address(port)}, ready: func(ctx context.Context) error {
		return dial(ctx, port)
	}}
}

func dial(ctx context.Context, port int) error {
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", address(port))
	if err != nil {
		return err
	}
	return connection.Close()
}

func TestServerKeepsItsPortAcrossStops(t *testing.T) {
	g := NewWithT(t)
	s, err := startServer(t.Context(), serverOptions(t), "fake", 1, func(ports []int) (launch, error) {
		return fakeLaunch(ports[0]), nil
	})
	g.Expect(err).NotTo(HaveOccurred())
	port := s.Ports()[0]
	first := s.Process().Pid()

	g.Expect(s.Start(t.Context())).To(MatchError(ContainSubstring("it runs already")))
	g.Expect(s.Stop()).To(Succeed())
	g.Expect(s.Stop()).To(Succeed(), "stopping twice")
	g.Expect(dial(t.Context(), port)).NotTo(Succeed())
	g.Expect(s.Pause()).To(MatchError(ContainSubstring("not running")))

	g.Expect(s.Start(t.Context())).To(Succeed())
	g.Expect(dial(t.Context(), port)).To(Succeed())
	g.Expect(s.Process().Pid()).NotTo(Equal(first))

	g.Expect(s.Restart(t.Context())).To(Succeed())
	g.Expect(dial(t.Context(), port)).To(Succeed())
	g.Expect(s.Kill9()).To(Succeed())
	g.Expect(dial(t.Context(), port)).NotTo(Succeed())
}

func TestSnapshotPutsDataBack(t *testing.T) {
	g := NewWithT(t)
	opts := serverOptions(t)
	s, err := startServer(t.Context(), opts, "fake", 1, func(ports []int) (launch, error) {
		return fakeLaunch(ports[0]), nil
	})
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(s.Stop()).To(Succeed()) }()
	e := &Etcd{Server: s, dir: t.TempDir()}
	file := filepath.Join(e.dir, "member", "db")
	write := func(content string) {
		g.Expect(os.MkdirAll(filepath.Dir(file), 0o700)).To(Succeed())
		g.Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed())
	}

	write("before")
	snapshot, err := e.TakeSnapshot(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.Process().Ended()).To(BeFalse(), "it runs again")
	write("after")
	g.Expect(os.WriteFile(filepath.Join(e.dir, "younger"), nil, 0o600)).To(Succeed())
	first := s.Process().Pid()
	g.Expect(e.Restore(t.Context(), snapshot)).To(Succeed())
	g.Expect(os.ReadFile(file)).To(BeEquivalentTo("before"))
	g.Expect(filepath.Join(e.dir, "younger")).NotTo(BeAnExistingFile())
	g.Expect(s.Process().Pid()).NotTo(Equal(first))

	g.Expect(s.Stop()).To(Succeed())
	_, err = e.TakeSnapshot(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.Process().Ended()).To(BeTrue(), "a stopped server stays stopped")
	g.Expect(e.Restore(t.Context(), snapshot)).To(Succeed())
	g.Expect(s.Process().Ended()).To(BeFalse())

	g.Expect((&Etcd{Server: &Server{name: "other", opts: opts}, dir: e.dir}).Restore(t.Context(), snapshot)).To(MatchError(ContainSubstring("the snapshot is of")))
	_, err = (&Target{Name: "shared"}).TakeSnapshot(t.Context())
	g.Expect(err).To(MatchError(errSharedEtcd))
}

func TestServerTriesOtherPortsWhenOneIsTaken(t *testing.T) {
	g := NewWithT(t)
	opts := serverOptions(t)
	thief, err := new(net.ListenConfig).Listen(t.Context(), "tcp", loopback+":0")
	g.Expect(err).NotTo(HaveOccurred())
	defer thief.Close() //nolint:errcheck // the test is over
	taken := thief.Addr().(*net.TCPAddr).Port

	attempts := 0
	s, err := startServer(t.Context(), opts, "fake", 1, func(ports []int) (launch, error) {
		if attempts++; attempts == 1 {
			l := fakeLaunch(taken)
			l.ready = func(context.Context) error { return os.ErrDeadlineExceeded }
			return l, nil
		}
		return fakeLaunch(ports[0]), nil
	})
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(s.Stop()).To(Succeed()) }()
	g.Expect(attempts).To(Equal(2))
}

// A server that ends during the tests would let all of them fail for other reasons.
func TestEndedServersAreDescribed(t *testing.T) {
	g := NewWithT(t)
	s, err := startServer(t.Context(), serverOptions(t), "fake", 1, func(ports []int) (launch, error) {
		return fakeLaunch(ports[0]), nil
	})
	g.Expect(err).NotTo(HaveOccurred())
	w := &Environment{etcd: &Etcd{Server: s}}
	g.Expect(w.Ended()).To(BeEmpty())
	g.Expect(s.Process().Kill9()).To(Succeed())
	g.Expect(w.Ended()).To(ConsistOf(HavePrefix("fake.log: signal: killed")))
	g.Expect(s.Stop()).To(Succeed())
}

func TestErrorOfExitedServerHasItsLog(t *testing.T) {
	g := NewWithT(t)
	_, err := startServer(t.Context(), serverOptions(t), "fake", 1, func([]int) (launch, error) {
		return launch{program: "fake", args: []string{"nonsense"}, ready: func(context.Context) error {
			return os.ErrDeadlineExceeded
		}}, nil
	})
	g.Expect(err).To(MatchError(And(
		ContainSubstring("fake did not become ready: it ended with exit code 1"),
		ContainSubstring("missing port in address"), // its last words
		ContainSubstring("fake.log"),
	)))
}

func TestErrorOfMissingProgramNamesItsBuild(t *testing.T) {
	g := NewWithT(t)
	_, err := StartEtcd(t.Context(), Options{Dir: t.TempDir(), Bin: t.TempDir()}, "etcd")
	g.Expect(err).To(MatchError(ContainSubstring("go run ./hack/buildtools etcd")))
}

func TestFreePortIsNeverHandedOutTwice(t *testing.T) {
	g := NewWithT(t)
	seen := map[int]bool{}
	for range 200 {
		port, err := FreePort()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(seen).NotTo(HaveKey(port))
		seen[port] = true
	}
}

func TestKCPMemoryLimit(t *testing.T) {
	g := NewWithT(t)
	for machine, limit := range map[uint64]uint64{0: 3, 8: 3, 16: 4, 24: 6, 64: 6} {
		g.Expect(kcpMemoryLimit(machine<<30)).To(Equal(limit<<30), "%d GiB", machine)
	}
}
