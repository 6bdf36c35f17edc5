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

// shardsOf holds one SyncTarget.
type shardsOf struct {
	held  types.UID
	fence *fence.Fence
}

func (p shardsOf) Owns(syncTarget types.UID) bool { return syncTarget == p.held }
func (p shardsOf) Fence(types.UID) *fence.Fence   { return p.fence }

func TestScope(t *testing.T) {
	g := NewWithT(t)
	elected := make(chan struct{})
	leader := fence.New(clock.RealClock{})
	unsharded := Role{Elected: elected}
	g.Expect(unsharded.Owns("a")).To(BeFalse())
	g.Expect(unsharded.IsSharded()).To(BeFalse())
	close(elected)
	g.Expect(unsharded.Owns("a")).To(BeTrue())
	g.Expect(unsharded.Context(t.Context(), "a")).To(BeIdenticalTo(t.Context()))
	g.Expect(unsharded.Fence("a", leader)).To(BeIdenticalTo(leader))
	g.Expect(Role{}.Owns("a")).To(BeTrue(), "there is no other replica")

	own := fence.New(clock.RealClock{})
	sharded := Role{Elected: make(chan struct{}), Shards: shardsOf{"a", own}}
	g.Expect(sharded.IsSharded()).To(BeTrue())
	g.Expect(sharded.Owns("a")).To(BeTrue(), "who does not lead holds too")
	g.Expect(sharded.Owns("b")).To(BeFalse())
	g.Expect(sharded.Leads()).To(BeFalse())
	g.Expect(sharded.Fence("a", leader)).To(BeIdenticalTo(own))
}
