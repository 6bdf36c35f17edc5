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

package synctarget

import (
	"context"
	"errors"
	"fmt"
	"iter"
	gosync "sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/test/framework/configmaps"
)

// prefetchFixture is a controller after a start, in a workspace with SyncTargets that each have a Secret of their name.
type prefetchFixture struct {
	*Controller
	fakeCluster
	clock   *testclock.FakeClock
	secrets map[types.NamespacedName]*corev1.Secret
	// listed are the Secrets in the order of the list, which ends with failure.
	listed      []*corev1.Secret
	failure     error
	lists       atomic.Int32
	reads, read atomic.Int32
}

// Get implements [client.Client]. It returns the Secret as the cache shows it.
func (f *prefetchFixture) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	secret := f.secrets[key]
	if secret == nil {
		return notFound(key)
	}
	secret.ObjectMeta.DeepCopyInto(&object.(*metav1.PartialObjectMetadata).ObjectMeta)
	return nil
}

func (f *prefetchFixture) GetClient() client.Client { return f }

func newPrefetchFixture(t *testing.T, count int) *prefetchFixture {
	f := &prefetchFixture{secrets: map[types.NamespacedName]*corev1.Secret{}}
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	f.clock = clock
	f.Controller = New(Options{
		Registry: startRegistry(t), Sync: newSyncManager(), Clock: clock,
		Ledger: ledger.New(ledger.Options{ConfigMaps: configmaps.New(), Clock: clock, Log: logr.Discard()}),
	})
	for i := range count {
		f.add(t, fmt.Sprint("target-", i))
	}
	f.prefetch.list = func(context.Context, cluster.Cluster) iter.Seq2[*corev1.Secret, error] {
		f.lists.Add(1)
		return func(yield func(*corev1.Secret, error) bool) {
			for _, secret := range f.listed {
				f.read.Add(1)
				if !yield(secret, nil) {
					return
				}
			}
			if f.failure != nil {
				yield(nil, f.failure)
			}
		}
	}
	f.readSecret = func(_ context.Context, _ cluster.Cluster, key types.NamespacedName) (*corev1.Secret, error) {
		f.reads.Add(1)
		return f.secrets[key], nil
	}
	return f
}

// add adds a SyncTarget that the ledger knows, and its Secret.
func (f *prefetchFixture) add(t *testing.T, name string) {
	t.Helper()
	uid := types.UID(name)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "secret-" + uid, ResourceVersion: "1"},
		Data:       map[string][]byte{"kubeconfig": []byte(name), "other": []byte("other")},
	}
	f.secrets[client.ObjectKeyFromObject(secret)] = secret
	f.listed = append(f.listed, secret)
	syncTarget := edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid, Annotations: map[string]string{"kcp.io/cluster": "one"}}}
	syncTarget.Spec.KubeconfigSecretRef = &edgev2alpha1.SecretReference{Namespace: "default", Name: name, Key: "kubeconfig"}
	f.syncTargets = append(f.syncTargets, syncTarget)
	if err := f.Ledger.Update(t.Context(), uid, func(entry *ledger.Entry) { entry.Mailbox = "mailbox" }); err != nil {
		t.Fatal(err)
	}
}

// readAll reads the Secrets of all SyncTargets at once, as reconciles do, and checks the results.
func (f *prefetchFixture) readAll(t *testing.T) {
	t.Helper()
	var group gosync.WaitGroup
	for i := range f.syncTargets {
		syncTarget := &f.syncTargets[i]
		f.track(mcreconcile.Request{ClusterName: "one", Request: reconcile.Request{NamespacedName: types.NamespacedName{Name: syncTarget.Name}}}, syncTarget.UID)
		group.Go(func() {
			secret, err := f.getSecret(t.Context(), f, syncTarget, secretReferenceOf(syncTarget), f.store.stateOf(syncTarget.UID))
			key := types.NamespacedName{Namespace: "default", Name: syncTarget.Name}
			if err != nil || secret.ResourceVersion != f.secrets[key].ResourceVersion || string(secret.Data["kubeconfig"]) != syncTarget.Name || len(secret.Data) != 1 {
				t.Errorf("%s: got %v, %v", syncTarget.Name, secret, err)
			}
		})
	}
	group.Wait()
}

func (f *prefetchFixture) expect(t *testing.T, lists, reads int32) {
	t.Helper()
	if f.lists.Load() != lists || f.reads.Load() != reads {
		t.Errorf("the hub made %d lists and %d reads, want %d and %d", f.lists.Load(), f.reads.Load(), lists, reads)
	}
}

func TestSecretsAreReadInOneListAfterAStart(t *testing.T) {
	f := newPrefetchFixture(t, 3*minPrefetch)
	f.readAll(t)
	f.expect(t, 1, 0)
	f.readAll(t)
	f.expect(t, 1, 0)
	// The Secret of a later SyncTarget is read alone, even when the list has been dropped.
	f.add(t, "later")
	f.readAll(t)
	f.clock.Step(2 * prefetchLifetime)
	f.add(t, "much-later")
	f.readAll(t)
	f.expect(t, 1, 2)
}

// A Secret with another version than the cached one does not count, and neither does a key that no SyncTarget
// needs.
func TestOnlyTheVersionThatTheCacheShowsIsTakenFromAList(t *testing.T) {
	f := newPrefetchFixture(t, minPrefetch)
	older := f.listed[0].DeepCopy()
	older.ResourceVersion = "0"
	recreated := f.listed[1].DeepCopy()
	recreated.UID = "former"
	f.listed[0], f.listed[1] = older, recreated
	f.readAll(t)
	f.expect(t, 1, 2)
}

func TestFewSecretsAreReadOneByOne(t *testing.T) {
	f := newPrefetchFixture(t, minPrefetch-1)
	f.readAll(t)
	f.expect(t, 0, minPrefetch-1)
}

// New SyncTargets of a user, in any number, cause no list: each causes the requests that it is allowed.
func TestUnknownSyncTargetsCauseNoList(t *testing.T) {
	f := newPrefetchFixture(t, minPrefetch)
	for i := range f.syncTargets[1:] {
		syncTarget := &f.syncTargets[i]
		if err := f.Ledger.Update(t.Context(), syncTarget.UID, func(entry *ledger.Entry) { *entry = ledger.Entry{} }); err != nil {
			t.Fatal(err)
		}
	}
	f.readAll(t)
	f.expect(t, 0, minPrefetch)
}

// A workspace with many other Secrets costs the hub no more than twice the Secrets that it wants.
func TestAListEnds(t *testing.T) {
	f := newPrefetchFixture(t, minPrefetch)
	var junk []*corev1.Secret
	for i := range 1000 {
		junk = append(junk, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("junk-", i)}})
	}
	f.listed = append(junk, f.listed...)
	f.readAll(t)
	f.expect(t, 1, minPrefetch)
	if read := f.read.Load(); read != maxListedPerSecret*minPrefetch {
		t.Errorf("the hub read %d Secrets of the list", read)
	}
}

func TestWhatAListLacksIsReadOneByOne(t *testing.T) {
	f := newPrefetchFixture(t, minPrefetch)
	f.listed, f.failure = f.listed[:3], errors.New("kcp does not answer")
	f.readAll(t)
	f.expect(t, 1, minPrefetch-3)
}
