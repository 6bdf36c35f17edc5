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
	"github.com/synchub-dev/synchub/test/framework/benchenv"
	"github.com/synchub-dev/synchub/test/framework/installation"
	"github.com/synchub-dev/synchub/test/scale"
)

var (
	targets = flag.Int("targets", 300, "how many targets there are")
	objects = flag.Int("objects", 10, "how many objects each of them gets")
	synced  = flag.Int("resources", 1, fmt.Sprintf("of how many resources objects are synced, at most %d", scale.MostResources))
	count   = flag.Int("replicas", 1, "how many replicas of the hub there are in the end; see -sharded")
	sharded = flag.Bool("sharded", false, "whether the replicas divide the targets among them")
	quiet   = flag.Duration("quiet", time.Minute, "for how long the quiet fleet is measured")
	commit  = flag.String("commit", "unknown", "what is tested, for the report")
	report  = flag.String("report", "", "where the report is written (default: logs/scale.md)")
)

const (
	// idleLimit is the maximum share of a core that an idle hub may use.
	idleLimit = 0.05
	// moreWrites is how much the status writes of a minute may exceed one per target, since they do not start with the
	// minute.
	moreWrites = 1.1
)

// TestScale is not part of `make test-all`: it takes long, needs the machine for itself, and asserts the hub's CPU time.
func TestScale(t *testing.T) {
	g := NewWithT(t)
	if *synced < 1 || *synced > scale.MostResources {
		t.Fatalf("-resources=%d: between 1 and %d can be synced", *synced, scale.MostResources)
	}
	ctx := t.Context()
	if deadline, ok := t.Deadline(); ok {
		// The remaining minute is for the report and for stopping the servers.
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-time.Minute))
		defer cancel()
	}
	subject := prepare(ctx, t)
	var figures scale.Measurements
	scale.Run(ctx, g, subject, func(measured scale.Measurements) {
		figures = measured
		write(t, figures)
	})
	limit := idleLimit
	if *sharded {
		// The only replica renews the Leases of all shards every two seconds, too.
		limit *= 2
	}
	g.Expect(figures.IdleCPU).To(BeNumerically("<", limit), "processor time of a quiet hub, in cores")
	g.Expect(figures.StatusWrites()).To(BeNumerically("<=", moreWrites*float64(*targets)), "statuses written per minute")
}

// prepare starts two kcps, one for the hub and one whose workspaces are the targets, a hosting cluster and the hub.
func prepare(ctx context.Context, t *testing.T) scale.Config {
	t.Helper()
	progress := func(line string) { t.Log(time.Now().Format(time.TimeOnly), line) }
	options := benchenv.Options{Name: "scale", IdleRequests: scale.IdleRequests, Progress: progress}
	if *sharded {
		options.HubArguments = []string{"--coordination", "sharded"}
	}
	staged, err := benchenv.New(ctx, options)
	t.Cleanup(func() {
		logs, err := staged.Close(ctx, t.Failed())
		if err != nil || logs != "" {
			t.Log("logs:", logs, err)
		}
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return scale.Config{
		Installation: staged.Installation, Hub: staged.Hub, Inventory: staged.Inventory, Fleet: staged.Fleet,
		Targets: *targets, Objects: *objects, Resources: *synced, Quiet: *quiet, Replicas: *count, Sharded: *sharded, Hosting: staged.Targets[benchenv.Hosting].Config,
		StartReplica: func() (*installation.Hub, error) { return staged.StartReplica() },
		Profile:      func(ctx context.Context) error { return profile(ctx, t, staged.ProfilingAddress) },
		Progress:     func(format string, args ...any) { progress(fmt.Sprintf(format, args...)) },
	}
}

// reportPath returns the path of the report; the profiles are in the same directory.
func reportPath(t *testing.T) string {
	t.Helper()
	if *report != "" {
		return *report
	}
	root, err := framework.RepositoryRoot()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return filepath.Join(root, "logs", "scale.md")
}

// profile writes the CPU and memory profiles of an idle hub.
func profile(ctx context.Context, t *testing.T, address string) error {
	t.Helper()
	for name, query := range map[string]string{"cpu": fmt.Sprintf("profile?seconds=%.0f", quiet.Seconds()), "heap": "heap"} {
		if err := fetch(ctx, "http://"+address+"/debug/pprof/"+query, strings.TrimSuffix(reportPath(t), ".md")+"."+name+".pprof"); err != nil {
			return fmt.Errorf("cannot write the profile %s: %w", name, err)
		}
	}
	return nil
}

// fetch writes the response of a URL to a file.
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
func write(t *testing.T, figures scale.Measurements) {
	t.Helper()
	g := NewWithT(t)
	path := reportPath(t)
	g.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
	file, err := os.Create(path)
	g.Expect(err).NotTo(HaveOccurred())
	defer file.Close() //nolint:errcheck // an incomplete report is detected when it is read
	g.Expect(figures.Report(file, *commit)).To(Succeed())
	t.Log("report:", path)
}
