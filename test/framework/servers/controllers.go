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
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	fakeNode           = "fake"
	fakeNodeAnnotation = "kwok.x-k8s.io/node"
)

// kwokStages configures the behaviour of kwok's fake node and its pods.
//
//go:embed stages.yaml
var kwokStages []byte

// startControllers starts the processes that make a workload run: controller manager, scheduler, kwok in place of kubelets,
// and adds a node.
func (t *Target) startControllers(ctx context.Context, opts Options) error {
	starts := []func(context.Context, Options) (*Server, error){t.startControllerManager, t.startScheduler, t.startKwok}
	for _, start := range starts {
		server, err := start(ctx, opts)
		if err != nil {
			return err
		}
		t.controllers = append(t.controllers, server)
	}
	return t.addNode(ctx)
}

func (t *Target) startControllerManager(ctx context.Context, opts Options) (*Server, error) {
	return t.startController(ctx, opts, "kube-controller-manager",
		"--service-account-private-key-file="+t.pki.saKeyFile,
		"--root-ca-file="+t.pki.certFile,
	)
}

func (t *Target) startScheduler(ctx context.Context, opts Options) (*Server, error) {
	return t.startController(ctx, opts, "kube-scheduler")
}

// startController starts one of the two programs that share their flags.
func (t *Target) startController(ctx context.Context, opts Options, program string, args ...string) (*Server, error) {
	return startServer(ctx, opts, t.Name+"-"+program, 1, func(ports []int) (launch, error) {
		ready, err := all(probe{restConfig("https://"+address(ports[0]), t.pki.ca, ""), "/healthz"})
		return launch{program: program, ready: ready, args: append([]string{
			"--kubeconfig=" + t.Kubeconfig,
			"--kube-api-qps=500",
			"--kube-api-burst=1000",
			"--leader-elect=false",
			"--bind-address=" + loopback,
			"--secure-port=" + strconv.Itoa(ports[0]),
			"--tls-cert-file=" + t.pki.certFile,
			"--tls-private-key-file=" + t.pki.keyFile,
		}, args...)}, err
	})
}

func (t *Target) startKwok(ctx context.Context, opts Options) (*Server, error) {
	config := filepath.Join(t.dir, "stages.yaml")
	if err := os.WriteFile(config, kwokStages, 0o600); err != nil {
		return nil, fmt.Errorf("write the stages of fake nodes: %w", err)
	}
	return startServer(ctx, opts, t.Name+"-kwok", 1, func(ports []int) (launch, error) {
		ready, err := all(probe{&rest.Config{Host: "http://" + address(ports[0])}, "/healthz"})
		return launch{program: "kwok", ready: ready, args: []string{
			"--kubeconfig=" + t.Kubeconfig,
			"--config=" + config,
			"--manage-all-nodes=false",
			"--manage-nodes-with-annotation-selector=" + fakeNodeAnnotation + "=" + fakeNode,
			"--node-lease-duration-seconds=40",
			"--node-ip=192.0.2.1", // an address for documentation: nothing can be there
			"--cidr=10.128.0.0/9",
			"--server-address=" + address(ports[0]),
		}}, err
	})
}

// addNode registers the fake node. It returns when pods can be scheduled on it and namespaces have their ServiceAccount.
func (t *Target) addNode(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(t.Config)
	if err != nil {
		return fmt.Errorf("make a client for %s: %w", t.Name, err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name:        fakeNode,
		Labels:      map[string]string{corev1.LabelHostname: fakeNode, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"},
		Annotations: map[string]string{fakeNodeAnnotation: fakeNode},
	}}
	if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("register the fake node: %w", err)
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, pollEvery, startLimit, true, func(ctx context.Context) (bool, error) {
		last = canRunPods(ctx, client)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w; the logs of its controllers have the cause", err, last)
	}
	return nil
}

func canRunPods(ctx context.Context, client kubernetes.Interface) error {
	node, err := client.CoreV1().Nodes().Get(ctx, fakeNode, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read the fake node: %w", err)
	}
	if len(node.Spec.Taints) > 0 {
		return fmt.Errorf("the fake node has the taint %s", node.Spec.Taints[0].Key)
	}
	if node.Status.Allocatable.Pods().IsZero() {
		return fmt.Errorf("the fake node has no room for pods")
	}
	if _, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{}); err != nil {
		return fmt.Errorf("read the default service account: %w", err)
	}
	return nil
}
