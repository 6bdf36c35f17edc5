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

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/provider/fence"
)

// partitionsOf holds one SyncTarget.
type partitionsOf struct {
	held  types.UID
	fence *fence.Fence
}

func (p partitionsOf) Holds(syncTarget types.UID) bool { return syncTarget == p.held }
func (p partitionsOf) Fence(types.UID) *fence.Fence    { return p.fence }

func TestScope(t *testing.T) {
	g := NewWithT(t)
	elected := make(chan struct{})
	leader := fence.New(clock.RealClock{})
	undivided := Role{Elected: elected}
	g.Expect(undivided.Holds("a")).To(BeFalse())
	g.Expect(undivided.IsDivided()).To(BeFalse())
	close(elected)
	g.Expect(undivided.Holds("a")).To(BeTrue())
	g.Expect(undivided.Context(t.Context(), "a")).To(BeIdenticalTo(t.Context()))
	g.Expect(undivided.Fence("a", leader)).To(BeIdenticalTo(leader))
	g.Expect(Role{}.Holds("a")).To(BeTrue(), "there is no other replica")

	own := fence.New(clock.RealClock{})
	divided := Role{Elected: make(chan struct{}), Partitions: partitionsOf{"a", own}}
	g.Expect(divided.IsDivided()).To(BeTrue())
	g.Expect(divided.Holds("a")).To(BeTrue(), "who does not lead holds too")
	g.Expect(divided.Holds("b")).To(BeFalse())
	g.Expect(divided.Leads()).To(BeFalse())
	g.Expect(divided.Fence("a", leader)).To(BeIdenticalTo(own))
}
