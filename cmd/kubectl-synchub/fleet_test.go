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

package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/registration"
	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// plugin runs the plugin. Standard input is empty, and no terminal.
func plugin(t *testing.T, args ...string) printed {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(t.Context(), args, genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errs}); code != 0 {
		return printed{out.String(), errs.String(), fmt.Errorf("exit status %d", code)}
	}
	return printed{out.String(), errs.String(), nil}
}

func succeed(t *testing.T, args ...string) printed {
	t.Helper()
	got := plugin(t, args...)
	if got.err != nil {
		t.Fatalf("%q: %v\n%s%s", args, got.err, got.out, got.errs)
	}
	return got
}

func fail(t *testing.T, message string, args ...string) {
	t.Helper()
	if got := plugin(t, args...); got.err == nil || !strings.Contains(got.errs, message) {
		t.Errorf("%q: want an error with %q, got %v\n%s%s", args, message, got.err, got.out, got.errs)
	}
}

// testFleet is a cluster that is both an inventory workspace and a target.
type testFleet struct {
	*servers.Target
	admin client.WithWatch
	// name of florin's identity on the target.
	name string

	// Results of the first registration.
	uid   types.UID
	first kubernetes.Interface
	token string
}

func newFleet(t *testing.T) *testFleet {
	t.Helper()
	hosting := startHosting(t)
	crd := suite.ReadFile(t, "../../apis/schemas/crds/edge.kubestellar.io_synctargets.yaml")
	suite.Apply(t, hosting.Config, string(crd))
	admin, err := cli.ClientOf(hosting.Config)
	if err != nil {
		t.Fatal(err)
	}
	suite.WaitUntil(t, "the API is served", func() bool {
		return admin.List(t.Context(), &edgev2alpha1.SyncTargetList{}) == nil
	})
	inventory, err := registration.InventoryID(t.Context(), admin)
	if err != nil {
		t.Fatal(err)
	}
	return &testFleet{Target: hosting, admin: admin, name: registration.Identity{SyncTarget: "florin", Inventory: inventory}.Name()}
}

// made returns the keys of all objects of the registration.
func (f *testFleet) made() []client.Object {
	inside := metav1.ObjectMeta{Namespace: registration.Namespace, Name: f.name}
	return []client.Object{
		&edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: "florin"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "florin-kubeconfig"}},
		&corev1.ServiceAccount{ObjectMeta: inside},
		&rbacv1.Role{ObjectMeta: inside},
		&rbacv1.RoleBinding{ObjectMeta: inside},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: f.name}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: f.name}},
	}
}

// versions returns the resourceVersions of the existing ones of those objects.
func (f *testFleet) versions(t *testing.T) []string {
	t.Helper()
	var versions []string
	for _, object := range f.made() {
		err := f.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		versions = append(versions, object.GetResourceVersion())
	}
	return versions
}

func (f *testFleet) account(t *testing.T) types.UID {
	t.Helper()
	var account corev1.ServiceAccount
	if err := f.admin.Get(t.Context(), types.NamespacedName{Namespace: registration.Namespace, Name: f.name}, &account); err != nil {
		t.Fatal(err)
	}
	return account.UID
}

// hub returns a client with the hub's credentials on the target.
func (f *testFleet) hub(t *testing.T) (kubernetes.Interface, string) {
	t.Helper()
	var secret corev1.Secret
	if err := f.admin.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "florin-kubeconfig"}, &secret); err != nil {
		t.Fatal(err)
	}
	if secret.Labels[edgev2alpha1.LabelCredential] != edgev2alpha1.CredentialKubeconfig {
		t.Errorf("the hub does not see the Secret: %v", secret.Labels)
	}
	config, err := kubeconfig.Parse(secret.Data["kubeconfig"])
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = 100, 1000
	hub, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return hub, config.BearerToken
}

func allowed(t *testing.T, hub kubernetes.Interface, attributes authorizationv1.ResourceAttributes) bool {
	t.Helper()
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes}}
	answer, err := hub.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status.Allowed
}

func (f *testFleet) syncTarget(t *testing.T) *edgev2alpha1.SyncTarget {
	t.Helper()
	var syncTarget edgev2alpha1.SyncTarget
	if err := f.admin.Get(t.Context(), types.NamespacedName{Name: "florin"}, &syncTarget); err != nil {
		t.Fatal(err)
	}
	return &syncTarget
}

// report sets conditions in the status of the SyncTarget, as the hub does.
func (f *testFleet) report(t *testing.T, status metav1.ConditionStatus, conditions ...string) {
	t.Helper()
	syncTarget := f.syncTarget(t)
	for _, condition := range conditions {
		meta.SetStatusCondition(&syncTarget.Status.Conditions, metav1.Condition{
			Type: condition, Status: status, Reason: "Said", Message: "said so.", ObservedGeneration: syncTarget.Generation,
		})
	}
	if err := f.admin.Status().Update(t.Context(), syncTarget); err != nil {
		t.Fatal(err)
	}
}

// reportToken sets the token of the hub in the status of the SyncTarget, as the hub does.
func (f *testFleet) reportToken(t *testing.T, token string, expires time.Time) {
	t.Helper()
	claimed, _ := kubeconfig.ParseToken(token)
	syncTarget := f.syncTarget(t)
	syncTarget.Status.Credentials = &edgev2alpha1.CredentialsStatus{ExpiresAt: &metav1.Time{Time: expires}, TokenHash: claimed.Hash}
	if err := f.admin.Status().Update(t.Context(), syncTarget); err != nil {
		t.Fatal(err)
	}
}
