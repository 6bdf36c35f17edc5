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

package scale_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/fleet"
	"github.com/synchub-dev/synchub/test/framework/installation"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/scale"
)

var (
	targets = flag.Int("targets", 300, "how many targets there are")
	objects = flag.Int("objects", 10, "how many objects each of them gets")
	quiet   = flag.Duration("quiet", time.Minute, "for how long the quiet fleet is measured")
	commit  = flag.String("commit", "unknown", "what is tested, for the report")
	report  = flag.String("report", "", "where the report is written (default: logs/scale.md)")
)

const (
	// idleLimit is the part of a core that a hub may take while nothing happens.
	idleLimit = 0.05
	// moreWrites is how much a minute's status writes may exceed one per target, since they do not begin with the minute.
	moreWrites = 1.1
)

// asInstalled is how the chart runs the hub, where the framework would have it lead and log more eagerly.
var asInstalled = []string{
	"--leader-election-lease-duration", "15s", "--leader-election-renew-deadline", "10s", "--leader-election-retry-period", "2s",
	"--log-level", "info", "--log-format", "json",
}

// TestScale is not part of `make test`: it takes long, wants the machine for itself, and asserts how much time the hub takes.
func TestScale(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	if deadline, ok := t.Deadline(); ok {
		// What is left is for the report and the servers' end.
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-time.Minute))
		defer cancel()
	}
	subject := prepare(ctx, t)
	var figures scale.Figures
	scale.Run(ctx, g, subject, func(measured scale.Figures) {
		figures = measured
		write(t, figures)
	})
	g.Expect(figures.IdleCPU).To(BeNumerically("<", idleLimit), "processor time of a quiet hub, in cores")
	g.Expect(figures.StatusWrites()).To(BeNumerically("<=", moreWrites*float64(*targets)), "statuses written per minute")
}

// prepare starts two kcps, one for the hub and one whose workspaces are the targets, a hosting cluster and the hub.
func prepare(ctx context.Context, t *testing.T) scale.Subject {
	t.Helper()
	g := NewWithT(t)
	progress := func(line string) { t.Log(time.Now().Format(time.TimeOnly), line) }
	suite, err := framework.StartSuite(ctx, "scale", map[string]servers.TargetOptions{"hosting": {}}, progress)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		logs, err := suite.Finish(t.Failed())
		if err != nil || logs != "" {
			t.Log("logs:", logs, err)
		}
	})
	targetOptions := suite.Options
	targetOptions.Dir = filepath.Join(suite.Options.Dir, "logs", "targets")
	second, err := servers.StartKCP(ctx, targetOptions)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		if err := second.Stop(); err != nil {
			t.Log(err)
		}
		_ = os.RemoveAll(filepath.Join(targetOptions.Dir, "kcp"))
	})

	synchub, err := installation.New(ctx, suite.Options, suite.KCP, suite.Targets["hosting"], filepath.Join(suite.Options.Bin, "synchub"), 1)
	g.Expect(err).NotTo(HaveOccurred())
	port, err := servers.FreePort()
	g.Expect(err).NotTo(HaveOccurred())
	profiles := fmt.Sprintf("127.0.0.1:%d", port)
	hub, err := synchub.StartHub(append(asInstalled, "--profiling="+profiles)...)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(hub.AwaitReady(ctx)).To(Succeed())
	t.Cleanup(func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		if _, err := hub.Terminate(ending); err != nil {
			t.Log(err)
		}
	})
	inventory, err := synchub.NewInventory(ctx, "inventory")
	g.Expect(err).NotTo(HaveOccurred())
	gated, err := fleet.New(ctx, second, "fleet", scale.Rhythm)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = gated.Close() })
	return scale.Subject{
		Installation: synchub, Hub: hub, Inventory: inventory, Fleet: gated,
		Targets: *targets, Objects: *objects, Quiet: *quiet, Profile: func(ctx context.Context) error { return profile(ctx, t, profiles) },
		Progress: func(format string, args ...any) { progress(fmt.Sprintf(format, args...)) },
	}
}

// reportPath is where the report is written; the profiles are beside it.
func reportPath(t *testing.T) string {
	t.Helper()
	if *report != "" {
		return *report
	}
	root, err := framework.RepositoryRoot()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return filepath.Join(root, "logs", "scale.md")
}

// profile writes what a quiet hub's time and memory go to.
func profile(ctx context.Context, t *testing.T, address string) error {
	t.Helper()
	for name, query := range map[string]string{"cpu": fmt.Sprintf("profile?seconds=%.0f", quiet.Seconds()), "heap": "heap"} {
		if err := fetch(ctx, "http://"+address+"/debug/pprof/"+query, strings.TrimSuffix(reportPath(t), ".md")+"."+name+".pprof"); err != nil {
			return fmt.Errorf("cannot write the profile %s: %w", name, err)
		}
	}
	return nil
}

// fetch writes what a URL gives into a file.
func fetch(ctx context.Context, url, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // only read
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, response.Status)
	}
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}

// write writes the report.
func write(t *testing.T, figures scale.Figures) {
	t.Helper()
	g := NewWithT(t)
	path := reportPath(t)
	g.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
	file, err := os.Create(path)
	g.Expect(err).NotTo(HaveOccurred())
	defer file.Close() //nolint:errcheck // the report says it if it is incomplete
	g.Expect(figures.Report(file, *commit)).To(Succeed())
	t.Log("report:", path)
}
