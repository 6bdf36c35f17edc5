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

package installation

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/chart"
	"github.com/synchub-dev/synchub/test/framework/servers"
)

const (
	// Namespace is where the chart is installed in the hosting cluster.
	Namespace = "synchub-system"
	// ServiceAccount is the one the chart makes.
	ServiceAccount = "synchub"
	// Workspace is the provider workspace.
	Workspace = "root:synchub"

	stepTimeout = 2 * time.Minute
)

// Installation is a synchub without a running replica.
type Installation struct {
	opts              servers.Options
	kcp               *servers.KCP
	binary            string
	hostingKubeconfig string
	replicas          int
}

// New prepares the provider workspace and the hosting cluster. binary is the hub to run.
func New(ctx context.Context, opts servers.Options, kcp *servers.KCP, hosting *servers.Target, binary string) (*Installation, error) {
	root, err := framework.RepositoryRoot()
	if err != nil {
		return nil, err
	}
	installation := &Installation{opts: opts, kcp: kcp, binary: binary}
	if err := installation.Init(ctx); err != nil {
		return nil, err
	}
	err = chart.Install(ctx, filepath.Join(opts.Bin, "helm"), filepath.Join(root, "charts", "synchub"), hosting.Kubeconfig, Namespace,
		map[string]string{"kcp.kubeconfigSecret.name": "kcp-kubeconfig"}) //nolint:gosec // the name of a Secret is no secret
	if err != nil {
		return nil, fmt.Errorf("cannot install the chart: %w", err)
	}
	kubeconfig, err := hosting.ServiceAccountKubeconfig(ctx, Namespace, ServiceAccount)
	if err != nil {
		return nil, err
	}
	installation.hostingKubeconfig = filepath.Join(opts.Dir, "hosting-serviceaccount.kubeconfig")
	return installation, os.WriteFile(installation.hostingKubeconfig, kubeconfig, 0o600)
}

// Open returns an installation that another process made, for work in its workspaces. It cannot start replicas.
func Open(kcp *servers.KCP) *Installation { return &Installation{kcp: kcp} }

// Init runs `synchub init`.
func (i *Installation) Init(ctx context.Context) error {
	process, err := servers.Start(i.opts, "init", i.binary, []string{"init",
		"--kcp-kubeconfig", i.kcp.Kubeconfig, "--provider-workspace", Workspace, "--hub-user", servers.HubUser}, nil)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	code, err := process.Wait(ctx)
	if err == nil && code != 0 {
		err = fmt.Errorf("synchub init ended with status %d:\n%s", code, process.LogTail(20))
	}
	return err
}

// Hub is a running replica. Its Process is nil where another process started it.
type Hub struct {
	*servers.Process
	Ports
}

// Ports are where a replica serves its metrics and its health.
type Ports struct {
	MetricsPort, HealthPort int
}

// StartHub starts one more replica and returns without waiting for it.
func (i *Installation) StartHub(args ...string) (*Hub, error) {
	if i.binary == "" {
		return nil, fmt.Errorf("only the process that made the installation can start replicas")
	}
	i.replicas++
	metrics, err := servers.FreePort()
	if err != nil {
		return nil, err
	}
	health, err := servers.FreePort()
	if err != nil {
		return nil, err
	}
	process, err := servers.Start(i.opts, fmt.Sprintf("hub-%d", i.replicas), i.binary, append([]string{"run",
		"--kcp-kubeconfig", i.kcp.HubKubeconfig,
		"--hosting-kubeconfig", i.hostingKubeconfig,
		"--provider-workspace", Workspace,
		"--namespace", Namespace,
		"--metrics-bind-address", fmt.Sprintf("127.0.0.1:%d", metrics),
		"--health-probe-bind-address", fmt.Sprintf("127.0.0.1:%d", health),
		"--leader-election-lease-duration", "6s", "--leader-election-renew-deadline", "4s", "--leader-election-retry-period", "1s",
		"--log-level", "debug", "--log-format", "console",
	}, args...), nil)
	if err != nil {
		return nil, err
	}
	return &Hub{Process: process, Ports: Ports{MetricsPort: metrics, HealthPort: health}}, nil
}

// AwaitReady returns when the replica's /readyz says so.
func (h *Hub) AwaitReady(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, stepTimeout, true, func(ctx context.Context) (bool, error) {
		if h.Ended() {
			return false, fmt.Errorf("the hub ended")
		}
		return h.get(ctx, "/readyz") == http.StatusOK, nil
	})
	if err != nil {
		return fmt.Errorf("the hub does not become ready: %w\n%s", err, h.LogTail(30))
	}
	return nil
}

func (p Ports) get(ctx context.Context, path string) (status int) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", p.HealthPort, path), nil)
	if err != nil {
		return 0
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// Metrics returns the replica's samples by name and labels.
func (p Ports) Metrics(ctx context.Context) (map[string]float64, error) {
	return framework.Scrape(ctx, fmt.Sprintf("http://127.0.0.1:%d/metrics", p.MetricsPort))
}

// InWorkspace returns an administrator's configuration for a workspace.
func (i *Installation) InWorkspace(path string) *rest.Config { return i.kcp.Workspace(path) }
