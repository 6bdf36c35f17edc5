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

package placement

import (
	"context"
	"errors"
	"fmt"
	gosync "sync"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	corev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

// pathAnnotation is where kcp notes the path of a workspace on its LogicalCluster. Administrators of the workspace can change it.
const pathAnnotation = "kcp.io/path"

var logicalClusters = corev1alpha1.SchemeGroupVersion.WithResource("logicalclusters")

// errNotBound means that the binding of a workspace does not show its LogicalCluster, or not yet. An event follows when it does.
var errNotBound = errors.New("the LogicalCluster of the workspace is not visible")

// pathVerifier finds the paths of workload workspaces. A workspace claims a path; it counts only if the parent workspace leads
// from the path to the workspace (docs/design/0021-paths.md).
type pathVerifier struct {
	resolver  PathResolver
	workloads *mailboxes.Mailboxes

	clock clock.PassiveClock

	lock gosync.Mutex
	// verified are the paths of workspaces. The path of a workspace never changes.
	verified map[logicalcluster.Name]string
	// clusters are the workspaces of paths that placements name. A workspace can be deleted and made again, so they are asked for
	// again after clusterTTL.
	clusters map[string]resolvedCluster
}

const clusterTTL = time.Minute

type resolvedCluster struct {
	logicalcluster.Name
	at time.Time
}

// pathOf returns the verified path of a workspace.
func (v *pathVerifier) pathOf(ctx context.Context, cluster logicalcluster.Name) (string, error) {
	v.lock.Lock()
	path, ok := v.verified[cluster]
	v.lock.Unlock()
	if ok {
		return path, nil
	}
	ctx = requestmetrics.WithClass(ctx, requestmetrics.Background)
	path, err := v.verify(ctx, cluster)
	if err != nil {
		return "", err
	}
	v.lock.Lock()
	defer v.lock.Unlock()
	v.verified[cluster] = path
	return path, nil
}

func (v *pathVerifier) verify(ctx context.Context, cluster logicalcluster.Name) (string, error) {
	client, ok := v.workloads.Client(cluster)
	if !ok {
		return "", fmt.Errorf("%w: the workspace %s cannot be reached now", errNotBound, cluster)
	}
	logicalCluster, err := client.Resource(logicalClusters).Get(ctx, corev1alpha1.LogicalClusterName, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return "", fmt.Errorf("%w: the binding of the workspace must accept the claim on logicalclusters: %w", errNotBound, err)
	case err != nil:
		return "", fmt.Errorf("cannot get the LogicalCluster of the workspace %s: %w", cluster, err)
	}
	claimed := logicalCluster.GetAnnotations()[pathAnnotation]
	found, err := v.resolver.LogicalClusterOf(ctx, logicalcluster.NewPath(claimed))
	if err != nil {
		return "", fmt.Errorf("cannot verify that the workspace %s has the path %s: %w", cluster, claimed, err)
	}
	if found != cluster {
		// Whose path it is, is none of the workspace's business.
		return "", fmt.Errorf("the annotation %s of the LogicalCluster of the workspace %s is %s, which is not its path", pathAnnotation, cluster, claimed)
	}
	return claimed, nil
}

// forget drops the path of a workspace.
func (v *pathVerifier) forget(cluster logicalcluster.Name) {
	v.lock.Lock()
	defer v.lock.Unlock()
	delete(v.verified, cluster)
}

// clustersOf returns the logical clusters of workspaces. The error is [kcp.ErrNoWorkspace] if there is no workspace of a path; the
// others are returned all the same.
func (v *pathVerifier) clustersOf(ctx context.Context, paths []string) (clusters []logicalcluster.Name, err error) {
	ctx = requestmetrics.WithClass(ctx, requestmetrics.Background)
	for _, path := range paths {
		cluster, failure := v.clusterOf(ctx, path)
		if failure != nil {
			err = fmt.Errorf("spec.inventoryWorkspaces: %w", failure)
			continue
		}
		clusters = append(clusters, cluster)
	}
	return clusters, err
}

func (v *pathVerifier) clusterOf(ctx context.Context, path string) (logicalcluster.Name, error) {
	v.lock.Lock()
	known, ok := v.clusters[path]
	v.lock.Unlock()
	if ok && v.clock.Since(known.at) < clusterTTL {
		return known.Name, nil
	}
	cluster, err := v.resolver.LogicalClusterOf(ctx, logicalcluster.NewPath(path))
	v.lock.Lock()
	defer v.lock.Unlock()
	if err != nil {
		delete(v.clusters, path)
		return "", err
	}
	v.clusters[path] = resolvedCluster{cluster, v.clock.Now()}
	return cluster, nil
}
