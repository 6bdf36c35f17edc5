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
	"k8s.io/utils/lru"

	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/requestclass"
)

// pathAnnotation is the annotation of a LogicalCluster that contains the path of its workspace. Administrators
// of the workspace can change it.
const pathAnnotation = "kcp.io/path"

var logicalClusters = corev1alpha1.SchemeGroupVersion.WithResource("logicalclusters")

// pathVerifier finds the paths of workload workspaces. A workspace claims a path. The claim counts only if kcp
// resolves the path to the workspace (docs/design/0021-paths.md).
type pathVerifier struct {
	resolver  PathResolver
	workloads *mailboxes.Mailboxes
	clock     clock.PassiveClock
	// clusters holds, by path, the results of requests for the workspaces that placements name, as resolvedCluster. It is bounded,
	// because tenants name any paths.
	clusters *lru.Cache
	// verified holds the paths of workspaces. The path of a workspace never changes.
	verified gosync.Map
}

const (
	// pathRetryDelay is how long a result for a path counts, and the time between attempts to find an unknown one.
	pathRetryDelay = time.Minute
	// maxKnownPaths bounds the known results.
	maxKnownPaths = 10_000
	// maxPaths bounds the paths that the placements of one workspace may name, and so the requests for them.
	maxPaths = 256
)

// pathUnverifiedMessage is the same for every annotation: it must not reveal whether another workspace has a
// path.
const pathUnverifiedMessage = "The hub cannot verify the path of this workspace, so only its own Locations are available to it: either the annotation " +
	pathAnnotation + " of its LogicalCluster is not its path, or its binding does not accept the claim on logicalclusters, or the hub's user may not get Workspaces in its parent workspace. The hub's log has the details."

type resolvedCluster struct {
	logicalcluster.Name
	err error
	at  time.Time
}

func newPathVerifier(options *Options) *pathVerifier {
	return &pathVerifier{
		resolver: options.Paths, workloads: options.Workloads, clock: options.Clock,
		clusters: lru.New(maxKnownPaths),
	}
}

// errNotItsPath means that a workspace claims the path of another one.
var errNotItsPath = errors.New("which is not its path")

// isPathRefuted reports whether kcp denies that a path exists, or that the hub may see it. After any other
// error the path may exist.
func isPathRefuted(err error) bool {
	return errors.Is(err, errNotItsPath) || errors.Is(err, kcp.ErrNoWorkspace) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err)
}

// checkPaths returns an error if the placements of a workspace name too many paths.
func checkPaths(count int) error {
	if count > maxPaths {
		return fmt.Errorf("spec.inventoryWorkspaces: the placements of the workspace name more than %d workspaces: remove some", maxPaths)
	}
	return nil
}

// pathOf returns the verified path of a workspace.
func (v *pathVerifier) pathOf(ctx context.Context, cluster logicalcluster.Name) (string, error) {
	if path, ok := v.verified.Load(cluster); ok {
		return path.(string), nil
	}
	path, err := v.verify(requestclass.With(ctx, requestclass.Background), cluster)
	if err == nil {
		v.verified.Store(cluster, path)
	}
	return path, err
}

func (v *pathVerifier) verify(ctx context.Context, cluster logicalcluster.Name) (string, error) {
	client, ok := v.workloads.Client(cluster)
	if !ok {
		return "", fmt.Errorf("the workspace %s cannot be reached now", cluster)
	}
	logicalCluster, err := client.Resource(logicalClusters).Get(ctx, corev1alpha1.LogicalClusterName, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("cannot get the LogicalCluster of the workspace %s (is the claim accepted?): %w", cluster, err)
	}
	claimed := logicalCluster.GetAnnotations()[pathAnnotation]
	found, err := v.resolver.LogicalClusterOf(ctx, logicalcluster.NewPath(claimed))
	if err != nil {
		return "", fmt.Errorf("cannot verify that the workspace %s has the path %s: %w", cluster, claimed, err)
	}
	if found != cluster {
		return "", fmt.Errorf("the annotation %s of the LogicalCluster of the workspace %s is %s, %w", pathAnnotation, cluster, claimed, errNotItsPath)
	}
	return claimed, nil
}

// forget drops the path of a workspace.
func (v *pathVerifier) forget(cluster logicalcluster.Name) { v.verified.Delete(cluster) }

// clustersOf returns the logical clusters of workspaces. If some paths are refuted, it returns the clusters of
// the other paths and an error that names the refuted ones. After any other error it returns no clusters.
func (v *pathVerifier) clustersOf(ctx context.Context, paths []string) (clusters []logicalcluster.Name, err error) {
	ctx = requestclass.With(ctx, requestclass.Background)
	var errs []error
	for _, path := range paths {
		found := v.clusterOf(ctx, path)
		switch {
		case found.err == nil:
			clusters = append(clusters, found.Name)
		case isPathRefuted(found.err):
			errs = append(errs, found.err)
		default:
			return nil, found.err
		}
	}
	return clusters, errors.Join(errs...)
}

// clusterOf returns the logical cluster of a path, or the error. The cluster, or an error that refutes the path, is cached for
// pathRetryDelay. Other errors are not cached.
func (v *pathVerifier) clusterOf(ctx context.Context, path string) resolvedCluster {
	if known, ok := v.clusters.Get(path); ok && v.clock.Since(known.(resolvedCluster).at) < pathRetryDelay {
		return known.(resolvedCluster)
	}
	cluster, err := v.resolver.LogicalClusterOf(ctx, logicalcluster.NewPath(path))
	found := resolvedCluster{cluster, err, v.clock.Now()}
	if err == nil || isPathRefuted(err) {
		v.clusters.Add(path, found)
	}
	return found
}
