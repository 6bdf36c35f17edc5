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
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/test/framework/chart"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// operationLimit is longer than the timeout that helm gets for the hub.
const operationLimit = 3 * time.Minute

var (
	publishedResources = v1alpha1.SchemeGroupVersion.WithResource("publishedresources")
	crds               = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
)

// cluster is the target that all tests share. It has controllers, so that a Deployment rolls out.
type cluster struct {
	*servers.Target
	kubernetes kubernetes.Interface
	dynamic    dynamic.Interface
}

func TestMain(m *testing.M) { suite.Main(m) }

var sharedCluster = suite.Shared(func(t testing.TB) *cluster {
	target := suite.StartTarget(t, "hosting", servers.TargetOptions{Controllers: true})
	clientset, err := kubernetes.NewForConfig(target.Config)
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{Target: target, kubernetes: clientset, dynamic: suite.Dynamic(t, target.Config)}
})

// helm runs helm against the cluster and fails the test if helm fails.
func (c *cluster) helm(t *testing.T, args ...string) string {
	t.Helper()
	output, err := c.tryHelm(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

func (c *cluster) tryHelm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	helm, _, _ := paths(t)
	helm.Kubeconfig = c.Kubeconfig
	return helm.Run(contextFor(t), append(args, "--namespace", namespace)...)
}

// upgradeArgs returns the arguments of the documented command, which also installs.
func upgradeArgs(t *testing.T, more ...string) []string {
	t.Helper()
	_, chartDir, _ := paths(t)
	return append([]string{"upgrade", "--install", chart.Release, chartDir, "--timeout", "2m", "--set", required}, more...)
}

// prepareNamespace creates the release's namespace with the strictest Pod security, and the Secret that the chart needs.
func (c *cluster) prepareNamespace(t *testing.T) {
	t.Helper()
	ctx := contextFor(t)
	labels := map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
	_, err := c.kubernetes.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: labels}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "synchub-kcp"}, StringData: map[string]string{"kubeconfig": "nobody reads it here"}}
	if _, err := c.kubernetes.CoreV1().Secrets(namespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// identities returns the UIDs of the objects that must outlive a release.
func (c *cluster) identities(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	add := func(resource schema.GroupVersionResource, namespace string, names ...string) {
		for _, name := range names {
			object, err := c.dynamic.Resource(resource).Namespace(namespace).Get(contextFor(t), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			found[resource.Resource+"/"+name] = string(object.GetUID())
		}
	}
	add(crds, "", "publishedresources.synchub.dev")
	add(publishedResources, "", defaults...)
	return found
}

func nested(t *testing.T, object *unstructured.Unstructured, path ...string) string {
	t.Helper()
	value, _, err := unstructured.NestedString(object.Object, path...)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// contextFor returns a context with a timeout for one cluster operation on a busy machine.
func contextFor(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), operationLimit)
	t.Cleanup(cancel)
	return ctx
}
