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

package absence

import (
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	clocktesting "k8s.io/utils/clock/testing"
)

const (
	here  logicalcluster.Name = "here"
	there logicalcluster.Name = "there"
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: name}
}

func missingObject(resource schema.GroupVersionResource, name string) Candidate {
	return Candidate{Resource: resource, Key: key(name), Missing: true}
}

// object returns an object as a client returns it.
func object(name string) *unstructured.Unstructured {
	made := &unstructured.Unstructured{}
	made.SetAPIVersion("v1")
	made.SetKind("ConfigMap")
	made.SetNamespace("default")
	made.SetName(name)
	return made
}

// newVerifier returns a verifier of a cache, and its clock.
func newVerifier(cache Cache) (*Verifier, *clocktesting.FakeClock) {
	now := clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
	return New(cache, Delays{}, now, logr.Discard()), now
}

// fakeCache is a cache of one mailbox, which no endpoint shows unless there is one.
type fakeCache struct {
	endpoint *MailboxEndpoint
	// names are the names of the cached objects; a resource without an entry has no cache.
	names     map[schema.GroupVersionResource][]string
	count     int
	evicted   bool
	workspace dynamic.Interface

	lock    sync.Mutex
	decided []Candidate
	// rebound counts the calls of OnRebound.
	rebound int
	lost    []Witness
}

func (c *fakeCache) EndpointOf(logicalcluster.Name) (MailboxEndpoint, bool) {
	if c.endpoint == nil {
		return MailboxEndpoint{}, false
	}
	return *c.endpoint, true
}

func (c *fakeCache) WorkspaceClient(logicalcluster.Name) (dynamic.Interface, error) {
	return c.workspace, nil
}

func (c *fakeCache) IsIncomplete(logicalcluster.Name) bool { return c.evicted }

func (c *fakeCache) Contains(resource schema.GroupVersionResource, _ logicalcluster.Name, key types.NamespacedName) (contained, known bool) {
	names, known := c.names[resource]
	return slices.Contains(names, key.Name), known
}

func (c *fakeCache) CountObjects(logicalcluster.Name) int { return c.count }

func (c *fakeCache) OnAbsenceDecided(_ logicalcluster.Name, candidate Candidate) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.decided = append(c.decided, candidate)
}

func (c *fakeCache) OnRebound(logicalcluster.Name) { c.rebound++ }
func (c *fakeCache) OnHistoryLost(_ logicalcluster.Name, _ schema.GroupVersionResource, lost Witness, _ uint64) {
	c.lost = append(c.lost, lost)
}

// takeDecided returns the candidates that were decided since the last call.
func (c *fakeCache) takeDecided() (decided []Candidate) {
	c.lock.Lock()
	defer c.lock.Unlock()
	decided, c.decided = c.decided, nil
	return decided
}
