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

package leadership

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/workqueue"
)

func TestLeads(t *testing.T) {
	g := NewWithT(t)
	elected := make(chan struct{})
	g.Expect(Elected(nil).Leads()).To(BeTrue())
	g.Expect(Elected(elected).Leads()).To(BeFalse())
	close(elected)
	g.Expect(Elected(elected).Leads()).To(BeTrue())
}

func TestSource(t *testing.T) {
	g := NewWithT(t)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	defer queue.ShutDown()
	elected := make(chan struct{})
	g.Expect(Source(elected, func(queue workqueue.TypedRateLimitingInterface[string]) { queue.Add("all") }).Start(t.Context(), queue)).To(Succeed())
	g.Expect(queue.Len()).To(BeZero())
	close(elected)
	g.Eventually(queue.Len).WithTimeout(time.Minute).Should(Equal(1))
	// A replica that always leads reconciles at its start anyway.
	g.Expect(Source(nil, func(workqueue.TypedRateLimitingInterface[string]) { t.Error("called") }).Start(t.Context(), queue)).To(Succeed())
}
