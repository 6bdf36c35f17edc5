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
	"fmt"
	"testing"
)

// series records the series that client-go would create.
type series map[string]bool

func (s series) Increment(_ context.Context, code, method, host string) { s[code+method+host] = true }

func TestClientMetricsHaveFewSeries(t *testing.T) {
	made := series{}
	bounded := boundedResults{ResultMetric: made, hosts: []string{"kcp.example.org"}}
	for i := range 1000 {
		bounded.Increment(t.Context(), fmt.Sprint(i), "GET", fmt.Sprintf("cluster-%d.example.org", i))
	}
	if len(made) > 30 {
		t.Errorf("a thousand hosts and codes made %d series", len(made))
	}
	bounded.Increment(t.Context(), "200", "GET", "kcp.example.org")
	if !made["200GETkcp.example.org"] {
		t.Error("kcp has no series of its own")
	}
}
