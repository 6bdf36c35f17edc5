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
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/registration"
	"github.com/synchub-dev/synchub/provider/rbac"
	"github.com/synchub-dev/synchub/provider/targets/tunnel"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

func TestRegistration(t *testing.T) {
	f := newFleet(t)
	t.Run("a dry run writes nothing", f.triesOut)
	t.Run("refused before anything is made", f.refuses)
	t.Run("a dry run finds what a registration would", f.findsOut)

	succeed(t, f.with("--labels", "env=prod,tier=one", "--resources", "deployments.apps,configmaps,pods:up")...)
	f.uid = f.account(t)
	f.first, f.token = f.hub(t)
	t.Run("the hub may do what it needs and no more", f.grants)
	t.Run("a second run changes nothing", f.repeats)
	t.Run("rights are extended when that is confirmed, and never taken away unasked", f.extends)
	t.Run("rights do not follow from a status", f.ignoresStatus)
	t.Run("a Secret of another SyncTarget is left alone", f.leavesSecrets)
	t.Run("APIs are brought to mailboxes", publishing{f}.imports)
	t.Run("what is somebody else's is left alone", f.leavesOthers)
	t.Run("it waits until the SyncTarget is ready", f.waits)
	t.Run("states", func(t *testing.T) { takesStates(t, f) })
	t.Run("clusters", func(t *testing.T) { confirmsClusters(t, f) })
	t.Run("a new token", f.rotates)
	t.Run("a tunnel", f.registersTunnel)
	t.Run("completion offers SyncTargets", f.completes)
	t.Run("removal", f.removes)
	races := namespaceRaces{f}
	t.Run("a namespace on its way out is waited for", races.outlasts)
	t.Run("a namespace that ends at the same time is made again", races.remakes)
	t.Run("an object that somebody creates at the same time is left alone", races.leavesLate)
	t.Run("a namespace that ends after the ServiceAccount was created is made again", races.beginsAgain)
	t.Run("a removal leaves the namespace to an identity that was created at the same time", races.keepsNamespace)
	t.Run("an administrator who may not change namespaces registers a cluster", races.needsNoPatch)
	t.Run("a kubeconfig that was handed over", f.takesOver)
	t.Run("rights in namespaces", f.bounds)
	t.Run("rights for workspaces that share the cluster", f.tenants)
}

// with returns the command that registers the cluster without waiting, because no hub runs.
func (f *testFleet) with(more ...string) []string {
	return append([]string{"register", "florin", "--target-kubeconfig", f.Kubeconfig, "--wait=false"}, more...)
}

func (f *testFleet) triesOut(t *testing.T) {
	t.Helper()
	shown := succeed(t, f.with("--dry-run=client", "-o", "yaml")...)
	for _, part := range []string{"kind: SyncTarget", "kind: ClusterRole\n", "kind: ServiceAccount", "- deployments", "name: " + f.name, "synchub.dev/allowed-sync-targets: florin\n"} {
		if !strings.Contains(shown.out, part) {
			t.Errorf("%q is not shown:\n%s", part, shown.out)
		}
	}
	succeed(t, f.with("--dry-run=server")...)
	if versions := f.versions(t); len(versions) > 0 {
		t.Errorf("%d objects were made", len(versions))
	}
	if err := f.admin.Get(t.Context(), types.NamespacedName{Name: registration.Namespace}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace was made: %v", err)
	}
}

func (f *testFleet) refuses(t *testing.T) {
	t.Helper()
	insecure := write(t, map[string]string{"admin": "{kind: Config, current-context: it, contexts: [{name: it, context: {cluster: it, user: it}}], clusters: [{name: it, cluster: {server: 'https://127.0.0.1:1', insecure-skip-tls-verify: true}}], users: [{name: it, user: {token: t}}]}"})[0]
	fail(t, "insecure-skip-tls-verify", "register", "florin", "--target-kubeconfig", insecure)
	executes := write(t, map[string]string{"handed": "{kind: Config, current-context: it, contexts: [{name: it, context: {cluster: it, user: it}}], clusters: [{name: it, cluster: {server: 'https://127.0.0.1:1'}}], users: [{name: it, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, args: [" + filepath.Join(t.TempDir(), "executed") + "]}}}]}"})[0]
	fail(t, "users.user.exec", "register", "florin", "--kubeconfig-only", executes)
	workspace := write(t, map[string]string{"workspace": "{kind: Config, current-context: it, contexts: [{name: it, context: {cluster: it, user: it}}], clusters: [{name: it, cluster: {server: 'https://127.0.0.1:1/clusters/root'}}], users: [{name: it, user: {token: t}}]}"})[0]
	for _, flag := range []string{"--target-kubeconfig", "--kubeconfig-only"} {
		fail(t, "https://127.0.0.1:1/clusters/root is kcp, which runs no workloads", "register", "florin", flag, workspace)
	}
	if versions := f.versions(t); len(versions) > 0 {
		t.Errorf("%d objects were made", len(versions))
	}
}

func (f *testFleet) grants(t *testing.T) {
	t.Helper()
	resources, err := rbac.ParseResources([]string{"deployments.apps", "configmaps", "pods:up"})
	if err != nil {
		t.Fatal(err)
	}
	for _, needed := range rbac.RequiredAttributes(resources, rbac.Tenancy{}) {
		if !allowed(t, f.first, needed) {
			t.Errorf("it may not %s %s.%s", needed.Verb, needed.Resource, needed.Group)
		}
	}
	for _, other := range []authorizationv1.ResourceAttributes{
		{Resource: "pods", Verb: "create"}, {Resource: "secrets", Verb: "get"}, {Resource: "namespaces", Verb: "delete"},
		{Group: "apps", Resource: "deployments", Verb: "update"}, {Group: "apps", Resource: "deployments", Verb: "deletecollection"},
		{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Verb: "create"},
		{Resource: "serviceaccounts", Subresource: "token", Namespace: registration.Namespace, Name: "default", Verb: "create"},
	} {
		if allowed(t, f.first, other) {
			t.Errorf("it may %+v", other)
		}
	}
	own := authorizationv1.ResourceAttributes{Resource: "serviceaccounts", Subresource: "token", Namespace: registration.Namespace, Name: f.name, Verb: "create"}
	if !allowed(t, f.first, own) {
		t.Error("it may not renew its token")
	}
	if labels := f.syncTarget(t).Labels; labels["env"] != "prod" || labels["tier"] != "one" {
		t.Errorf("the labels are %v", labels)
	}
}

func (f *testFleet) repeats(t *testing.T) {
	t.Helper()
	before := f.versions(t)
	got := succeed(t, f.with("--resources", "deployments.apps,configmaps,pods:up")...)
	if after := f.versions(t); strings.Join(after, " ") != strings.Join(before, " ") || len(after) != len(f.made()) {
		t.Errorf("versions were %v and are %v", before, after)
	}
	if strings.Count(got.out, " unchanged\n") != len(f.made())+1 {
		t.Errorf("it prints\n%s", got.out)
	}
}

func (f *testFleet) extends(t *testing.T) {
	t.Helper()
	before := f.versions(t)
	fail(t, "The hub's rights on the target would grow by: customresourcedefinitions.apiextensions.k8s.io (create, patch), widgets.example.com (create, delete, get, list, patch, watch).\n"+
		"error: nothing was changed: give --yes", f.with("--resources", "widgets.example.com,deployments.apps")...)
	fail(t, "would grow by: services", f.with("--add-resources", "services")...)
	if after := f.versions(t); strings.Join(after, " ") != strings.Join(before, " ") {
		t.Error("something was changed")
	}
	succeed(t, f.with("--resources", "widgets.example.com,deployments.apps", "--yes")...)
	succeed(t, f.with("--add-resources", "jobs.batch", "--yes")...)
	if got := succeed(t, f.with()...); !strings.Contains(got.errs, "as granted before: deployments.apps,jobs.batch,widgets.example.com:crd.") {
		t.Errorf("it prints\n%s", got.errs)
	}
	for _, needed := range []authorizationv1.ResourceAttributes{
		{Group: "example.com", Resource: "widgets", Verb: "create"}, {Group: "batch", Resource: "jobs", Verb: "patch"},
		{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Verb: "create"},
	} {
		if !allowed(t, f.first, needed) {
			t.Errorf("it may not %+v", needed)
		}
	}
	if _, again := f.hub(t); f.account(t) != f.uid || again != f.token {
		t.Error("the identity changed")
	}
}

// ignoresStatus tests that a status, and an annotation on the target, grant nothing.
func (f *testFleet) ignoresStatus(t *testing.T) {
	t.Helper()
	syncTarget := f.syncTarget(t)
	syncTarget.Status.SyncedResources = []edgev2alpha1.SyncedResource{{Group: "*", Resource: "*", State: edgev2alpha1.SyncedResourceAccepted}, {Resource: "endpoints", State: edgev2alpha1.SyncedResourceAccepted}}
	if err := f.admin.Status().Update(t.Context(), syncTarget); err != nil {
		t.Fatal(err)
	}
	shown := succeed(t, f.with("--dry-run=client", "-o", "yaml")...)
	if strings.Contains(shown.out+shown.errs, "'*'") || strings.Contains(shown.out+shown.errs, "endpoints") {
		t.Errorf("the status was believed:\n%s%s", shown.errs, shown.out)
	}
	fail(t, `"*.*" is not a resource`, f.with("--resources", "*.*")...)

	var role rbacv1.ClusterRole
	if err := f.admin.Get(t.Context(), types.NamespacedName{Name: f.name}, &role); err != nil {
		t.Fatal(err)
	}
	role.Annotations["synchub.dev/resources"] += ",secrets"
	if err := f.admin.Update(t.Context(), &role); err != nil {
		t.Fatal(err)
	}
	succeed(t, f.with()...)
	if allowed(t, f.first, authorizationv1.ResourceAttributes{Resource: "secrets", Verb: "get"}) {
		t.Error("an annotation was believed")
	}
}

// leavesSecrets tests that a SyncTarget cannot use the Secret of another one.
func (f *testFleet) leavesSecrets(t *testing.T) {
	t.Helper()
	thief := &edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: "thief"}}
	thief.Spec.KubeconfigSecretRef = &edgev2alpha1.SecretReference{Name: "florin-kubeconfig"}
	if err := f.admin.Create(t.Context(), thief); err != nil {
		t.Fatal(err)
	}
	before := f.versions(t)
	for _, more := range []string{"--dry-run=client", "--dry-run=server", "--yes"} {
		fail(t, "does not allow this SyncTarget", "register", "thief", "--target-kubeconfig", f.Kubeconfig, "--wait=false", more)
	}
	fail(t, "does not allow this SyncTarget", "rotate", "thief", "--target-kubeconfig", f.Kubeconfig)
	if err := f.admin.Delete(t.Context(), thief); err != nil {
		t.Fatal(err)
	}
	if after := f.versions(t); strings.Join(after, " ") != strings.Join(before, " ") {
		t.Error("something was changed")
	}

	squatter := &edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: "squatter"}}
	squatter.Spec.MailboxAccess = []edgev2alpha1.MailboxAccess{{ClusterRole: "cluster-admin", Subjects: []rbacv1.Subject{{Kind: "User", Name: "eve", APIGroup: rbacv1.GroupName}}}}
	if err := f.admin.Create(t.Context(), squatter); err != nil {
		t.Fatal(err)
	}
	fail(t, "The SyncTarget squatter is there already, and would give User eve the role cluster-admin in the cluster's mailbox.",
		"register", "squatter", "--target-kubeconfig", f.Kubeconfig, "--wait=false")
	if err := f.admin.Delete(t.Context(), squatter); err != nil {
		t.Fatal(err)
	}
}

// findsOut tests that a dry run, which writes nothing, finds the problems of a registration.
func (f *testFleet) findsOut(t *testing.T) {
	t.Helper()
	dry := []string{"--dry-run=client", "--dry-run=server"}
	executes := write(t, map[string]string{"handed": "{kind: Config, current-context: it, contexts: [{name: it, context: {cluster: it, user: it}}], clusters: [{name: it, cluster: {server: 'https://127.0.0.1:1'}}], users: [{name: it, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: touch}}}]}"})[0]
	taken := f.identity(t, "drachma").Name()
	if err := f.admin.Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: taken}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}}); err != nil {
		t.Fatal(err)
	}
	reader := f.as(t, "reader", "view")
	granter := f.as(t, "granter", "admin-of-roles")
	for _, how := range dry {
		fail(t, "users.user.exec", "register", "florin", "--kubeconfig-only", executes, how)
		fail(t, "metadata.name", "register", "Florin", "--target-kubeconfig", f.Kubeconfig, how)
		fail(t, "metadata.labels", append(f.with("--labels", "env=not a value"), how)...)
		fail(t, taken, "register", "drachma", "--target-kubeconfig", f.Kubeconfig, how)
		fail(t, "create the namespace none first", append(f.with("--namespace", "none"), how)...)
		fail(t, "the target does not allow it", "register", "florin", "--target-kubeconfig", reader, how)
		fail(t, "the target does not allow it", "register", "florin", "--target-kubeconfig", granter, how)
	}
	if versions := f.versions(t); len(versions) > 0 {
		t.Errorf("%d objects were made", len(versions))
	}
}

// as returns the kubeconfig of a user who has a role in the cluster.
func (f *testFleet) as(t *testing.T, name, role string) string {
	t.Helper()
	suite.Apply(t, f.Config, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: admin-of-roles}, rules: ["+
		"{apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles, clusterrolebindings, roles, rolebindings], verbs: [get, create, patch]},"+
		"{apiGroups: [''], resources: [namespaces, serviceaccounts], verbs: [get, create, patch]}]}")
	suite.Apply(t, f.Config, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: "+name+", namespace: default}}")
	suite.Apply(t, f.Config, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: "+name+"}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "+role+"}, subjects: [{kind: ServiceAccount, name: "+name+", namespace: default}]}")
	accounts, err := kubernetes.NewForConfig(f.Config)
	if err != nil {
		t.Fatal(err)
	}
	issued, err := accounts.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(f.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, map[string]string{name: strings.ReplaceAll(string(content), f.Config.BearerToken, issued.Status.Token)})[0]
}

// registersTunnel registers a cluster that dials the hub.
func (f *testFleet) registersTunnel(t *testing.T) {
	t.Helper()
	with := func(more ...string) []string {
		return append([]string{"register", "zloty", "--tunnel", "--output=yaml", "--timeout=1s"}, more...)
	}
	fail(t, "with --tunnel, --output=yaml or --output=json is needed", "register", "zloty", "--tunnel")
	fail(t, "leave out --target-kubeconfig, --target-context and --kubeconfig-only", with("--target-kubeconfig", f.Kubeconfig)...)
	fail(t, "leave out --hosting-kubeconfig and --hosting-context", with("--hosting-kubeconfig", f.Kubeconfig)...)
	fail(t, "--hub-certificate-authority: open none.crt", with("--hub-url", "https://hub", "--hub-certificate-authority", "none.crt")...)
	fail(t, "--hub-certificate-authority: give the URL with --hub-url too", with("--hub-certificate-authority", "none.crt")...)
	fail(t, "--hub-url: \"hub:8443\" is no URL", with("--hub-url", "hub:8443")...)
	fail(t, "its manifest needs the address of the hub; repeat the command, or give --hub-url", with("--resources", "configmaps,pods:up", "--namespaces", "shop")...)

	shown := succeed(t, with("--dry-run=client")...)
	for _, part := range []string{"kind: Deployment", "namespace: shop", "- configmaps"} {
		if !strings.Contains(shown.out, part) {
			t.Errorf("%q is not shown:\n%s", part, shown.out)
		}
	}
	if !strings.Contains(shown.errs, "Warning: this plugin is no release") {
		t.Errorf("it does not warn of the image:\n%s", shown.errs)
	}
	if named := succeed(t, with("--dry-run=client", "--tunnel-image=example.org/tunnel:1")...); strings.Contains(named.errs, "no release") {
		t.Errorf("it warns of an image that was named:\n%s", named.errs)
	}
	for _, part := range []string{"kind: Secret", "deployments"} {
		if strings.Contains(shown.out, part) {
			t.Errorf("%q is shown:\n%s", part, shown.out)
		}
	}
	if want := "Rights in the namespace shop for 2 resources, as granted before: configmaps,pods:up."; !strings.Contains(shown.errs, want) {
		t.Errorf("it prints\n%s", shown.errs)
	}
	fail(t, "The hub's rights on the target would grow by: secrets (get, list, watch) in the namespace shop.\nerror: nothing was changed: give --yes", with("--add-resources", "secrets:up")...)

	f.rotatesTunnel(t, with)

	fail(t, "leave out --target-kubeconfig", "unregister", "zloty", "--target-kubeconfig", f.Kubeconfig, "--yes")
	if got := succeed(t, "unregister", "zloty", "--yes"); !strings.Contains(got.errs, "The tunnel and the hub's rights are still in the cluster.") || strings.Contains(got.errs, "ServiceAccount") {
		t.Errorf("it prints\n%s", got.errs)
	}
}

// rotatesTunnel replaces the token of a tunnel. with returns the arguments that register it.
func (f *testFleet) rotatesTunnel(t *testing.T, with func(more ...string) []string) {
	t.Helper()
	token := func() tunnel.Credential {
		t.Helper()
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "zloty-tunnel"}}
		if err := f.admin.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
			t.Fatal(err)
		}
		credential, err := tunnel.ParseCredential(secret.Data["tunnel"])
		if err != nil {
			t.Fatal(err)
		}
		return credential
	}
	before := token()
	if got := succeed(t, with("--hub-url", "https://hub.example.org:8443")...); !strings.Contains(got.out, "--hub=https://hub.example.org:8443") || token() != before {
		t.Errorf("a token that is there must stay, got\n%s", got.out)
	}
	rotated := succeed(t, "rotate", "zloty", "--output=yaml", "--hub-url", "https://hub.example.org:8443")
	if after := token(); after.Previous != before.Token || strings.Contains(rotated.out, "Deployment") || !strings.Contains(rotated.out, "kind: Secret") {
		t.Errorf("want another token beside the former one, got\n%s", rotated.out)
	}
	succeed(t, "rotate", "zloty", "--output=yaml", "--hub-url", "https://hub.example.org:8443", "--revoke")
	if after := token(); after.Previous != "" {
		t.Errorf("the former token is accepted: %v", after.PreviousUntil)
	}
	fail(t, "leave out --target-kubeconfig, --target-context and --wait", "rotate", "zloty", "--target-kubeconfig", f.Kubeconfig)
}

func (f *testFleet) leavesOthers(t *testing.T) {
	t.Helper()
	name := f.identity(t, "guilder").Name()
	if err := f.admin.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
	fail(t, name, "register", "guilder", "--target-kubeconfig", f.Kubeconfig, "--wait=false")
	var role rbacv1.ClusterRole
	if err := f.admin.Get(t.Context(), types.NamespacedName{Name: name}, &role); err != nil || len(role.Rules) > 0 {
		t.Errorf("%v, rules %v", err, role.Rules)
	}
}

func (f *testFleet) waits(t *testing.T) {
	t.Helper()
	f.report(t, metav1.ConditionFalse, edgev2alpha1.ConditionHeartbeatHealthy)
	fail(t, "HeartbeatHealthy is False, Said: said so.", "register", "florin", "--target-kubeconfig", f.Kubeconfig, "--timeout", "500ms")
	f.report(t, metav1.ConditionTrue, append(registration.ReadyConditions, edgev2alpha1.ConditionReady)...)
	if got := succeed(t, "register", "florin", "--target-kubeconfig", f.Kubeconfig); !strings.Contains(got.out, "synctarget.edge.kubestellar.io/florin ready\n") {
		t.Errorf("it prints\n%s", got.out)
	}
}

// rotatesWithinASecond rotates a token so soon after the last rotation that both tokens expire at the same time.
func (f *testFleet) rotatesWithinASecond(t *testing.T, former string) {
	t.Helper()
	expires := time.Now().Add(time.Hour)
	f.report(t, metav1.ConditionTrue, append(registration.ReadyConditions, edgev2alpha1.ConditionReady)...)
	f.reportToken(t, former, expires)
	done := make(chan printed, 1)
	go func() {
		done <- execute(t, "", "rotate", "florin", "--target-kubeconfig", f.Kubeconfig, "--revoke", "--wait", "--timeout", "1m")
	}()
	var token string
	suite.WaitUntil(t, "the Secret has the new token", func() bool {
		_, token = f.hub(t)
		return token != former
	})
	f.reportToken(t, token, expires)
	if got := <-done; got.err != nil || !strings.HasSuffix(got.out, "florin ready with the new token\n") {
		t.Errorf("%v: it prints\n%s%s", got.err, got.out, got.errs)
	}
}

func (f *testFleet) rotates(t *testing.T) {
	t.Helper()
	fail(t, "the SyncTarget florin was not ready with the new token after 500ms: the hub has not taken the new token yet",
		"rotate", "florin", "--target-kubeconfig", f.Kubeconfig, "--wait", "--timeout", "500ms")
	if _, rotated := f.hub(t); rotated == f.token || f.account(t) != f.uid {
		t.Error("the token is the old one, or the identity changed")
	}
	if _, err := f.first.Discovery().ServerVersion(); err != nil {
		t.Errorf("the old token ended too early: %v", err)
	}
	succeed(t, "rotate", "florin", "--target-kubeconfig", f.Kubeconfig, "--revoke")
	if f.account(t) == f.uid {
		t.Error("the ServiceAccount is the old one")
	}
	hub, renewed := f.hub(t)
	if !allowed(t, hub, authorizationv1.ResourceAttributes{Group: "batch", Resource: "jobs", Verb: "create"}) {
		t.Error("the new one has lost its rights")
	}
	f.rotatesWithinASecond(t, renewed)
	suite.WaitUntil(t, "the old token ends", func() bool {
		_, err := f.first.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{Limit: 1})
		return apierrors.IsUnauthorized(err)
	})
}

func (f *testFleet) completes(t *testing.T) {
	t.Helper()
	if got := succeed(t, "__complete", "cordon", "flo"); !strings.HasPrefix(got.out, "florin\n") {
		t.Errorf("it offers\n%s", got.out)
	}
}

func (f *testFleet) removes(t *testing.T) {
	t.Helper()
	fail(t, "nothing was changed: give --yes", "unregister", "florin", "--target-kubeconfig", f.Kubeconfig)
	if got := succeed(t, "unregister", "florin", "--target-kubeconfig", f.Kubeconfig, "--dry-run=server"); !strings.Contains(got.errs, "The SyncTarget florin goes.") {
		t.Errorf("it does not describe the effect:\n%s", got.errs)
	}
	if len(f.versions(t)) != len(f.made()) {
		t.Error("a dry run has removed something")
	}
	succeed(t, "unregister", "florin", "--target-kubeconfig", f.Kubeconfig, "--yes")
	if versions := f.versions(t); len(versions) > 0 {
		t.Errorf("%d objects are left", len(versions))
	}
	fail(t, "there is no SyncTarget", "cordon", "florin")
}

func (f *testFleet) takesOver(t *testing.T) {
	t.Helper()
	succeed(t, "register", "florin", "--kubeconfig-only", f.Kubeconfig, "--wait=false")
	if _, handed := f.hub(t); handed != f.Config.BearerToken {
		t.Error("the hub has another kubeconfig")
	}
	if versions := f.versions(t); len(versions) != 2 {
		t.Errorf("%d objects were made", len(versions))
	}
}

func takesStates(t *testing.T, f *testFleet) {
	t.Helper()
	for _, step := range []struct {
		command, text string
		want          edgev2alpha1.SyncTargetSpec
	}{
		{"cordon", "florin cordoned", edgev2alpha1.SyncTargetSpec{Unschedulable: true}},
		{"cordon", "florin already cordoned", edgev2alpha1.SyncTargetSpec{Unschedulable: true}},
		{"suspend", "florin suspended", edgev2alpha1.SyncTargetSpec{Unschedulable: true, Suspend: true}},
		{"drain", "florin draining", edgev2alpha1.SyncTargetSpec{Unschedulable: true, Drain: true, Suspend: true}},
		{"resume", "florin resumed", edgev2alpha1.SyncTargetSpec{Unschedulable: true, Drain: true}},
		{"uncordon", "florin uncordoned", edgev2alpha1.SyncTargetSpec{}},
	} {
		if got := succeed(t, step.command, "florin", "--dry-run=client"); !strings.Contains(got.out, " (client dry run)") {
			t.Errorf("%s in a dry run prints %s", step.command, got.out)
		}
		if got := succeed(t, step.command, "florin"); !strings.HasSuffix(got.out, step.text+"\n") {
			t.Errorf("%s prints %s", step.command, got.out)
		}
		spec := f.syncTarget(t).Spec
		if spec.Unschedulable != step.want.Unschedulable || spec.Drain != step.want.Drain || spec.Suspend != step.want.Suspend {
			t.Errorf("after %s the spec is %+v", step.command, spec)
		}
	}
	waits(t, f)
	succeed(t, "drain", "florin")
	syncTarget := f.syncTarget(t)
	syncTarget.Status.Cleanup = &edgev2alpha1.CleanupStatus{Remaining: new(int32(3)), Removed: 2}
	if err := f.admin.Status().Update(t.Context(), syncTarget); err != nil {
		t.Fatal(err)
	}
	fail(t, "3 objects still to go, 2 gone", "drain", "florin", "--wait", "--timeout", "500ms")
	syncTarget.Status.Cleanup = &edgev2alpha1.CleanupStatus{Removed: 5, Left: []edgev2alpha1.LeftObject{{Resource: "namespaces", Name: "shop", Reason: "Ensured"}}}
	if err := f.admin.Status().Update(t.Context(), syncTarget); err != nil {
		t.Fatal(err)
	}
	f.report(t, metav1.ConditionTrue, edgev2alpha1.ConditionDrained)
	if got := succeed(t, "drain", "florin", "--wait"); !strings.HasSuffix(got.out, "florin drained\n") || !strings.Contains(got.errs, "namespaces shop stays: Ensured") {
		t.Errorf("it prints\n%s%s", got.out, got.errs)
	}
	succeed(t, "uncordon", "florin")
}
