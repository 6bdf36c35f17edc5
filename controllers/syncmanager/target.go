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

package syncmanager

import (
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/targets"
)

// Target describes a SyncTarget to the manager.
type Target struct {
	// UID and Name are the SyncTarget's. InventoryWorkspace is the logical cluster in which it lives.
	UID                types.UID
	Name               string
	InventoryWorkspace logicalcluster.Name
	// Labels and Annotations are the labels and annotations of the SyncTarget that mutations may read. They are
	// immutable.
	Labels, Annotations map[string]string
	// Mailbox is the logical cluster of its mailbox.
	Mailbox    logicalcluster.Name
	Connection *targets.Connection
	// Cordoned is true if the hub must not create objects on the target.
	Cordoned bool
	// Held is true while the hub removes and overwrites nothing on the target, because kcp went back to an earlier state.
	Held bool
	// Adoption is the policy for adopting objects of the target, in addition to the PublishedResources. Empty
	// means none.
	Adoption synchubv1alpha1.AdoptionPolicy
	// Namespaces restricts the namespaces of the target, in addition to those that the hub protects.
	Namespaces *edgev2alpha1.TargetNamespaces
	// WrittenNamespaces are the namespaces in which the hub may have written. The empty namespace, or none,
	// means the whole cluster.
	WrittenNamespaces []string
	// Limits bound the cached objects of the mailbox, where they are lower than the hub's. Zero means the hub's
	// limit.
	Limits mailboxes.Limits
	// WrittenResources holds the objects that the hub may have written, by resource of the target.
	WrittenResources WrittenResources
	// TrustedUntil is until when the compatibility in WrittenResources counts without a request to the target.
	// It applies to the first connection only.
	TrustedUntil time.Time
	// Prepare is true on a replica that is not the leader. The manager then fills the caches of the resources
	// in WrittenResources, and writes nothing until StartSync is called again without Prepare.
	Prepare bool
}

// NotSynced is why a SyncTarget is not synced now. The zero value means that it is synced.
type NotSynced struct {
	// SyncTarget is its name, Mailbox the logical cluster of its mailbox.
	SyncTarget string
	Mailbox    logicalcluster.Name
	// Reason is the reason of its condition SyncerReady.
	Reason string
}
