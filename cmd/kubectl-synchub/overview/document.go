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

package overview

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

// Document is the state of the SyncTargets of a workspace for programs. Fields are added to it, and none is removed or changed.
type Document struct {
	SyncTargets []Item `json:"syncTargets"`
}

// Item is the state of one SyncTarget; see [Row] for the fields.
type Item struct {
	Name string `json:"name"`
	// NeedsAttention is true unless all is well.
	NeedsAttention bool                   `json:"needsAttention"`
	Ready          metav1.ConditionStatus `json:"ready"`
	Reason         string                 `json:"reason,omitempty"`
	Message        string                 `json:"message,omitempty"`
	Modes          []string               `json:"modes,omitempty"`
	// Synced and Failed are numbers of objects; null before the hub has counted.
	Synced   *int32                       `json:"synced"`
	Failed   *int32                       `json:"failed"`
	Failures []edgev2alpha1.ObjectFailure `json:"failures,omitempty"`
	// PendingSeconds is for how long the oldest change has been waiting; 0 if none is.
	PendingSeconds int64  `json:"pendingSeconds"`
	Version        string `json:"version,omitempty"`
	// LastSeen is when the cluster last answered; null if it never has.
	LastSeen     *metav1.Time `json:"lastSeen"`
	Mailbox      string       `json:"mailbox,omitempty"`
	Hub          string       `json:"hub,omitempty"`
	Incompatible int          `json:"incompatible,omitempty"`
	Unauthorized string       `json:"unauthorized,omitempty"`
	BeyondLimits string       `json:"beyondLimits,omitempty"`
}

// DocumentOf returns the rows for programs, in their order.
func DocumentOf(rows []Row) Document {
	document := Document{SyncTargets: make([]Item, 0, len(rows))}
	for _, row := range rows {
		item := Item{
			Name: row.Name, NeedsAttention: !row.IsHealthy(), Ready: row.Ready, Reason: row.Reason, Message: row.Message, Modes: row.Modes,
			Synced: row.Objects, Failed: row.Failed, Failures: row.Failures, PendingSeconds: int64(row.Lag / time.Second), Version: row.Version,
			Mailbox: row.Mailbox, Hub: row.Hub, Incompatible: row.Incompatible, Unauthorized: row.Unauthorized, BeyondLimits: row.BeyondLimits,
		}
		if !row.LastSeen.IsZero() {
			item.LastSeen = &metav1.Time{Time: row.LastSeen}
		}
		document.SyncTargets = append(document.SyncTargets, item)
	}
	return document
}
