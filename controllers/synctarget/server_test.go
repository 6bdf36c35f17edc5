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
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/provider/inventories"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/connections"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// testWorkspace is an API server in the role of an inventory workspace. Its cache shows the server's content, or a given Secret.
type testWorkspace struct {
	cluster.Cluster
	client.Client
	config *rest.Config
	http   *http.Client
	mapper meta.RESTMapper
	behind *corev1.Secret
}

func (w *testWorkspace) GetClient() client.Client       { return w }
func (w *testWorkspace) GetConfig() *rest.Config        { return w.config }
func (w *testWorkspace) GetHTTPClient() *http.Client    { return w.http }
func (w *testWorkspace) GetScheme() *runtime.Scheme     { return w.Scheme() }
func (w *testWorkspace) GetRESTMapper() meta.RESTMapper { return w.mapper }

func (w *testWorkspace) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if w.behind != nil {
		w.behind.ObjectMeta.DeepCopyInto(&object.(*metav1.PartialObjectMetadata).ObjectMeta)
		return nil
	}
	return w.Client.Get(ctx, key, object, options...)
}

// testEnv is one API server in two roles: the target, and the inventory workspace with the kubeconfig Secret.
type testEnv struct {
	*testWorkspace
	*testing.T
	target   *servers.Target
	registry *targets.Registry
}

func newTestEnv(t *testing.T) *testEnv {
	t.Helper()
	g, target := NewWithT(t), suite.Target(t)
	var err error
	inventory := &testWorkspace{config: target.Config}
	inventory.http, err = rest.HTTPClientFor(target.Config)
	g.Expect(err).NotTo(HaveOccurred())
	inventory.mapper, err = apiutil.NewDynamicRESTMapper(target.Config, inventory.http)
	g.Expect(err).NotTo(HaveOccurred())
	inventory.Client, err = client.New(target.Config, client.Options{})
	g.Expect(err).NotTo(HaveOccurred())

	return &testEnv{testWorkspace: inventory, T: t, target: target, registry: connections.NewRegistry(t, targets.Options{})}
}

// account creates a ServiceAccount with a token of ten minutes, its permission to renew the token if mayRenew is set, the Secret and
// the SyncTarget. It returns the SyncTarget and its connection.
func (w *testEnv) account(name string, mayRenew bool) (*edgev2alpha1.SyncTarget, *targets.Connection) {
	w.Helper()
	g := NewWithT(w)
	manifest := "{apiVersion: v1, kind: ServiceAccount, metadata: {name: %[1]s}}"
	if mayRenew {
		manifest += `
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: %[1]s}, rules: [{apiGroups: [""], resources: [serviceaccounts/token], resourceNames: [%[1]s], verbs: [create]}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: %[1]s}
subjects: [{kind: ServiceAccount, name: %[1]s, namespace: default}]`
	}
	g.Expect(framework.Apply(w.Context(), w.target.Config, fmt.Sprintf(manifest, name))).To(Succeed())
	accounts, err := kubernetes.NewForConfig(w.target.Config)
	g.Expect(err).NotTo(HaveOccurred())
	issued, err := accounts.CoreV1().ServiceAccounts("default").CreateToken(w.Context(), name,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(600))}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	kubeconfig := suite.ReadFile(w, w.target.Kubeconfig)
	secret := &corev1.Secret{Data: map[string][]byte{
		"kubeconfig": []byte(strings.ReplaceAll(string(kubeconfig), w.target.Config.BearerToken, issued.Status.Token)),
		"other":      []byte("stays"),
	}}
	secret.Namespace, secret.Name = "default", name
	secret.Labels = map[string]string{edgev2alpha1.LabelCredential: edgev2alpha1.CredentialKubeconfig}
	secret.Annotations = map[string]string{edgev2alpha1.AnnotationAllowedSyncTargets: name}
	g.Expect(w.Create(w.Context(), secret)).To(Succeed())
	syncTarget := &edgev2alpha1.SyncTarget{}
	syncTarget.Name, syncTarget.UID = name, types.UID(name)
	syncTarget.Spec.KubeconfigSecretRef = &edgev2alpha1.SecretReference{Name: name}
	connection := connections.Connect(w, w.registry, syncTarget.UID, secret.Data["kubeconfig"], kcp.Limits{})
	suite.WaitUntil(w, "the target is up", connection.Health.IsUp)
	return syncTarget, connection
}

func (w *testEnv) secret(name string) *corev1.Secret {
	w.Helper()
	secret, err := inventories.GetSecret(w.Context(), w.testWorkspace, types.NamespacedName{Namespace: "default", Name: name})
	if err != nil {
		w.Fatal(err)
	}
	return secret
}

func TestRenewal(t *testing.T) {
	w := newTestEnv(t)
	now := testclock.NewFakeClock(time.Now())
	controller := New(Options{Registry: w.registry, Sync: newSyncManager(), Ledger: ledger.New(ledger.Options{}), Clock: now})
	t.Run("writes another token into the Secret in time", func(t *testing.T) { w.renewsInTime(t, controller, now) })
	t.Run("overwrites nobody's change", func(t *testing.T) { w.overwritesNothing(t, controller, now) })
	t.Run("says what right is missing", func(t *testing.T) { w.saysWhatIsMissing(t, controller, now) })
	t.Run("goes by the target's clock", func(t *testing.T) { w.goesByTheTargetsClock(t) })
}

// If the hub's clock is an hour off, a token of ten minutes must neither end unnoticed nor be renewed every minute.
func (w *testEnv) goesByTheTargetsClock(t *testing.T) {
	for name, off := range map[string]time.Duration{"slow": -time.Hour, "fast": time.Hour} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hubs := testclock.NewFakeClock(time.Now().Add(off))
			there := &testEnv{testWorkspace: w.testWorkspace, T: t, target: w.target, registry: connections.NewRegistry(t, targets.Options{Clock: hubs})}
			syncTarget, connection := there.account(name, true)
			token, _ := connection.Token.Claims()
			now := testclock.NewFakeClock(token.IssuedAt.Add(off + 5*time.Minute))
			controller := New(Options{Registry: there.registry, Sync: newSyncManager(), Ledger: ledger.New(ledger.Options{}), Clock: now})
			before, state := there.secret(name), &syncTargetState{}
			controller.renewToken(t.Context(), there, syncTarget, connection, state)
			g.Expect(there.secret(name).ResourceVersion).To(Equal(before.ResourceVersion), "it is not due")
			now.SetTime(token.ExpiresAt.Add(off - 3*time.Minute))
			there.renew(controller, syncTarget, connection, state)
			g.Expect(there.secret(name).ResourceVersion).NotTo(Equal(before.ResourceVersion))
		})
	}
}

// renew renews a token, and returns once the target has answered.
func (w *testEnv) renew(controller *Controller, syncTarget *edgev2alpha1.SyncTarget, connection *targets.Connection, state *syncTargetState) {
	w.Helper()
	NewWithT(w).Eventually(func() time.Time {
		controller.renewToken(w.Context(), w, syncTarget, connection, state)
		return state.renewal.nextAttempt
	}).ShouldNot(BeZero())
}

func (w *testEnv) renewsInTime(t *testing.T, controller *Controller, now *testclock.FakeClock) {
	g := NewWithT(t)
	syncTarget, connection := w.account("renews", true)
	token, ok := connection.Token.Claims()
	g.Expect(ok).To(BeTrue())
	before, state := w.secret("renews"), &syncTargetState{}

	now.SetTime(token.IssuedAt.Add(5 * time.Minute))
	controller.renewToken(t.Context(), w, syncTarget, connection, state)
	g.Expect(w.secret("renews").ResourceVersion).To(Equal(before.ResourceVersion), "it is not due")

	now.SetTime(token.ExpiresAt.Add(-3 * time.Minute))
	w.renew(controller, syncTarget, connection, state)
	g.Expect(state.renewal.problem).To(BeEmpty())
	g.Expect(state.renewal.renewedAt).To(Equal(now.Now()))
	after := w.secret("renews")
	g.Expect(after.Labels).To(Equal(before.Labels))
	g.Expect(after.Data).To(HaveKeyWithValue("other", []byte("stays")))
	old, err := kubeconfig.Parse(before.Data["kubeconfig"])
	g.Expect(err).NotTo(HaveOccurred())
	renewed, err := kubeconfig.Parse(after.Data["kubeconfig"])
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(renewed.BearerToken).NotTo(Equal(old.BearerToken))
	g.Expect(string(after.Data["kubeconfig"])).To(Equal(strings.ReplaceAll(string(before.Data["kubeconfig"]), old.BearerToken, renewed.BearerToken)))

	// Until the connection uses the new token, the hub requests no further one.
	now.Step(time.Second)
	controller.renewToken(t.Context(), w, syncTarget, connection, state)
	g.Expect(w.secret("renews").ResourceVersion).To(Equal(after.ResourceVersion))
	var next *targets.Connection
	g.Eventually(func(g Gomega) {
		next, err = w.registry.Connect(syncTarget.UID, after.Data["kubeconfig"], kcp.Limits{})
		g.Expect(err).NotTo(HaveOccurred())
		// A failure message with the connections would read them while they are in use, which is a race.
		another := next != connection
		g.Expect(another && next.Health.IsUp()).To(BeTrue())
	}).Should(Succeed())
	fresh, ok := next.Token.Claims()
	g.Expect(ok).To(BeTrue())
	g.Expect(fresh.Lifetime()).To(Equal(token.Lifetime()))
}

func (w *testEnv) overwritesNothing(t *testing.T, controller *Controller, now *testclock.FakeClock) {
	g := NewWithT(t)
	syncTarget, connection := w.account("conflicts", true)
	token, _ := connection.Token.Claims()
	now.SetTime(token.ExpiresAt.Add(-time.Minute))
	// The cache still shows the version that the hub has read, although another client has changed the Secret.
	w.behind = w.secret("conflicts")
	defer func() { w.behind = nil }()
	state := &syncTargetState{}
	_, err := controller.getSecret(t.Context(), w, syncTarget, secretReferenceOf(syncTarget), state)
	g.Expect(err).NotTo(HaveOccurred())
	changed := w.behind.DeepCopy()
	changed.Data["other"] = []byte("changed")
	g.Expect(w.Update(t.Context(), changed)).To(Succeed())

	w.renew(controller, syncTarget, connection, state)
	g.Expect(state.renewal).To(Equal(renewal{nextAttempt: now.Now().Add(time.Second)}))
	g.Expect(w.secret("conflicts").ResourceVersion).To(Equal(changed.ResourceVersion))
	g.Eventually(func() error { return controller.replaceToken(t.Context(), w, syncTarget, connection, state) }).
		Should(BeAssignableToTypeOf(&writeError{}))
}

func (w *testEnv) saysWhatIsMissing(t *testing.T, controller *Controller, now *testclock.FakeClock) {
	g := NewWithT(t)
	syncTarget, connection := w.account("may-not", false)
	token, _ := connection.Token.Claims()
	before, state := w.secret("may-not"), &syncTargetState{}
	now.SetTime(token.ExpiresAt.Add(-3 * time.Minute))
	w.renew(controller, syncTarget, connection, state)
	g.Expect(state.renewal.problem).To(ContainSubstring("allow its ServiceAccount default/may-not to create serviceaccounts/token for itself"))
	g.Expect(state.renewal.nextAttempt).To(BeTemporally(">", now.Now()))
	g.Expect(w.secret("may-not").ResourceVersion).To(Equal(before.ResourceVersion))

	// The failed renewal shows in the same conditions as other problems of the target.
	view := statusView{now: now.Now(), health: connection.Health.Get(), token: token, hasToken: true, Status: syncmanager.Status{ConfigsKnown: true}, observedState: observedState{mailbox: "m"}}
	view.apply(syncTarget, state)
	syncer := meta.FindStatusCondition(syncTarget.Status.Conditions, edgev2alpha1.ConditionSyncerReady)
	g.Expect(syncer.Status).To(Equal(metav1.ConditionTrue))
	g.Expect(syncer.Message).To(ContainSubstring("kubectl synchub rotate may-not"))
}
