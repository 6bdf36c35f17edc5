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

package ledger

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Entry is what the hub remembers of one SyncTarget. Treat one that [Ledger.Get] returns as read-only.
type Entry struct {
	// Name and Inventory tell people which SyncTarget this is: its name, and the logical cluster of its inventory workspace.
	Name      string `json:"name"`
	Inventory string `json:"inventory"`
	// Mailbox is the logical cluster of the mailbox that the hub made last, empty before the first.
	Mailbox string `json:"mailbox,omitempty"`
	// MailboxBindings is true if the mailbox may hold ClusterRoleBindings made from spec.mailboxAccess.
	MailboxBindings bool `json:"mailboxBindings,omitempty"`
	// Cluster is the cluster that the SyncTarget stands for. Another one behind its kubeconfig is not synced.
	Cluster Cluster `json:"cluster,omitzero"`
	// FormerClusters stood for the SyncTarget before, the latest last; objects may be left there.
	FormerClusters []FormerCluster `json:"formerClusters,omitempty"`
	// ClusterConflict is true while the SyncTarget is not synced because an older one of its workspace stands for the same cluster.
	ClusterConflict bool `json:"refused,omitempty"`
	// VerifiedGeneration is the generation of the SyncTarget for which all was well: its cluster known, its rights sufficient, its
	// objects in sync. Zero if something was not.
	VerifiedGeneration int64 `json:"verified,omitempty"`
	// Resources are those of the cluster of which the hub may have written objects, sorted.
	Resources []Resource `json:"resources,omitempty"`
	// Namespaces are those in which the hub may have written them, sorted; [AllNamespaces] is among them if it was not bound to some
	// before. Empty stands for the whole cluster.
	Namespaces []string `json:"namespaces,omitempty"`
}

// AllNamespaces stands for all namespaces of a cluster.
const AllNamespaces = "*"

// RecordNamespaces notes that the hub writes in these namespaces only from now on; none stands for the whole cluster. Those before stay
// noted as long as anything may have been written.
func (e *Entry) RecordNamespaces(namespaces []string) {
	before := e.Namespaces
	switch {
	case len(namespaces) == 0:
		e.Namespaces = nil
		return
	case len(e.Resources) == 0:
		before = nil
	case len(before) == 0:
		before = []string{AllNamespaces}
	}
	e.Namespaces = slices.Compact(slices.Sorted(slices.Values(slices.Concat(before, namespaces))))
}

// FormerNamespaces returns the namespaces in which the hub may have written before, and does not any more.
func (e *Entry) FormerNamespaces(namespaces []string) []string {
	if len(namespaces) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(e.Namespaces), func(one string) bool { return slices.Contains(namespaces, one) })
}

// Cluster identifies a cluster.
type Cluster struct {
	// ID is the UID of the namespace kube-system, or of a workspace's LogicalCluster. Empty if the cluster does not tell.
	ID string `json:"id,omitempty"`
	// Server is the fingerprint of the address and the authorities by which the cluster was identified.
	Server string `json:"server,omitempty"`
}

// FormerCluster is a cluster that a SyncTarget stood for until an operator confirmed another.
type FormerCluster struct {
	Cluster `json:",inline"`
	// Until is when the other one was confirmed.
	Until time.Time `json:"until"`
	// Resources are those of which objects may be left there.
	Resources []metav1.GroupResource `json:"resources,omitempty"`
}

// Resource is a resource of the cluster of which the hub may have written objects.
type Resource struct {
	metav1.GroupResource `json:",inline"`
	// Version is the one that the hub uses.
	Version string `json:"version,omitempty"`
	// Direct is true if the mailbox's objects of the same resource go there.
	Direct bool `json:"own,omitempty"`
	// ConvertedFrom are the mailbox's resources whose objects become this one by conversions and relations, sorted.
	ConvertedFrom []metav1.GroupResource `json:"convertedFrom,omitempty"`
	// State, Reason and Message tell whether objects fit, as status.syncedResources does. State is empty if that is not known.
	State   string `json:"state,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Schema is the one that mailboxes had when that was found out, with its version.
	Schema string `json:"schema,omitempty"`
}

// maxFormerClusters bounds how many former clusters are remembered of a SyncTarget.
const maxFormerClusters = 8

// ConfirmCluster makes another cluster the one that the SyncTarget stands for, at the time given.
func (e *Entry) ConfirmCluster(next Cluster, now time.Time) {
	if e.Cluster.ID != "" && e.Cluster.ID != next.ID && len(e.Resources) > 0 {
		former := FormerCluster{Cluster: e.Cluster, Until: now.UTC().Truncate(time.Second)}
		for _, resource := range e.Resources {
			former.Resources = append(former.Resources, resource.GroupResource)
		}
		e.FormerClusters = append(e.FormerClusters, former)
	}
	e.Cluster, e.VerifiedGeneration = next, 0
	// Whoever comes back is no former one any more.
	e.FormerClusters = slices.DeleteFunc(e.FormerClusters, func(former FormerCluster) bool { return former.ID == next.ID })
	if more := len(e.FormerClusters) - maxFormerClusters; more > 0 {
		e.FormerClusters = slices.Delete(e.FormerClusters, 0, more)
	}
}

// clone returns a copy that shares nothing with the entry.
func (e *Entry) clone() Entry {
	next := *e
	next.FormerClusters = slices.Clone(e.FormerClusters)
	for i := range next.FormerClusters {
		next.FormerClusters[i].Resources = slices.Clone(next.FormerClusters[i].Resources)
	}
	next.Namespaces = slices.Clone(e.Namespaces)
	next.Resources = slices.Clone(e.Resources)
	for i := range next.Resources {
		next.Resources[i].ConvertedFrom = slices.Clone(next.Resources[i].ConvertedFrom)
	}
	return next
}

// emptyEntry is how an entry is stored that remembers nothing.
var emptyEntry, _ = (&Entry{}).encode()

func (e *Entry) encode() (string, error) {
	data, err := json.Marshal(e)
	return string(data), err
}

func decode(text string) (Entry, error) {
	var entry Entry
	if err := json.Unmarshal([]byte(text), &entry); err != nil {
		return Entry{}, fmt.Errorf("cannot read what the hub remembers: %w", err)
	}
	return entry, nil
}
