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
	"context"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// server is a fake API server with a list and a watch. It does not support streaming lists.
type server struct {
	lock    sync.Mutex
	lists   []*metav1.PartialObjectMetadataList
	watches []*watch.FakeWatcher
}

func (s *server) list(context.Context, metav1.ListOptions) (runtime.Object, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	next := s.lists[0]
	if len(s.lists) > 1 {
		s.lists = s.lists[1:]
	}
	return next.DeepCopy(), nil
}

func (s *server) watch(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if options.SendInitialEvents != nil {
		return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "", nil)
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	s.watches = append(s.watches, watch.NewFake())
	return s.watches[len(s.watches)-1], nil
}

func (s *server) watched() []*watch.FakeWatcher {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.watches
}

// An object that is deleted between two watches leaves the cache with the next list, and no longer counts.
func TestObjectsMissingInALaterListAreDeleted(t *testing.T) {
	g := NewWithT(t)
	named := func(name string) metav1.PartialObjectMetadata {
		secret := SecretMetadata()
		secret.Namespace, secret.Name, secret.ResourceVersion = "default", name, "1"
		secret.Annotations = map[string]string{"kcp.io/cluster": "abc"}
		return *secret
	}
	shard := &server{lists: []*metav1.PartialObjectMetadataList{
		{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []metav1.PartialObjectMetadata{named("kept"), named("deleted")}},
		{ListMeta: metav1.ListMeta{ResourceVersion: "2"}, Items: []metav1.PartialObjectMetadata{named("kept")}},
	}}
	cache := &endpointCache{sizes: newSizes()}
	informer := cache.newInformer(&toolscache.ListWatch{ListWithContextFunc: shard.list, WatchFuncWithContext: shard.watch}, SecretMetadata(), 0,
		toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	eventually := func(actual any) AsyncAssertion { return g.Eventually(actual).WithTimeout(time.Minute) }
	eventually(cache.sizes[secrets].Objects).Should(BeEquivalentTo(2))
	eventually(shard.watched).Should(HaveLen(1))

	shard.watched()[0].Error(&metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Code: 410})
	eventually(cache.sizes[secrets].Objects).Should(BeEquivalentTo(1))
	g.Expect(informer.GetIndexer().List()).To(HaveExactElements(HaveField("Name", "kept")))
}
