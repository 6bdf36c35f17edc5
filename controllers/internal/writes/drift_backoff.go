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

package writes

import "time"

const (
	// Within a window of ten minutes, the first immediateRepairs repairs are immediate, and each later one waits twice as
	// long as the previous.
	repairWindow     = 10 * time.Minute
	immediateRepairs = 2
	minRepairWait    = 15 * time.Second
	maxRepairWait    = 5 * time.Minute
)

// DriftBackoff is the recent drift of one object; call [DriftBackoff.Next] for each observed drift. The zero value is an object
// that never drifted. It is not safe for concurrent use.
type DriftBackoff struct {
	// repairs are the times of the repairs within the window, the oldest first.
	repairs []time.Time
	// wait is how long the last repair had to wait; zero if repairs are immediate.
	wait time.Duration
	// due is when the next repair is allowed; zero if there was no drift since the last one.
	due time.Time
}

// Next returns how long to wait before the repair of a drift that is observed now. Zero means to repair now, and counts the
// repair. Calls during a wait do not extend it.
func (r *DriftBackoff) Next(now time.Time) time.Duration {
	for len(r.repairs) > 0 && now.Sub(r.repairs[0]) > repairWindow {
		r.repairs = r.repairs[1:]
	}
	if len(r.repairs) == 0 {
		*r = DriftBackoff{}
	}
	if r.wait == 0 && len(r.repairs) < immediateRepairs {
		r.repairs = append(r.repairs, now)
		return 0
	}
	if r.due.IsZero() {
		r.wait = min(max(2*r.wait, minRepairWait), maxRepairWait)
		r.due = now.Add(r.wait)
	}
	if now.Before(r.due) {
		return r.due.Sub(now)
	}
	r.repairs, r.due = append(r.repairs, now), time.Time{}
	return 0
}

// Refund takes back the repair that [DriftBackoff.Next] counted last, because it could not be made.
func (r *DriftBackoff) Refund() {
	if len(r.repairs) > 0 {
		r.repairs = r.repairs[:len(r.repairs)-1]
	}
}
