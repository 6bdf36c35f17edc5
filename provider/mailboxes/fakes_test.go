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

package mailboxes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	kcpcache "github.com/kcp-dev/apimachinery/v2/pkg/cache"
	kcpclient "github.com/kcp-dev/apimachinery/v2/pkg/client"
	kcpinformers "github.com/kcp-dev/apimachinery/v2/third_party/informers"
	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/synchub-dev/synchub/provider/fastjson"
	"github.com/synchub-dev/synchub/provider/mailboxes/absence"
)

const (
	here  logicalcluster.Name = "here"
	there logicalcluster.Name = "there"
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

// newMailboxes returns mailboxes without endpoints, which are not running.
func newMailboxes(resources ...schema.GroupVersionResource) *Mailboxes {
	return New(Options{
		Workspace: "root:synchub", Export: "mailbox.example.org", Resources: resources,
		Clock: clocktesting.NewFakeClock(time.Unix(1_000_000, 0)), Log: funcr.New(func(string, string) {}, funcr.Options{}),
	})
}

func missingObject(resource schema.GroupVersionResource, name string) absence.Candidate {
	return absence.Candidate{Resource: resource, Key: key(name), Missing: true}
}

// callRecorder replaces the verifier of absences, and records the calls of the caches.
type callRecorder struct {
	absenceVerifier
	lock  sync.Mutex
	calls []string
}

// recordAbsenceCalls returns a recorder of the calls from now on.
func recordAbsenceCalls(mailboxes *Mailboxes) *callRecorder {
	recorder := &callRecorder{absenceVerifier: mailboxes.absence}
	mailboxes.absence = recorder
	return recorder
}

func (r *callRecorder) record(words ...any) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.calls = append(r.calls, strings.TrimSuffix(fmt.Sprintln(words...), "\n"))
}

// take returns the calls since the last time.
func (r *callRecorder) take() (calls []string) {
	r.lock.Lock()
	defer r.lock.Unlock()
	calls, r.calls = r.calls, nil
	return calls
}

func (r *callRecorder) Verify(_ context.Context, mailbox logicalcluster.Name, candidate absence.Candidate) {
	r.record("verify", mailbox, candidate.Resource.Resource, candidate.Key.Name)
}

func (r *callRecorder) ObserveBinding(mailbox logicalcluster.Name, version string) {
	r.record("binding", mailbox, version)
}

func (r *callRecorder) Clear(mailbox logicalcluster.Name, candidate absence.Candidate) {
	r.record("clear", mailbox, candidate.Resource.Resource, candidate.Key.Name)
}

func (r *callRecorder) RequireRelist(mailbox logicalcluster.Name, resource schema.GroupVersionResource) {
	r.record("relist", mailbox, resource.Resource)
}

func (r *callRecorder) ForgetMailbox(mailbox logicalcluster.Name) { r.record("forget", mailbox) }

func (r *callRecorder) ForgetResource(resource schema.GroupVersionResource) {
	r.record("forget", resource.Resource)
}

// object returns an object as the virtual workspace shows it.
func object(mailbox logicalcluster.Name, name string) *unstructured.Unstructured {
	made := &unstructured.Unstructured{}
	made.SetAPIVersion("v1")
	made.SetKind("ConfigMap")
	made.SetNamespace("default")
	made.SetName(name)
	made.SetResourceVersion("1")
	made.SetAnnotations(map[string]string{logicalcluster.AnnotationKey: mailbox.String()})
	return made
}

// objects returns so many objects.
func objects(mailbox logicalcluster.Name, count int) (all []*unstructured.Unstructured) {
	for number := range count {
		all = append(all, object(mailbox, fmt.Sprintf("object-%d", number)))
	}
	return all
}

// bindings returns a binding for each mailbox.
func bindings(mailboxes ...logicalcluster.Name) (all []*unstructured.Unstructured) {
	for _, mailbox := range mailboxes {
		binding := object(mailbox, "bound")
		binding.SetNamespace("")
		all = append(all, binding)
	}
	return all
}

// addEndpoint gives the mailboxes an endpoint whose caches hold the objects.
func addEndpoint(t testing.TB, mailboxes *Mailboxes, url string, caches map[schema.GroupVersionResource][]*unstructured.Unstructured) *endpoint {
	t.Helper()
	added := &endpoint{owner: mailboxes, url: url, log: mailboxes.log, clients: noClients(), schemas: newSchemaTracker(), informers: map[schema.GroupVersionResource]*wildcardInformer{}}
	for resource, held := range caches {
		added.informers[resource] = &wildcardInformer{endpoint: added, resource: resource, shared: filled(t, held), log: added.log, cancel: func() {}}
	}
	mailboxes.lock.Lock()
	defer mailboxes.lock.Unlock()
	mailboxes.endpoints[url] = added
	return added
}

// noClients returns clients that reach no server.
func noClients() kcpclient.Cache[dynamic.Interface] {
	return kcpclient.NewCache(&rest.Config{Host: "https://127.0.0.1:1"}, http.DefaultClient, &kcpclient.Constructor[dynamic.Interface]{NewForConfigAndClient: fastjson.NewDynamicClient})
}

// filled returns the cache of an informer that found the objects.
func filled(t testing.TB, held []*unstructured.Unstructured) kcpcache.ScopeableSharedIndexInformer {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetResourceVersion("1")
	for _, object := range held {
		list.Items = append(list.Items, *object)
	}
	informer := kcpinformers.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) { return list, nil },
		WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if options.SendInitialEvents != nil {
				return nil, errors.New("this watch does not list")
			}
			return watch.NewFake(), nil
		},
	}, &unstructured.Unstructured{}, 0, cache.Indexers{kcpcache.ClusterIndexName: kcpcache.ClusterIndexFunc})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("the cache is not filled")
	}
	return informer
}

// recorder is a subscriber that records its calls.
type recorder struct {
	lock    sync.Mutex
	events  []Event
	decided []types.NamespacedName
	resets  int
}

func (r *recorder) OnEvent(event Event) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.events = append(r.events, event)
}

func (r *recorder) OnAbsenceDecided(key types.NamespacedName) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.decided = append(r.decided, key)
}

func (r *recorder) OnReset() {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.resets++
}

// received returns the calls since the last time.
func (r *recorder) received() (events []Event, proven []types.NamespacedName, resets int) {
	r.lock.Lock()
	defer r.lock.Unlock()
	events, proven, resets = r.events, r.decided, r.resets
	r.events, r.decided, r.resets = nil, nil, 0
	return events, proven, resets
}
