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
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/synchub-dev/synchub/test/framework/servers"
)

// probeEvery is longer than other intervals, because the hub logs each failed readiness probe.
const probeEvery = 500 * time.Millisecond

// hub is the hub's process.
type hub struct {
	*servers.Process
	// metrics and health are its addresses.
	metrics, health string
}

func (d *demo) synchub() string { return filepath.Join(d.options.Bin, "synchub") }

// initProvider runs `synchub init` as the administrator of kcp.
func (d *demo) initProvider(ctx context.Context) error {
	process, err := servers.Start(d.options, "init", d.synchub(), []string{
		"init",
		"--kcp-kubeconfig", d.world.KCP.Kubeconfig,
		"--provider-workspace", providerWorkspace,
		"--hub-user", servers.HubUser,
	}, nil)
	if err != nil {
		return err
	}
	code, err := process.Wait(ctx)
	if err != nil {
		return errors.Join(err, process.Kill9())
	}
	if code != 0 {
		return fmt.Errorf("it ended with exit code %d:\n%s", code, process.LogTail(tailLines))
	}
	return d.keepWorkspace("provider", providerWorkspace)
}

// startHub runs `synchub run` as the hub's own kcp user and returns when the hub is ready.
func (d *demo) startHub(ctx context.Context) error {
	metrics, err := freeAddress()
	if err != nil {
		return err
	}
	health, err := freeAddress()
	if err != nil {
		return err
	}
	process, err := servers.Start(d.options, "hub", d.synchub(), []string{
		"run",
		"--kcp-kubeconfig", d.world.KCP.HubKubeconfig,
		"--hosting-kubeconfig", d.state.kubeconfigOf("hosting"),
		"--provider-workspace", providerWorkspace,
		"--namespace", "default",
		"--leader-elect",
		"--metrics-bind-address", metrics,
		"--health-probe-bind-address", health,
		"--log-level", d.hubLogLevel,
	}, nil)
	if err != nil {
		return err
	}
	d.hub = &hub{Process: process, metrics: metrics, health: health}
	return d.hub.awaitReady(ctx)
}

func freeAddress() (string, error) {
	port, err := servers.FreePort()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), err
}

func (h *hub) awaitReady(ctx context.Context) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, probeEvery, true, func(ctx context.Context) (bool, error) {
		if h.Ended() {
			return false, errEnded
		}
		last = h.ready(ctx)
		return last == nil, nil
	})
	if err == nil || errors.Is(err, errEnded) {
		return err
	}
	return errors.Join(err, last)
}

func (h *hub) ready(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+h.health+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // nothing is read from it
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("/readyz answers %s", response.Status)
	}
	return nil
}

// stop terminates the hub as a rollout would.
func (h *hub) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopLimit)
	defer cancel()
	code, err := h.Terminate(ctx)
	if err != nil {
		return err
	}
	if code != 0 {
		return fmt.Errorf("the hub ended with exit code %d", code)
	}
	return nil
}
