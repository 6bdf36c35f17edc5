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
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/chart"
	"github.com/synchub-dev/synchub/test/framework/servers"
)

const (
	// Namespace is the namespace of the chart in the hosting cluster.
	Namespace = "synchub-system"
	// ServiceAccount is the name of the chart's ServiceAccount.
	ServiceAccount = "synchub"

	// stepTimeout is generous: several installations may run at once on few processors.
	stepTimeout = 4 * time.Minute
)

// Installation is synchub without a running replica.
type Installation struct {
	// Workspace is the path of the provider workspace.
	Workspace string
	// HubUser is the kcp user of the hub, and HubKubeconfig is the path of its kubeconfig.
	HubUser, HubKubeconfig string
	// HubArguments are given to each hub in addition to the arguments of StartHub.
	HubArguments []string
	// Connection is how hubs and registered clusters connect: with a tunnel, Register runs its program too.
	Connection edgev2alpha1.ConnectionType
	// Balancer is where clusters reach the hubs that are started after it is set; nil starts hubs that take no tunnels.
	Balancer *Balancer

	// defaults are arguments of each hub that HubArguments and StartHub may override.
	defaults []string

	opts              servers.Options
	kcp               *servers.KCP
	hosting           *servers.Target
	number            int
	version           Version
	hostingKubeconfig string
	replicas, tunnels int
}

// ConnectionVariable is the environment variable that selects how tests connect clusters: Tunnel runs all of them with tunnels.
const ConnectionVariable = "CONNECTION"

// EnableTunnels makes hubs that are started from now on take tunnels, and reads [ConnectionVariable].
func (i *Installation) EnableTunnels() (err error) {
	i.Connection = edgev2alpha1.ConnectionType(os.Getenv(ConnectionVariable))
	i.Balancer, err = newBalancer()
	return err
}

// HubUser returns the kcp user of an installation's hub. kcp must know the user; see servers.StartKCP.
func HubUser(number int) string { return numbered(servers.HubUser, number) }

// numbered returns the name with the number; the first installation has no number.
func numbered(name string, number int) string {
	if number == 1 {
		return name
	}
	return fmt.Sprintf("%s-%d", name, number)
}

// Version is a version of synchub: the paths of the hub and of the chart.
type Version struct{ Binary, Chart string }

// tunnel returns the path of the program for tunnels, which is built in the same way as the hub and beside it.
func (v Version) tunnel() string {
	return filepath.Join(filepath.Dir(v.Binary), strings.Replace(filepath.Base(v.Binary), "synchub", "synchub-tunnel", 1))
}

// New prepares a provider workspace and a hosting cluster, with the chart of this repository. Installations with different numbers, counted from 1, share only
// kcp if each has its own hosting cluster. binary is the path of the hub. without names PublishedResources of the chart to
// leave out.
func New(ctx context.Context, opts servers.Options, kcp *servers.KCP, hosting *servers.Target, binary string, number int, without ...string) (*Installation, error) {
	root, err := framework.RepositoryRoot()
	if err != nil {
		return nil, err
	}
	installation, err := NewOf(ctx, opts, kcp, hosting, Version{binary, filepath.Join(root, "charts", "synchub")}, number, without...)
	if err != nil {
		return nil, err
	}
	// Most tests expect that copies leave at once after a change in an inventory.
	installation.defaults = []string{"--withdrawal-grace=0s"}
	return installation, nil
}

// NewOf is like [New], for any version, not only the one in this repository.
func NewOf(ctx context.Context, opts servers.Options, kcp *servers.KCP, hosting *servers.Target, version Version, number int, without ...string) (*Installation, error) {
	installation := &Installation{
		Workspace: numbered("root:synchub", number),
		HubUser:   HubUser(number),
		opts:      opts, kcp: kcp, hosting: hosting, number: number, version: version,
	}
	installation.HubKubeconfig = kcp.HubKubeconfigOf(installation.HubUser)
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return installation.Init(groupCtx) })
	group.Go(func() error { return installation.installChart(groupCtx, without) })
	group.Go(func() error { return framework.Apply(groupCtx, kcp.Workspace("root"), inventoryType) })
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return installation, nil
}

// Upgrade does with another version what an operator does before the replicas are replaced: `synchub init` and the upgrade of the chart.
// Hubs that are started afterwards are of that version.
func (i *Installation) Upgrade(ctx context.Context, version Version) error {
	i.version = version
	if err := i.Init(ctx); err != nil {
		return err
	}
	return i.installChart(ctx, nil)
}

// Rollback rolls the chart back by one revision. Hubs that are started afterwards are of the version.
func (i *Installation) Rollback(ctx context.Context, version Version) error {
	i.version = version
	_, err := chart.Helm{Path: filepath.Join(i.opts.Bin, "helm"), Kubeconfig: i.hosting.Kubeconfig}.Run(ctx, "rollback", chart.Release, "--namespace", Namespace)
	return err
}

// installChart installs or upgrades the chart and writes a kubeconfig with the rights of its ServiceAccount.
func (i *Installation) installChart(ctx context.Context, without []string) error {
	values := map[string]string{"kcp.kubeconfigSecret.name": "kcp-kubeconfig"} //nolint:gosec // the name of a Secret is no secret
	// A chart of an older version has no values for tunnels. With this one, the hub's flags configure them.
	if _, err := os.Stat(filepath.Join(i.version.Chart, "templates", "tunnel.yaml")); err == nil {
		values["tunnel.enabled"], values["tunnel.url"] = "true", "https://127.0.0.1:8443"
	}
	for n, name := range without {
		values[fmt.Sprintf("publishedResources.without[%d]", n)] = name
	}
	if err := chart.Install(ctx, filepath.Join(i.opts.Bin, "helm"), i.version.Chart, i.hosting.Kubeconfig, Namespace, values); err != nil {
		return fmt.Errorf("cannot install the chart: %w", err)
	}
	kubeconfig, err := i.hosting.ServiceAccountKubeconfig(ctx, Namespace, ServiceAccount)
	if err != nil {
		return err
	}
	i.hostingKubeconfig = filepath.Join(i.opts.Dir, i.hosting.Name+"-serviceaccount.kubeconfig")
	return os.WriteFile(i.hostingKubeconfig, kubeconfig, 0o600)
}

// Init runs `synchub init`.
func (i *Installation) Init(ctx context.Context) error {
	process, err := servers.Start(i.opts, numbered("init", i.number), i.version.Binary, []string{"init",
		"--kcp-kubeconfig", i.kcp.Kubeconfig, "--provider-workspace", i.Workspace, "--hub-user", i.HubUser}, nil)
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

// Hub is a running replica.
type Hub struct {
	*servers.Process

	metricsPort, healthPort int
}

// StartHub starts one more replica, without waiting until it is ready.
func (i *Installation) StartHub(args ...string) (*Hub, error) {
	return i.StartBinary(i.version.Binary, args...)
}

// StartBinary is like [Installation.StartHub], for another binary of the same version.
func (i *Installation) StartBinary(binary string, args ...string) (*Hub, error) {
	i.replicas++
	metrics, err := servers.FreePort()
	if err != nil {
		return nil, err
	}
	health, err := servers.FreePort()
	if err != nil {
		return nil, err
	}
	var tunnels []string
	if i.Balancer != nil {
		if tunnels, err = i.tunnelArguments(); err != nil {
			return nil, err
		}
	}
	process, err := servers.Start(i.opts, fmt.Sprintf("hub-%d-%d", i.number, i.replicas), binary, append([]string{"run",
		"--kcp-kubeconfig", i.HubKubeconfig,
		"--hosting-kubeconfig", i.hostingKubeconfig,
		"--provider-workspace", i.Workspace,
		"--namespace", Namespace,
		"--metrics-bind-address", fmt.Sprintf("127.0.0.1:%d", metrics),
		"--health-probe-bind-address", fmt.Sprintf("127.0.0.1:%d", health),
		// After a kill the next replica waits for the lease duration, so it is short, but long enough for busy processors.
		"--leader-election-lease-duration", "8s", "--leader-election-renew-deadline", "7s",
		"--log-level", "debug", "--log-format", "console",
	}, slices.Concat(tunnels, i.defaults, i.HubArguments, args)...), nil)
	if err != nil {
		return nil, err
	}
	return &Hub{Process: process, metricsPort: metrics, healthPort: health}, nil
}

// AwaitReady returns when the replica's /readyz succeeds and its metrics can be read, which may be a moment later.
func (h *Hub) AwaitReady(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, stepTimeout, true, func(ctx context.Context) (bool, error) {
		if h.Ended() {
			return false, fmt.Errorf("the hub ended")
		}
		if h.get(ctx, "/readyz") != http.StatusOK {
			return false, nil
		}
		_, err := h.Metrics(ctx)
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("the hub does not become ready: %w\n%s", err, h.LogTail(30))
	}
	return nil
}

// StayReady asks the replica's /readyz until ctx ends. It returns an error if the replica was not ready by then, or not any more after it
// had been.
func (h *Hub) StayReady(ctx context.Context) error {
	ready := false
	err := wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		status := h.get(ctx, "/readyz")
		if ready && status != http.StatusOK && ctx.Err() == nil {
			return false, fmt.Errorf("/readyz answers %d after it has succeeded\n%s", status, h.LogTail(30))
		}
		ready = ready || status == http.StatusOK
		return false, nil
	})
	switch {
	case ctx.Err() == nil:
		return err
	case !ready:
		return fmt.Errorf("the hub did not become ready\n%s", h.LogTail(30))
	}
	return nil
}

func (h *Hub) get(ctx context.Context, path string) (status int) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", h.healthPort, path), nil)
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
func (h *Hub) Metrics(ctx context.Context) (map[string]float64, error) {
	return framework.Scrape(ctx, fmt.Sprintf("http://127.0.0.1:%d/metrics", h.metricsPort))
}

// InWorkspace returns an administrator's client config for a workspace.
func (i *Installation) InWorkspace(path string) *rest.Config { return i.kcp.Workspace(path) }
