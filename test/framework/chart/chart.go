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

package chart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// Release is the name of the Helm release in Install, and therefore the name of the hub's objects.
	Release = "synchub"

	// ServiceAccount is the name of the hub's ServiceAccount, in the namespace given to Install.
	ServiceAccount = "synchub"

	kind = "PublishedResource"

	pollEvery            = 100 * time.Millisecond
	apiTimeout           = 30 * time.Second
	interruptGracePeriod = 10 * time.Second
)

// Helm runs the helm program against one cluster.
type Helm struct {
	// Path is the path of the helm program.
	Path string
	// Kubeconfig is the path of the cluster's kubeconfig; empty for commands that need no cluster.
	Kubeconfig string
}

// Run runs helm and returns its standard output. If helm fails, the error contains its messages.
func (h Helm) Run(ctx context.Context, args ...string) (string, error) {
	// helm must not read the user's own helm and kubectl files, and no cached discovery may outlive its cluster.
	home, err := os.MkdirTemp("", "synchub-helm-")
	if err != nil {
		return "", fmt.Errorf("make a directory for helm: %w", err)
	}
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, h.Path, args...)
	command.Env = append(os.Environ(),
		"KUBECONFIG="+h.Kubeconfig, "KUBECACHEDIR="+home, "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	command.Stdout, command.Stderr = &stdout, &stderr
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = interruptGracePeriod
	err = command.Run()
	if err != nil {
		err = fmt.Errorf("helm %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), errors.Join(err, os.RemoveAll(home))
}

// Set converts values to arguments of helm, in a stable order. A value is parsed as in --set: true and 3 are no strings.
func Set(values map[string]string) []string {
	var args []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		args = append(args, "--set", key+"="+strings.ReplaceAll(values[key], ",", `\,`))
	}
	return args
}

// Install installs or upgrades the chart in the namespace, and creates the namespace if needed. It returns when the chart's
// objects exist, without waiting for Pods: the cluster needs no controllers. The values must contain
// kcp.kubeconfigSecret.name; that Secret need not exist if no Pod is to start.
//
// The chart's PublishedResources are installed too. On a cluster without their kind, the chart waits for a ready hub Pod
// before it creates them, and there may be no controller that makes one ready. Install therefore installs the chart in two
// steps.
func Install(ctx context.Context, helmPath, chartDir, kubeconfig, namespace string, set map[string]string) error {
	helm := Helm{Path: helmPath, Kubeconfig: kubeconfig}
	upgrade := append([]string{"upgrade", "--install", Release, chartDir, "--namespace", namespace, "--create-namespace"}, Set(set)...)
	if _, err := helm.Run(ctx, append(slices.Clone(upgrade), "--set", "publishedResources.defaults=false")...); err != nil {
		return err
	}
	if err := awaitKind(ctx, kubeconfig); err != nil {
		return err
	}
	_, err := helm.Run(ctx, upgrade...)
	return err
}

// awaitKind waits until discovery shows the kind PublishedResource.
func awaitKind(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read the kubeconfig %s: %w", kubeconfig, err)
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client for %s: %w", config.Host, err)
	}
	err = wait.PollUntilContextTimeout(ctx, pollEvery, apiTimeout, true, func(context.Context) (bool, error) {
		_, lists, err := client.ServerGroupsAndResources()
		if err != nil && !discovery.IsGroupDiscoveryFailedError(err) && !apierrors.IsServiceUnavailable(err) {
			return false, err
		}
		for _, list := range lists {
			for _, resource := range list.APIResources {
				if resource.Kind == kind {
					return true, nil
				}
			}
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("wait until %s serves %s: %w", config.Host, kind, err)
	}
	return nil
}
