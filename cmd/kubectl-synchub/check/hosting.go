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

package check

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/provider/wording"
)

const (
	hostingArea = "hub"
	// leaseName is the name of the Lease that the leading hub holds.
	leaseName = "synchub"
)

// oldestKubernetes is the oldest version that evaluates the rules of the definition of PublishedResources, as in the chart.
var oldestKubernetes = version.MustParseSemantic("1.30.0")

// hosting checks the hub in a namespace of its hosting cluster.
func (r *Report) hosting(ctx context.Context, c client.Reader, versions discovery.ServerVersionInterface, namespace string) {
	if found := r.hostingVersion(versions); found == "" {
		return
	}
	r.deployments(ctx, c, namespace)
	r.leader(ctx, c, types.NamespacedName{Namespace: namespace, Name: leaseName})
	r.publishedResources(ctx, c)
}

// deployments checks the Deployments of the chart in the hub's namespace.
// hostingVersion checks and returns the version of the hosting cluster. It is empty if the cluster does not answer.
func (r *Report) hostingVersion(versions discovery.ServerVersionInterface) string {
	found, err := versions.ServerVersion()
	if err != nil {
		r.add(hostingArea, Problem, "the hosting cluster does not answer: %v", err)
		return ""
	}
	if kubernetes, err := version.ParseSemantic(found.GitVersion); err == nil && kubernetes.LessThan(oldestKubernetes) {
		r.add(hostingArea, Problem, "the hosting cluster has version %s, and the hub needs %s or newer", found.GitVersion, oldestKubernetes)
	}
	return found.GitVersion
}

func (r *Report) deployments(ctx context.Context, c client.Reader, namespace string) {
	var list appsv1.DeploymentList
	if err := c.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/name": "synchub"}); err != nil {
		r.add(hostingArea, Skipped, "the Deployments of the namespace %s cannot be listed: %v", namespace, err)
		return
	}
	if len(list.Items) == 0 {
		r.add(hostingArea, Warning, "the namespace %s has no Deployment of the chart: is --hub-namespace right, or does the hub run elsewhere?", namespace)
	}
	for i := range list.Items {
		deployment := &list.Items[i]
		wanted, ready, runs := ptr.Deref(deployment.Spec.Replicas, 1), deployment.Status.ReadyReplicas, deployment.Labels["app.kubernetes.io/version"]
		switch {
		case ready < wanted:
			r.add(hostingArea, Problem, "%d of %d replicas of the Deployment %s are ready: see `kubectl describe pods --namespace %s`", ready, wanted, deployment.Name, deployment.Namespace)
		default:
			r.add(hostingArea, OK, "%s of the Deployment %s, version %s; this plugin is %s", wording.Count(wanted, "ready replica", "ready replicas"), deployment.Name, runs, cli.PluginVersion)
		}
	}
}

// leader checks that a hub leads.
func (r *Report) leader(ctx context.Context, c client.Reader, key types.NamespacedName) {
	var lease coordinationv1.Lease
	switch err := c.Get(ctx, key, &lease); {
	case apierrors.IsNotFound(err):
		r.add(hostingArea, Problem, "no hub has ever led in the namespace %s: is --hub-namespace right?", key.Namespace)
		return
	case err != nil:
		r.add(hostingArea, Skipped, "the Lease %s cannot be read: %v", key, err)
		return
	}
	holder, renewed := ptr.Deref(lease.Spec.HolderIdentity, ""), ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{}).Time
	age := time.Since(renewed)
	if holder == "" || age > time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0))*time.Second {
		r.add(hostingArea, Problem, "no hub leads: the Lease %s was renewed %s ago", key, age.Round(time.Second))
		return
	}
	r.add(hostingArea, OK, "%s leads", holder)
}

// publishedResources checks that mailboxes get the published APIs.
func (r *Report) publishedResources(ctx context.Context, c client.Reader) {
	const area = "apis"
	var list synchubv1alpha1.PublishedResourceList
	switch err := c.List(ctx, &list); {
	case meta.IsNoMatchError(err):
		r.add(area, Problem, "the hosting cluster does not serve PublishedResources: install the chart")
		return
	case err != nil:
		r.add(area, Skipped, "the PublishedResources cannot be listed: %v", err)
		return
	}
	var notReady []string
	for i := range list.Items {
		ready := meta.FindStatusCondition(list.Items[i].Status.Conditions, synchubv1alpha1.ConditionReady)
		switch {
		case ready == nil:
			notReady = append(notReady, list.Items[i].Name+" (the hub has not reported anything yet)")
		case ready.Status != "True":
			notReady = append(notReady, fmt.Sprintf("%s (%s: %s)", list.Items[i].Name, ready.Reason, ready.Message))
		}
	}
	switch {
	case len(list.Items) == 0:
		r.add(area, Warning, "there is no PublishedResource: mailboxes have no API to sync")
	case len(notReady) > 0:
		r.add(area, Problem, "%d of %d PublishedResources are not ready: %s", len(notReady), len(list.Items), wording.First(maxNamed, notReady))
	default:
		r.add(area, OK, "%s", wording.Of(len(list.Items), "the PublishedResource is ready", fmt.Sprintf("all PublishedResources (%d) are ready", len(list.Items))))
	}
}
