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
)

// Document is the state of the SyncTargets of a workspace for programs. Fields are added to it, and none is removed or changed.
type Document struct {
	SyncTargets []Item `json:"syncTargets"`
}

// Item is the state of one SyncTarget.
type Item struct {
	Row `json:",inline"`
	// NeedsAttention is true unless the SyncTarget is healthy.
	NeedsAttention bool `json:"needsAttention"`
	// PendingSeconds is the age of the oldest pending change. It is 0 if no change is pending.
	PendingSeconds int64 `json:"pendingSeconds"`
	// LastSeen is the time of the cluster's last answer, or null.
	LastSeen *metav1.Time `json:"lastSeen"`
}

// DocumentOf returns the rows for programs, in their order.
func DocumentOf(rows []Row) Document {
	document := Document{SyncTargets: make([]Item, 0, len(rows))}
	for _, row := range rows {
		item := Item{Row: row, NeedsAttention: !row.IsHealthy(), PendingSeconds: int64(row.Lag / time.Second)}
		if !row.LastSeen.IsZero() {
			item.LastSeen = &metav1.Time{Time: row.LastSeen}
		}
		document.SyncTargets = append(document.SyncTargets, item)
	}
	return document
}
