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
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/check"
	"github.com/synchub-dev/synchub/provider/wording"
)

// useFakeKCP makes a workspace current that reports its version, and answers all other requests with a code.
func useFakeKCP(t *testing.T, code int) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		writer.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(request.URL.Path, "/version") {
			_, _ = writer.Write([]byte(`{"gitVersion": "v1.33.3+kcp-v0.31.2"}`))
			return
		}
		writer.WriteHeader(code)
		_ = json.NewEncoder(writer).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), //nolint:gosec // a code of HTTP
			Reason: map[int]metav1.StatusReason{http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusNotFound: metav1.StatusReasonNotFound}[code],
		})
	}))
	t.Cleanup(server.Close)
	useServer(t, server.URL+"/clusters/root:shop")
}

// Scripts go by the exit code of check: a problem fails it, in each format, and what could not be looked at does not.
func TestExitCodeOfCheck(t *testing.T) {
	for name, test := range map[string]struct {
		code     int
		problems int
	}{
		"all else is refused":   {http.StatusForbidden, 0},
		"nothing else is there": {http.StatusNotFound, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			useFakeKCP(t, test.code)
			for _, format := range []string{"", "json", "yaml"} {
				args := []string{"check"}
				if format != "" {
					args = append(args, "-o", format)
				}
				got := plugin(t, args...)
				g.Expect(got.err != nil).To(Equal(test.problems > 0), "%s\n%s%s", format, got.out, got.errs)
				if test.problems > 0 {
					g.Expect(got.errs).To(Equal("error: " + wording.Count(test.problems, "problem", "problems") + " found\n"))
				}
				g.Expect(got.out).To(ContainSubstring("v0.31.2"), "the findings are printed in any case")
				if format == "json" {
					var report check.Report
					g.Expect(json.Unmarshal([]byte(got.out), &report)).To(Succeed())
					g.Expect(report.Problems()).To(Equal(test.problems))
				}
			}
		})
	}
}

func TestCheckOfAServerThatDoesNotAnswer(t *testing.T) {
	g := NewWithT(t)
	withCluster(t, http.NotFound)
	got := plugin(t, "check")
	g.Expect(got.err).To(HaveOccurred())
	g.Expect(got.out).To(And(ContainSubstring("PROBLEM"), ContainSubstring("does not answer")))
	g.Expect(plugin(t, "check", "--provider-workspace", "no path").errs).To(ContainSubstring("--provider-workspace: "))
}
