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
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// runJobs plays the node for the Pods of the chart's Job, since no node here runs containers: it runs their program as a process, and
// writes the result into the Pod's status. The returned function stops the node, and returns the number of Pods.
func (c *cluster) runJobs(t *testing.T) (stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(contextFor(t))
	pods, err := c.kubernetes.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=synchub-wait"})
	if err != nil {
		t.Fatal(err)
	}
	_, _, root := paths(t)
	ended := map[types.UID]bool{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range pods.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || pod.Status.Phase != corev1.PodRunning || ended[pod.UID] {
				continue
			}
			ended[pod.UID] = true
			if err := c.runPod(ctx, t.TempDir(), filepath.Join(root, "bin", "synchub-race"), pod); err != nil {
				t.Errorf("the Pod %s: %v", pod.Name, err)
			}
		}
	}()
	return func() int {
		pods.Stop()
		<-done
		cancel()
		return len(ended)
	}
}

// runPod runs the program of a Pod with the rights of the Pod's ServiceAccount.
func (c *cluster) runPod(ctx context.Context, directory, program string, pod *corev1.Pod) error {
	content, err := c.ServiceAccountKubeconfig(ctx, namespace, pod.Spec.ServiceAccountName)
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(directory, "kubeconfig")
	if err := os.WriteFile(kubeconfig, content, 0o600); err != nil {
		return err
	}
	phase := corev1.PodSucceeded
	output, err := exec.CommandContext(ctx, program, append(pod.Spec.Containers[0].Args, "--hosting-kubeconfig", c.Kubeconfig)...).CombinedOutput()
	if err != nil {
		phase, err = corev1.PodFailed, fmt.Errorf("%w: %s", err, output)
	}
	status := fmt.Appendf(nil, `{"status": {"phase": %q}}`, phase)
	if _, patchErr := c.kubernetes.CoreV1().Pods(namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, status, metav1.PatchOptions{}, "status"); patchErr != nil {
		return patchErr
	}
	return err
}
