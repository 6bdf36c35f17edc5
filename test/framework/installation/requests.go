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

package installation

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Request is a kind of request, as the hub counts it; see provider/metrics/requestmetrics.
type Request struct{ Destination, Class, Verb, Resource, Code string }

// String leaves out how it was answered.
func (r Request) String() string {
	return r.Destination + " " + r.Class + " " + r.Verb + " " + r.Resource
}

var requestSample = regexp.MustCompile(`^synchub_requests_total\{class="(\w+)", code="(\w+)", destination="(\w+)", resource="([^"]*)", verb="([^"]*)"\}$`)

// RequestsIn returns how many requests of each kind there are among a replica's samples.
func RequestsIn(samples map[string]float64) map[Request]float64 {
	requests := map[Request]float64{}
	for sample, count := range samples {
		if match := requestSample.FindStringSubmatch(sample); match != nil {
			requests[Request{Class: match[1], Code: match[2], Destination: match[3], Resource: match[4], Verb: match[5]}] = count
		}
	}
	return requests
}

// Requests returns how many requests of each kind the replica has made.
func (h *Hub) Requests(ctx context.Context) (map[Request]float64, error) {
	samples, err := h.Metrics(ctx)
	return RequestsIn(samples), err
}

// Caused returns how many requests of each kind there were that something must have caused. Those for the resources that
// are left out do not count.
func Caused(requests map[Request]float64, leftOut ...string) map[string]float64 {
	counts := map[string]float64{}
	for kind, count := range requests {
		if kind.Class != "background" && !slices.Contains(leftOut, kind.Resource) {
			counts[kind.String()] += count
		}
	}
	return counts
}

// WaitIdle returns when the replica has for so long made no request that something must have caused, see [Caused].
func (h *Hub) WaitIdle(ctx context.Context, idlePeriod time.Duration, excluded ...string) error {
	var last map[string]float64
	var since time.Time
	err := wait.PollUntilContextCancel(ctx, idlePeriod/4, true, func(ctx context.Context) (bool, error) {
		requests, err := h.Requests(ctx)
		if now := Caused(requests, excluded...); !maps.Equal(now, last) || last == nil {
			last, since = now, time.Now()
		}
		return time.Since(since) >= idlePeriod, err
	})
	if err != nil {
		return fmt.Errorf("wait until the hub is at rest: %w", err)
	}
	return nil
}
