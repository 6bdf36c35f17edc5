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

package replicas

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// renewals records when this replica observed that the Leases of all replicas were renewed. The registry compares the time in a
// Lease with the clock of its machine, as if all clocks were equal. A replica whose clock is ahead would seem to be alive long
// after its end, and one whose clock is behind would seem to have ended.
type renewals struct {
	// listedAt is when the Leases were listed last; zero before.
	listedAt time.Time
	// byName has the Leases of that list.
	byName map[string]renewal
}

// renewal is when a Lease was renewed: the time that its holder wrote, and the time when this replica observed it.
type renewal struct{ written, seen time.Time }

// correct replaces the renew times of Leases that were just listed by the times when this replica observed the renewals,
// which is the time of the list before. For a Lease that this replica has not observed before, it keeps the holder's time,
// unless that is in the future.
func (s *renewals) correct(leases []coordinationv1.Lease, now time.Time) {
	byName := make(map[string]renewal, len(leases))
	for i := range leases {
		renewed := leases[i].Spec.RenewTime
		if renewed == nil {
			continue
		}
		last, known := s.byName[leases[i].Name]
		if !known || !last.written.Equal(renewed.Time) {
			last = renewal{written: renewed.Time, seen: renewed.Time}
			if known && last.seen.Before(s.listedAt) {
				last.seen = s.listedAt
			}
			if last.seen.After(now) {
				last.seen = now
			}
		}
		byName[leases[i].Name] = last
		leases[i].Spec.RenewTime = &metav1.MicroTime{Time: last.seen}
	}
	s.listedAt, s.byName = now, byName
}
