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

package kcp

import (
	"net"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/tools/clientcmd/api"
)

// The transport hides a refused connection from client-go only for watches with initial events. client-go resumes other
// watches where they ended.
func TestRefusedWatches(t *testing.T) {
	g := NewWithT(t)
	closed, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(closed.Close()).To(Succeed())
	access, err := LoadContent(kubeconfig(t, "https://"+closed.Addr().String(), nil, api.AuthInfo{Token: "token"}), limits)
	g.Expect(err).NotTo(HaveOccurred())
	client := http.Client{Transport: access.WorkspaceConfig("root").Transport}
	for query, isHidden := range map[string]bool{
		"watch=true&sendInitialEvents=true":  true,
		"watch=true&sendInitialEvents=false": false,
		"watch=true":                         false,
		"":                                   false,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+closed.Addr().String()+"/api/v1/configmaps?"+query, nil)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = client.Do(request) //nolint:bodyclose // there is no response
		g.Expect(err).To(MatchError(ContainSubstring("the server's port refuses connections")), query)
		g.Expect(utilnet.IsConnectionRefused(err)).NotTo(Equal(isHidden), query)
	}
}
