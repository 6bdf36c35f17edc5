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

package framework_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/synchub-dev/synchub/test/framework"
)

const exposition = `# TYPE requests_total counter
requests_total{verb="GET",code="200"} 12
requests_total{verb="PUT",code="409"} 1
# TYPE up gauge
up 1
# TYPE latency_seconds histogram
latency_seconds_bucket{le="0.1"} 3
latency_seconds_bucket{le="+Inf"} 4
latency_seconds_sum 1.5
latency_seconds_count 4
`

func TestScrape(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, exposition)
	}))
	defer server.Close()

	g.Expect(framework.Scrape(t.Context(), server.URL+"/metrics")).To(Equal(map[string]float64{
		`requests_total{code="200", verb="GET"}`: 12,
		`requests_total{code="409", verb="PUT"}`: 1,
		`up`:                                     1,
		`latency_seconds_bucket{le="0.1"}`:       3,
		`latency_seconds_bucket{le="+Inf"}`:      4,
		`latency_seconds_sum`:                    1.5,
		`latency_seconds_count`:                  4,
	}))
	_, err := framework.Scrape(t.Context(), server.URL+"/nothing")
	g.Expect(err).To(MatchError(ContainSubstring("404")))
}
