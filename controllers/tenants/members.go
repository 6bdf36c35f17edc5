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

package tenants

import (
	"maps"
	"slices"
	"sync"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/tenancy"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// members are the namespaces of workspaces, by name, with the workspace of each. They are the mailbox's Namespaces that a placement
// made.
type members struct {
	owner ownership.Owner

	lock       sync.Mutex
	workspaces map[string]logicalcluster.Name
	// prepared are the namespaces of the cluster that the hub prepared for a workspace since it started. An object can be in the mailbox
	// before its Namespace.
	prepared map[string]logicalcluster.Name
	// known is true while the mailbox can be read.
	known bool
}

// update updates a namespace of the mailbox, nil if it is gone, and reports whether it was, or is, one of a workspace.
func (m *members) update(name string, namespace *unstructured.Unstructured) (before, now logicalcluster.Name) {
	if namespace != nil {
		now = workspaceOf(m.owner, namespace)
	}
	m.lock.Lock()
	defer m.lock.Unlock()
	before = m.workspaces[name]
	if now == "" {
		delete(m.workspaces, name)
	} else {
		m.workspaces[name] = now
	}
	return before, now
}

// replace replaces all namespaces.
func (m *members) replace(all []*unstructured.Unstructured, known bool) {
	workspaces := map[string]logicalcluster.Name{}
	for _, namespace := range all {
		if workspace := workspaceOf(m.owner, namespace); workspace != "" {
			workspaces[namespace.GetName()] = workspace
		}
	}
	m.lock.Lock()
	defer m.lock.Unlock()
	m.known = known
	if known {
		m.workspaces = workspaces
	}
}

// workspaceOf returns the workspace whose placement made a Namespace of the mailbox; empty if no placement made it.
func workspaceOf(owner ownership.Owner, namespace *unstructured.Unstructured) logicalcluster.Name {
	mark, err := owner.ForPlacements().VerifyUp(namespace.GetAnnotations(), transform.SelfOf(namespace))
	if err != nil {
		return ""
	}
	return logicalcluster.Name(mark.Mailbox)
}

// get returns the workspace of a namespace; known is false while the mailbox cannot be read.
func (m *members) get(namespace string) (workspace logicalcluster.Name, known bool) {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.workspaces[namespace], m.known
}

// setPrepared records that the hub prepares a namespace of the cluster for a workspace.
func (m *members) setPrepared(namespace string, workspace logicalcluster.Name) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.prepared[namespace] = workspace
}

// forgetPrepared is called when a namespace of the cluster was deleted. It returns the workspace that it was prepared for.
func (m *members) forgetPrepared(namespace string) logicalcluster.Name {
	m.lock.Lock()
	defer m.lock.Unlock()
	workspace := m.prepared[namespace]
	delete(m.prepared, namespace)
	return workspace
}

// namespaces returns all namespaces.
func (m *members) namespaces() []string {
	m.lock.Lock()
	defer m.lock.Unlock()
	return slices.Collect(maps.Keys(m.workspaces))
}

// hasWorkspace reports whether a namespace of the mailbox or the cluster is of the workspace with the hash; known is false while the mailbox cannot be read.
func (m *members) hasWorkspace(hash string) (found, known bool) {
	m.lock.Lock()
	defer m.lock.Unlock()
	for _, workspaces := range []map[string]logicalcluster.Name{m.workspaces, m.prepared} {
		for _, workspace := range workspaces {
			if tenancy.WorkspaceHash(workspace) == hash {
				return true, m.known
			}
		}
	}
	return false, m.known
}
