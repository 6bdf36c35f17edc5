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
	"net/url"
	"slices"
	"strconv"

	"k8s.io/client-go/tools/metrics"

	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

// boundClientMetrics bounds the labels of client-go's request metric, which controller-runtime registers. Tenants
// choose hosts and targets choose response codes, and each new value would create a series that stays.
func boundClientMetrics(hosts ...string) {
	bounded := boundedResults{ResultMetric: metrics.RequestResult}
	for _, host := range hosts {
		if parsed, err := url.Parse(host); err == nil {
			bounded.hosts = append(bounded.hosts, parsed.Host)
		}
	}
	metrics.RequestResult = bounded
}

// boundedResults forwards results with a bounded set of label values.
type boundedResults struct {
	metrics.ResultMetric
	// hosts keep their own label value. All other hosts share one.
	hosts []string
}

// Increment implements [metrics.ResultMetric].
func (b boundedResults) Increment(ctx context.Context, code, method, host string) {
	if number, err := strconv.Atoi(code); err == nil {
		code = requestmetrics.CodeLabel(number)
	} else {
		code = "error"
	}
	if !slices.Contains(b.hosts, host) {
		host = requestmetrics.OtherLabel
	}
	b.ResultMetric.Increment(ctx, code, method, host)
}
