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
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// The hub creates by apply only after the target has refused to overwrite an object and has created an absent one.
func TestProbeCreateByApply(t *testing.T) {
	conflict := status(http.StatusConflict, metav1.StatusReasonConflict)
	forbidden := status(http.StatusForbidden, metav1.StatusReasonForbidden)
	for name, tt := range map[string]struct {
		present, absent  answer
		answers, byApply bool
	}{
		"create by apply":                {conflict, created(), true, true},
		"overwrites":                     {created(), created(), true, false},
		"does not create":                {conflict, conflict, true, false},
		"forbidden":                      {forbidden, forbidden, true, false},
		"forbids namespaces":             {conflict, forbidden, true, false},
		"no server-side apply":           {status(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType), created(), true, false},
		"broken webhook":                 {conflict, status(http.StatusInternalServerError, metav1.StatusReasonInternalError), true, false},
		"lost before the first answer":   {answer{}, answer{}, false, false},
		"lost after the first answer":    {conflict, answer{}, false, false},
		"not ready":                      {status(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable), created(), false, false},
		"not ready after one answer":     {conflict, status(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable), false, false},
		"too many requests":              {conflict, status(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests), false, false},
		"store timeout":                  {status(http.StatusGatewayTimeout, metav1.StatusReasonTimeout), created(), false, false},
		"store timeout after one answer": {conflict, status(http.StatusInternalServerError, metav1.StatusReasonServerTimeout), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			target := newScriptedServer(t)
			target.set(&target.present, tt.present)
			target.set(&target.absent, tt.absent)
			connection, err := newRegistry(t.Context(), t, clock.RealClock{}).Connect(syncTarget, kubeconfigFor(t, target.Server), kcp.Limits{})
			g.Expect(err).NotTo(HaveOccurred())
			byApply, err := connection.Objects.supportsCreateByApply()
			g.Expect(byApply).To(Equal(tt.byApply))
			if tt.answers {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(HaveOccurred())

			// The target is probed again.
			target.set(&target.present, conflict)
			target.set(&target.absent, created())
			g.Expect(connection.Objects.supportsCreateByApply()).To(BeTrue())
		})
	}
}

// Each time the target comes up, one probe before the first create serves all callers.
func TestCreateByApplyIsProbedOnce(t *testing.T) {
	g := NewWithT(t)
	target := newScriptedServer(t)
	connection, err := newRegistry(t.Context(), t, clock.RealClock{}).Connect(syncTarget, kubeconfigFor(t, target.Server), kcp.Limits{})
	g.Expect(err).NotTo(HaveOccurred())
	suite.Eventually(t, func(g Gomega) { g.Expect(connection.Health.IsUp()).To(BeTrue()) })
	g.Expect(target.identityRequests.Load()).To(BeZero())
	for reconnect := range int64(2) {
		var callers sync.WaitGroup
		for range 10 {
			callers.Go(func() {
				if byApply, err := connection.Objects.supportsCreateByApply(); err != nil || !byApply {
					t.Errorf("it creates by apply: %v, %v", byApply, err)
				}
			})
		}
		callers.Wait()
		g.Expect(target.identityRequests.Load()).To(Equal(reconnect + 1))
		connection.Health.set(Health{Reason: ReasonUnreachable})
		connection.Health.set(Health{Up: true, Reason: ReasonConnected})
	}
	g.Expect(connection.Objects.supportsCreateByApply()).To(BeTrue())
	g.Expect(target.identityRequests.Load()).To(BeEquivalentTo(3))
}

// The creation by apply depends on this behaviour of the API server's store.
func TestAPIServerCreatesByApply(t *testing.T) {
	g := NewWithT(t)
	target := steady(t)
	connection := connect(t, target)
	g.Expect(connection.Objects.supportsCreateByApply()).To(BeTrue())
	g.Expect(connection.Health.Get().Version).To(HavePrefix("v1."))
	found, err := framework.List(t.Context(), target.Config, namespacesResource, "", "")
	g.Expect(err).NotTo(HaveOccurred())
	for _, namespace := range found {
		g.Expect(namespace.GetName()).NotTo(HavePrefix("synchub-probe-"), "the probe must not leave objects")
	}
}
