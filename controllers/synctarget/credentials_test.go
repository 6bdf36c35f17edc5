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
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
)

// fakeCluster is an inventory workspace whose cache a test controls.
type fakeCluster struct {
	cluster.Cluster
	client.Client
	secret      *corev1.Secret
	syncTargets []edgev2alpha1.SyncTarget
}

func (c *fakeCluster) GetClient() client.Client { return c }

func (c *fakeCluster) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if c.secret == nil {
		return notFound(key)
	}
	c.secret.ObjectMeta.DeepCopyInto(&object.(*metav1.PartialObjectMetadata).ObjectMeta)
	return nil
}

func (c *fakeCluster) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*edgev2alpha1.SyncTargetList).Items = c.syncTargets
	return nil
}

func notFound(key client.ObjectKey) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, key.Name)
}

func version(resourceVersion string) *corev1.Secret {
	secret := &corev1.Secret{}
	secret.UID, secret.ResourceVersion = "uid", resourceVersion
	return secret
}

// A SyncTarget gets the content of a Secret only while the Secret lists the SyncTarget. Every reconcile checks that.
func TestASecretIsUsedOnlyForThoseItNames(t *testing.T) {
	controller := New(Options{Registry: startRegistry(t), Sync: newSyncManager(), Ledger: ledger.New(ledger.Options{}), Clock: testclock.NewFakeClock(time.Unix(1000, 0))})
	syncTarget := &edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: "florin", UID: "one"}}
	syncTarget.Spec.KubeconfigSecretRef = &edgev2alpha1.SecretReference{Name: "s"}
	const command = "`kubectl annotate secret s --namespace default synchub.dev/allowed-sync-targets=florin/one`"
	for name, test := range map[string]struct{ annotation, reason, says string }{
		"by its UID":                 {annotation: "florin/one"},
		"by its name":                {annotation: "florin"},
		"beside another":             {annotation: "guilder/two,florin/one"},
		"nobody":                     {reason: ReasonCredentialsNotAllowed, says: command},
		"one before it, of its name": {annotation: "florin/zero", reason: ReasonCredentialsNotAllowed, says: "--overwrite"},
		"another":                    {annotation: "guilder", reason: ReasonCredentialsNotAllowed, says: "EXISTING,florin/one"},
	} {
		t.Run(name, func(t *testing.T) {
			inventory := &fakeCluster{secret: &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s", UID: "uid", ResourceVersion: "1"},
				Data:       map[string][]byte{"kubeconfig": []byte("secret")},
			}}
			if test.annotation != "" {
				inventory.secret.Annotations = map[string]string{edgev2alpha1.AnnotationAllowedSyncTargets: test.annotation}
			}
			controller.readSecret = func(context.Context, cluster.Cluster, types.NamespacedName) (*corev1.Secret, error) {
				return inventory.secret, nil
			}
			kubeconfig, problem, err := controller.kubeconfig(t.Context(), inventory, syncTarget, &syncTargetState{})
			if err != nil {
				t.Fatal(err)
			}
			if test.reason == "" {
				if problem != nil || string(kubeconfig) != "secret" {
					t.Errorf("it is not used: %v", problem)
				}
				return
			}
			if kubeconfig != nil || problem == nil || problem.reason != test.reason || !strings.Contains(problem.message, test.says) || strings.Contains(problem.message, "guilder") {
				t.Errorf("got %q, %+v", kubeconfig, problem)
			}
		})
	}
}

// The hub reads a Secret when the cache shows another version, and once after each refusal of the credentials by the target.
func TestWhenASecretIsRead(t *testing.T) {
	controller := New(Options{Registry: startRegistry(t), Sync: newSyncManager(), Ledger: ledger.New(ledger.Options{}), Clock: testclock.NewFakeClock(time.Unix(1000, 0))})
	controller.track(mcreconcile.Request{}, "florin")
	state := controller.store.stateOf("florin")
	inventory := &fakeCluster{secret: version("1")}
	stored, failure, reads := version("1"), error(nil), 0
	controller.readSecret = func(context.Context, cluster.Cluster, types.NamespacedName) (*corev1.Secret, error) {
		reads++
		return stored, failure
	}
	syncTarget := &edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: "florin", UID: "florin"}}
	reference := &edgev2alpha1.SecretReference{Name: "s", Key: "kubeconfig"}
	expect := func(step, want string, wantReads int) {
		t.Helper()
		got, err := controller.getSecret(t.Context(), inventory, syncTarget, reference, state)
		switch {
		case apierrors.IsNotFound(err):
			got = version("none")
		case err != nil:
			got = version("unknown")
		}
		if got.ResourceVersion != want || reads != wantReads {
			t.Errorf("%s: got version %s after %d reads, want %s after %d", step, got.ResourceVersion, reads, want, wantReads)
		}
	}
	expect("it is new", "1", 1)
	expect("nothing has changed", "1", 1)
	stored = version("2")
	controller.store.onUnauthorized(nil, "florin")
	controller.store.onUnauthorized(nil, "another")
	expect("the cache was behind", "2", 2)
	expect("it still is", "2", 2)
	inventory.secret = version("2")
	expect("it has come along", "2", 2)
	expect("and stays", "2", 2)
	inventory.secret, stored = version("3"), version("3")
	expect("it has changed", "3", 3)

	for reads := range 3 {
		controller.store.onUnauthorized(nil, "florin")
		expect("the credentials are bad, and there are no new ones", "3", reads+4)
		expect("which is found out once", "3", reads+4)
	}
	failure = errors.New("kcp does not answer")
	controller.store.onUnauthorized(nil, "florin")
	expect("kcp cannot be asked", "3", 7)
	inventory.secret = version("4")
	expect("kcp cannot be asked about a change", "unknown", 8)
	failure, stored = nil, version("4")
	expect("now it can", "4", 9)
	failure = notFound(client.ObjectKey{Name: "s"})
	controller.store.onUnauthorized(nil, "florin")
	expect("the Secret is gone", "none", 10)

	failure, stored = nil, version("5")
	expect("there is another", "5", 11)
	inventory.secret = version("5")
	inventory.secret.UID = "created again"
	stored = inventory.secret
	expect("the cache shows a Secret that was created again", "5", 12)
	reference.Key = "other"
	expect("another key is asked for", "5", 13)
	expect("which is not there", "5", 13)
	inventory.secret = nil
	expect("the cache shows none", "none", 13)
	controller.untrack(mcreconcile.Request{})
	controller.store.onUnauthorized(nil, "florin")
}

// The hub keeps only the parts of a Secret that its SyncTarget needs. It still refuses a kubeconfig that is too
// large.
func TestTrimSecret(t *testing.T) {
	secret := version("1")
	secret.Labels = map[string]string{"long": strings.Repeat("x", 60)}
	secret.Annotations = map[string]string{edgev2alpha1.AnnotationAllowedSyncTargets: "florin", "other": "x"}
	secret.Data = map[string][]byte{"kubeconfig": []byte(strings.Repeat("#", 1<<20)), "other": []byte("x")}
	held := trimSecret(secret, "kubeconfig")
	if len(held.Annotations) != 1 || len(held.Labels) != 0 || len(held.Data) != 1 || cap(held.Data["kubeconfig"]) > 2*kubeconfig.MaxSize {
		t.Errorf("too much is held: %d annotations, %d labels, %d keys, %d bytes", len(held.Annotations), len(held.Labels), len(held.Data), cap(held.Data["kubeconfig"]))
	}
	if _, err := kubeconfig.Parse(held.Data["kubeconfig"]); err == nil || !strings.Contains(err.Error(), "its size") {
		t.Errorf("it is not refused for its size: %v", err)
	}
}
