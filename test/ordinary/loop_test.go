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

package ordinary

import (
	"fmt"
	"testing"

	"github.com/onsi/gomega"
)

// editions is how many times the loop deploys and removes.
const editions = 5

// A pipeline applies an edition, waits for it, and removes it, again and again. Nothing is left, nothing is late, and each edition is as on
// a cluster.
func TestLoopOfApplyAndDelete(t *testing.T) {
	w := environment(t)
	for _, at := range w.all() {
		t.Run(at.name, func(t *testing.T) {
			t.Parallel()
			g := gomega.NewWithT(t)
			s := w.newNamespace(t, at, "loop")
			for edition := range editions {
				image := fmt.Sprintf("example.org/main:%d", edition)
				output, err := s.run(t.Context(), fmt.Sprintf("sed s#example.org/main:1#%s# web.yaml | kubectl apply --server-side -f - && kubectl rollout status deployment/web --timeout=2m", image))
				g.Expect(err).NotTo(gomega.HaveOccurred(), output)
				found, err := stateOf(t.Context(), w.client, s.namespace, false)
				g.Expect(err).NotTo(gomega.HaveOccurred())
				g.Expect(found["Deployment web"]).To(gomega.ContainSubstring(image), "the cluster has what the pipeline has waited for")
				// The pipeline has not waited for the other objects.
				g.Eventually(func() (state, error) { return stateOf(t.Context(), w.client, s.namespace, false) }).WithContext(t.Context()).Should(gomega.HaveLen(4))
				output, err = s.run(t.Context(), "kubectl delete -f web.yaml --wait")
				g.Expect(err).NotTo(gomega.HaveOccurred(), output)
			}
			g.Eventually(func() (state, error) { return stateOf(t.Context(), w.client, s.namespace, true) }).WithContext(t.Context()).Should(gomega.BeEmpty())
		})
	}
}
