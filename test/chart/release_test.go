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
	"cmp"
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/synchub-dev/synchub/test/framework/chart"
)

// TestRelease takes one release through its life. The steps build on each other.
func TestRelease(t *testing.T) {
	c := sharedCluster(t)
	c.prepareNamespace(t)
	var kept map[string]string

	step := func(name string, run func(*testing.T)) {
		if !t.Run(name, run) {
			t.FailNow()
		}
	}
	step("one command installs all on a cluster that knows nothing of the hub", func(t *testing.T) {
		stop := c.runJobs(t)
		output := c.helm(t, upgradeArgs(t)...)
		if pods := stop(); pods != 1 {
			t.Errorf("%d Pods have waited for the definition", pods)
		}
		for _, want := range []string{"synchub init", "kubectl synchub register", "kubectl get publishedresources"} {
			if !strings.Contains(output, want) {
				t.Errorf("the notes do not name %q:\n%s", want, output)
			}
		}
		kept = c.identities(t)
	})
	step("Helm has room to note the release", c.checkReleaseSize)
	step("the hub's Pods pass the restricted Pod security standard", c.checkPodSecurity)
	step("the hub may do exactly what it needs", func(t *testing.T) { c.checkRights(t) })
	step("an upgrade takes the PublishedResources into the release and respects what was set by hand", func(t *testing.T) {
		c.setAdoption(t, "secrets", "IfIdentical")
		c.helm(t, upgradeArgs(t, "--wait", "--set", "replicaCount=1")...)
		if manifest := c.helm(t, "get", "manifest", chart.Release); strings.Count(manifest, "kind: PublishedResource\n") != len(defaults)+1 {
			t.Errorf("the release does not hold the PublishedResources and their definition:\n%s", manifest)
		}
		c.checkKept(t, kept)
		if got := c.adoption(t, "secrets"); got != "IfIdentical" {
			t.Errorf("the upgrade changed the adoption policy that was set by hand to %q", got)
		}
	})
	step("an upgrade that turns the defaults off leaves them", func(t *testing.T) {
		c.helm(t, upgradeArgs(t, "--set", "publishedResources.defaults=false")...)
		c.checkKept(t, kept)
	})
	step("with secure metrics the hub may also review tokens and access", func(t *testing.T) {
		c.helm(t, upgradeArgs(t, "--set", "publishedResources.defaults=false,metrics.secure.enabled=true,metrics.secure.certSecret=metrics")...)
		c.checkRights(t, "create authentication.k8s.io/tokenreviews in the cluster", "create authorization.k8s.io/subjectaccessreviews in the cluster")
		c.checkPodSecurity(t)
	})
	step("several active hubs have no more rights", func(t *testing.T) {
		c.helm(t, upgradeArgs(t, "--set", "publishedResources.defaults=false,coordination=sharded,autoscaling.enabled=true")...)
		c.checkRights(t)
	})
	step("an uninstall leaves PublishedResources and their definition, and nothing else", func(t *testing.T) {
		c.helm(t, "uninstall", chart.Release, "--wait")
		c.checkKept(t, kept)
		c.checkHubIsGone(t)
	})
	step("a new install takes them over", func(t *testing.T) {
		c.helm(t, upgradeArgs(t, "--wait")...)
		c.checkKept(t, kept)
	})
	step("with --wait too", func(t *testing.T) {
		c.removeAll(t)
		stop := c.runJobs(t)
		c.helm(t, upgradeArgs(t, "--wait")...)
		stop()
		c.identities(t)
	})
	step("the framework's Install needs no ready Pods", func(t *testing.T) {
		c.removeAll(t)
		helm, chartDir, _ := paths(t)
		set := map[string]string{"replicaCount": "0", requiredValue: "synchub-kcp"}
		for range 2 {
			if err := chart.Install(contextFor(t), helm.Path, chartDir, c.Kubeconfig, namespace, set); err != nil {
				t.Fatal(err)
			}
			c.identities(t)
		}
	})
	for name, compare := range map[string]func(a, b string) int{
		"from A to Z": cmp.Compare[string], "from Z to A": func(a, b string) int { return cmp.Compare(b, a) },
	} {
		step("a GitOps tool applies the chart "+name, func(t *testing.T) {
			c.removeAll(t)
			c.checkAnyOrder(t, compare)
		})
	}
}

// checkPodSecurity creates a Pod like the hub's, and one with an additional privilege.
func (c *cluster) checkPodSecurity(t *testing.T) {
	ctx := contextFor(t)
	deployment, err := c.kubernetes.AppsV1().Deployments(namespace).Get(ctx, chart.Release, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod := podOf(deployment)
	if _, err := c.kubernetes.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Errorf("the hub's Pod is refused: %v", err)
	}
	pod.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = new(true)
	if _, err := c.kubernetes.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); !apierrors.IsForbidden(err) {
		t.Errorf("the namespace does not enforce the standard: %v", err)
	}
}

func podOf(deployment *appsv1.Deployment) *corev1.Pod {
	template := deployment.Spec.Template.DeepCopy()
	template.Name = "by-hand"
	return &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
}

// checkReleaseSize checks that the Secret in which Helm stores the release, with the chart and the manifests, stays well
// below the 1 MiB that a Secret can hold. The descriptions in the schemas, for kubectl explain, take most of it.
func (c *cluster) checkReleaseSize(t *testing.T) {
	secrets, err := c.kubernetes.CoreV1().Secrets(namespace).List(contextFor(t), metav1.ListOptions{LabelSelector: "owner=helm,name=" + chart.Release})
	if err != nil || len(secrets.Items) == 0 {
		t.Fatalf("find the release: %v", err)
	}
	for _, secret := range secrets.Items {
		size := len(secret.Data["release"])
		t.Logf("%s takes %d bytes", secret.Name, size)
		if size > corev1.MaxSecretSize/4*3 {
			t.Errorf("%s takes %d bytes", secret.Name, size)
		}
	}
}

func (c *cluster) checkKept(t *testing.T, kept map[string]string) {
	t.Helper()
	if now := c.identities(t); !maps.Equal(now, kept) {
		t.Errorf("objects were deleted or replaced: there are %v, there were %v", now, kept)
	}
}

func (c *cluster) checkHubIsGone(t *testing.T) {
	t.Helper()
	ctx := contextFor(t)
	_, deployment := c.kubernetes.AppsV1().Deployments(namespace).Get(ctx, chart.Release, metav1.GetOptions{})
	_, account := c.kubernetes.CoreV1().ServiceAccounts(namespace).Get(ctx, chart.ServiceAccount, metav1.GetOptions{})
	_, role := c.kubernetes.RbacV1().ClusterRoles().Get(ctx, chart.Release, metav1.GetOptions{})
	for what, err := range map[string]error{"Deployment": deployment, "ServiceAccount": account, "ClusterRole": role} {
		if !apierrors.IsNotFound(err) {
			t.Errorf("the %s is still there: %v", what, err)
		}
	}
}

func (c *cluster) setAdoption(t *testing.T, name, policy string) {
	t.Helper()
	patch := []byte(`{"spec":{"adoption":"` + policy + `"}}`)
	if _, err := c.dynamic.Resource(publishedResources).Patch(contextFor(t), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) adoption(t *testing.T, name string) string {
	t.Helper()
	object, err := c.dynamic.Resource(publishedResources).Get(contextFor(t), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return nested(t, object, "spec", "adoption")
}

// removeAll restores the cluster to the state before the first installation.
func (c *cluster) removeAll(t *testing.T) {
	t.Helper()
	c.helm(t, "uninstall", chart.Release, "--wait", "--ignore-not-found")
	ctx := contextFor(t)
	const definition = "publishedresources.synchub.dev"
	if err := c.dynamic.Resource(crds).Delete(ctx, definition, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, err := c.dynamic.Resource(crds).Get(ctx, definition, metav1.GetOptions{})
		if err == nil {
			return false, nil
		}
		return c.forgotten(), ignoreNotFound(err)
	})
	if err != nil {
		t.Fatalf("wait until the definition is gone: %v", err)
	}
}

// forgotten reports whether discovery no longer shows the API group.
func (c *cluster) forgotten() bool {
	groups, err := c.kubernetes.Discovery().ServerGroups()
	if err != nil {
		return false
	}
	for _, group := range groups.Groups {
		if group.Name == publishedResources.Group {
			return false
		}
	}
	return true
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
