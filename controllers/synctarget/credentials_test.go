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
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/provider/ledger"
)

// cached is a workspace of which a test says what the cache shows.
type cached struct {
	cluster.Cluster
	client.Client
	secret *corev1.Secret
}

func (c *cached) GetClient() client.Client { return c }

func (c *cached) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if c.secret == nil {
		return notFound(key)
	}
	c.secret.DeepCopyInto(object.(*corev1.Secret))
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

// A SyncTarget that names a Secret gets nothing of it unless the Secret names the SyncTarget, at each look.
func TestASecretIsUsedOnlyForThoseItNames(t *testing.T) {
	controller := NewController(Options{Registry: startRegistry(t), Sync: syncmanager.New(syncmanager.Options{}), Ledger: ledger.New(ledger.Options{}), Clock: testclock.NewFakeClock(time.Unix(1000, 0))})
	syncTarget := &edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: "florin", UID: "one"}}
	syncTarget.Spec.KubeconfigSecretRef = &edgev2alpha1.SecretReference{Name: "s"}
	const command = "`kubectl annotate secret s --namespace default synchub.dev/allowed-sync-targets=florin/one`"
	for name, test := range map[string]struct{ annotation, reason, says string }{
		"by its UID":                 {annotation: "florin/one"},
		"by its name":                {annotation: "florin"},
		"beside another":             {annotation: "guilder/two,florin/one"},
		"nobody":                     {reason: ReasonCredentialsNotAllowed, says: command},
		"one before it, of its name": {annotation: "florin/zero", reason: ReasonCredentialsNotAllowed, says: "--overwrite"},
		"another":                    {annotation: "guilder", reason: ReasonCredentialsNotAllowed, says: "OTHERS,florin/one"},
	} {
		t.Run(name, func(t *testing.T) {
			inventory := &cached{secret: &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s", UID: "uid", ResourceVersion: "1"},
				Data:       map[string][]byte{"kubeconfig": []byte("secret")},
			}}
			if test.annotation != "" {
				inventory.secret.Annotations = map[string]string{edgev2alpha1.AnnotationAllowedSyncTargets: test.annotation}
			}
			kubeconfig, problem := controller.credentials(t.Context(), inventory, syncTarget, &memory{})
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

// After the target has refused the credentials they are read from kcp, once for each time that it did, and what was read
// counts until the cache moves on.
func TestRefusedCredentialsAreReadAgain(t *testing.T) {
	controller := NewController(Options{Registry: startRegistry(t), Sync: syncmanager.New(syncmanager.Options{}), Ledger: ledger.New(ledger.Options{}), Clock: testclock.NewFakeClock(time.Unix(1000, 0))})
	controller.see(mcreconcile.Request{}, "florin")
	memory := controller.remember("florin")
	inventory := &cached{secret: version("1")}
	stored, failure, reads := version("2"), error(nil), 0
	controller.readSecret = func(context.Context, cluster.Cluster, types.NamespacedName) (*corev1.Secret, error) {
		reads++
		return stored, failure
	}
	expect := func(step, want string, wantReads int) {
		t.Helper()
		got, err := controller.secret(t.Context(), inventory, types.NamespacedName{Name: "s"}, memory)
		switch {
		case err != nil && !apierrors.IsNotFound(err):
			t.Fatal(err)
		case err != nil:
			got = version("none")
		}
		if got.ResourceVersion != want || reads != wantReads {
			t.Errorf("%s: got version %s after %d reads, want %s after %d", step, got.ResourceVersion, reads, want, wantReads)
		}
	}
	expect("nothing is wrong", "1", 0)
	controller.Unauthorized("florin")
	controller.Unauthorized("another")
	expect("the cache was behind", "2", 1)
	expect("it still is", "2", 1)
	inventory.secret = version("3")
	expect("it has come along", "3", 1)
	inventory.secret = version("1")
	expect("nobody remembers", "1", 1)

	stored = version("1")
	for reads := range 3 {
		controller.Unauthorized("florin")
		expect("the credentials are bad, and no others are there", "1", reads+2)
		expect("which is found out once", "1", reads+2)
	}
	failure = errors.New("kcp does not answer")
	controller.Unauthorized("florin")
	expect("kcp cannot be asked", "1", 5)
	failure = notFound(client.ObjectKey{Name: "s"})
	controller.Unauthorized("florin")
	expect("the Secret is gone", "none", 6)

	failure, stored = nil, version("2")
	controller.Unauthorized("florin")
	expect("there is another", "2", 7)
	inventory.secret = version("1")
	inventory.secret.UID = "made anew"
	expect("the cache shows one that was made anew", "1", 7)
	inventory.secret = nil
	expect("the cache shows none", "none", 7)
	controller.lose(mcreconcile.Request{})
	controller.Unauthorized("florin")
}
