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

package alarm

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// Alarm wakes one sleeping goroutine. Create it with [New].
type Alarm struct {
	clock clock.Clock
	rung  chan struct{}
}

// New returns an alarm that measures time with the clock.
func New(clock clock.Clock) *Alarm { return &Alarm{clock: clock, rung: make(chan struct{}, 1)} }

// Ring ends the present call of Sleep, or else the next one. It never blocks.
func (a *Alarm) Ring() {
	select {
	case a.rung <- struct{}{}:
	default:
	}
}

// Sleep returns after Ring, after limit, or when ctx ends. A limit of zero is no limit.
func (a *Alarm) Sleep(ctx context.Context, limit time.Duration) {
	var expired <-chan time.Time
	if limit > 0 {
		timer := a.clock.NewTimer(limit)
		defer timer.Stop()
		expired = timer.C()
	}
	select {
	case <-ctx.Done():
	case <-a.rung:
	case <-expired:
	}
}
