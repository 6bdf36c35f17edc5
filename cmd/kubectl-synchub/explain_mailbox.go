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
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/explain"
)

var (
	namespacesResource      = corev1.SchemeGroupVersion.WithResource("namespaces")
	logicalClustersResource = schema.GroupVersionResource{Group: "core.kcp.io", Version: "v1alpha1", Resource: "logicalclusters"}
)

// readMailbox reads the facts in the mailbox. The error says why the mailbox is not readable.
func (o *explainOptions) readMailbox(ctx context.Context, facts *explain.Facts, resource string) error {
	status := facts.SyncTarget.Status.Mailbox
	if status == nil || status.Cluster == "" {
		return errors.New("there is none yet")
	}
	mailbox, err := o.workspaceReader(status.Cluster)
	if err != nil {
		return err
	}
	if _, err := mailbox.apis.ServerGroups(); err != nil {
		return err
	}
	found, err := mailbox.find(resource)
	switch {
	case meta.IsNoMatchError(err):
		facts.Resource = parseResource(resource)
		return nil
	case err != nil:
		return err
	}
	facts.Resource = found.GroupResource()
	if facts.Served.Value, err = mailbox.served(facts.Resource); err != nil || facts.Served.Value == nil {
		return err
	}
	if facts.Served.Value.Namespaced && facts.Key.Namespace == "" {
		// As in kubectl, the flag sets the namespace if the argument has none.
		facts.Key.Namespace = *o.cluster.Namespace
	}
	facts.Hub = o.hub(ctx, status.Workspace)
	facts.Configs = mailbox.configs(ctx)
	if facts.Served.Value.Namespaced == (facts.Key.Namespace != "") {
		mailbox.readObject(ctx, facts)
	}
	return nil
}

// hub returns the UID of the LogicalCluster of the provider workspace, which is the parent of the mailbox. It is
// empty if the user may not read that workspace.
func (o *explainOptions) hub(ctx context.Context, mailbox string) types.UID {
	end := strings.LastIndex(mailbox, ":")
	if end < 0 {
		return ""
	}
	workspace, err := o.workspaceReader(mailbox[:end])
	if err != nil {
		return ""
	}
	itself, err := workspace.get(ctx, logicalClustersResource, types.NamespacedName{Name: "cluster"})
	if err != nil || itself == nil {
		return ""
	}
	return itself.GetUID()
}

func (r *reader) configs(ctx context.Context) (seen explain.Observed[explain.Configs]) {
	workspace, err := clientOf(r.config)
	if err != nil {
		seen.Err = err
		return seen
	}
	var syncerConfigs edgev2alpha1.SyncerConfigList
	var edgeSyncConfigs edgev2alpha1.EdgeSyncConfigList
	seen.Err = errors.Join(workspace.List(ctx, &syncerConfigs), workspace.List(ctx, &edgeSyncConfigs))
	// A config that is being deleted is not in force.
	for i := range syncerConfigs.Items {
		if config := &syncerConfigs.Items[i]; config.DeletionTimestamp == nil {
			seen.Value.SyncerConfigs = append(seen.Value.SyncerConfigs, config)
		}
	}
	for i := range edgeSyncConfigs.Items {
		if config := &edgeSyncConfigs.Items[i]; config.DeletionTimestamp == nil {
			seen.Value.EdgeSyncConfigs = append(seen.Value.EdgeSyncConfigs, config)
		}
	}
	return seen
}

// readObject reads the object in the mailbox, its namespace and the events about it.
func (r *reader) readObject(ctx context.Context, facts *explain.Facts) {
	facts.Object.Value, facts.Object.Err = r.get(ctx, facts.API(), facts.Key)
	namespace := corev1.NamespaceDefault
	if facts.Key.Namespace != "" {
		namespace = facts.Key.Namespace
		facts.Namespace.Value, facts.Namespace.Err = r.get(ctx, namespacesResource, types.NamespacedName{Name: namespace})
	}
	// A user without the right to list events still gets the other facts.
	if workspace, err := clientOf(r.config); err == nil {
		var events corev1.EventList
		if workspace.List(ctx, &events, client.InNamespace(namespace), client.MatchingFields{"involvedObject.name": facts.Key.Name}) == nil {
			facts.Events = events.Items
		}
	}
}
