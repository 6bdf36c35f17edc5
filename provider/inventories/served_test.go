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

package inventories

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
)

// kcp names an endpoint before it serves the endpoint.
func TestEndpointIsUsedOnceItAnswers(t *testing.T) {
	g := NewWithT(t)
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) < 3 {
			answer.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	p := &Provider{
		ctx: t.Context(), log: logr.Discard(), endpointConfig: func(url string) *rest.Config { return &rest.Config{Host: url} },
		// A real cache is started by TestAgainstKCP.
		caches: map[string]*endpointCache{server.URL: {}},
	}
	slice := &apisv1alpha1.APIExportEndpointSlice{Status: apisv1alpha1.APIExportEndpointSliceStatus{APIExportEndpoints: []apisv1alpha1.APIExportEndpoint{{URL: server.URL}}}}
	for range 2 {
		g.Expect(p.servedURLs(slice)).To(Equal([]string{server.URL}))
		g.Expect(requests.Load()).To(Equal(int32(3)), "no request after the first answer")
	}
}
