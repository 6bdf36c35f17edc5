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

package targets

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// A connection measures the difference of the target's clock, and ignores a few seconds and invalid dates.
func TestClockSkew(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		date string
		want time.Duration
	}{
		"the same":      {noon.Format(http.TimeFormat), 0},
		"some seconds":  {noon.Add(59 * time.Second).Format(http.TimeFormat), 0},
		"an hour ahead": {noon.Add(time.Hour).Format(http.TimeFormat), time.Hour},
		"a day behind":  {noon.Add(-24 * time.Hour).Format(http.TimeFormat), -24 * time.Hour},
		"no date":       {"tomorrow", 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			server := suite.ServeTLS(t, http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
				writer.Header().Set("Content-Type", "application/json")
				writer.Header().Set("Date", test.date)
				if request.URL.Path != "/version" {
					// Only the answers to probes count.
					writer.Header().Set("Date", noon.Add(time.Minute*7).Format(http.TimeFormat))
					_, _ = writer.Write([]byte(`{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"uid": "one"}}`))
					return
				}
				_, _ = writer.Write([]byte(`{"gitVersion": "v1.2.3"}`))
			}))
			connection, err := newRegistry(t.Context(), t, clocktesting.NewFakeClock(noon)).Connect(syncTarget, kubeconfigFor(t, server), kcp.Limits{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(connection.Health.WaitUntilUp(t.Context())).To(Succeed())
			g.Expect(connection.Health.ClockSkew()).To(Equal(test.want))
		})
	}
}
