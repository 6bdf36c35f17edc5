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

package targets

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// createServiceAccount makes a ServiceAccount that may renew its token, or not, and returns a kubeconfig with a token of ten minutes.
func createServiceAccount(t *testing.T, target *servers.Target, name string, mayRenew bool) []byte {
	t.Helper()
	g := NewWithT(t)
	manifest := "{apiVersion: v1, kind: ServiceAccount, metadata: {name: %[1]s}}"
	if mayRenew {
		manifest += `
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: %[1]s}
rules: [{apiGroups: [""], resources: [serviceaccounts/token], resourceNames: [%[1]s], verbs: [create]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: %[1]s}
subjects: [{kind: ServiceAccount, name: %[1]s, namespace: default}]`
	}
	g.Expect(framework.Apply(t.Context(), target.Config, fmt.Sprintf(manifest, name))).To(Succeed())
	client, err := kubernetes.NewForConfig(target.Config)
	g.Expect(err).NotTo(HaveOccurred())
	issued, err := client.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), name,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(600))}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	return []byte(strings.ReplaceAll(string(kubeconfigAt(t, target, target.Config.Host)), target.Config.BearerToken, issued.Status.Token))
}

func TestTokenIsRenewedByItsTarget(t *testing.T) {
	g := NewWithT(t)
	target := steady(t)
	kubeconfig := createServiceAccount(t, target, "renews", true)
	connection := connectTo(t, kubeconfig)
	old, ok := connection.Token.Claims()
	g.Expect(ok).To(BeTrue())
	g.Expect([]string{old.Namespace, old.ServiceAccount}).To(Equal([]string{"default", "renews"}))
	g.Expect(old.Lifetime()).To(Equal(10 * time.Minute))

	renewed, err := connection.Token.renew(t.Context(), kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(renewed).NotTo(Equal(kubeconfig))
	next := connectTo(t, renewed)
	fresh, ok := next.Token.Claims()
	g.Expect(ok).To(BeTrue())
	g.Expect(fresh.Lifetime()).To(Equal(old.Lifetime()))
	g.Expect(fresh.Audiences).To(Equal(old.Audiences))
	g.Expect(fresh.ServiceAccount).To(Equal(old.ServiceAccount))

	// A kubeconfig that is not the connection's any more is not renewed.
	_, err = connection.Token.renew(t.Context(), renewed)
	g.Expect(errors.Is(err, ErrKubeconfigChanged)).To(BeTrue())
}

// The renewal of a token does not wait for a target that does not answer, and makes one request.
func TestRenewalDoesNotWaitForTheTarget(t *testing.T) {
	g := NewWithT(t)
	target := steady(t)
	createServiceAccount(t, target, "waits", true)
	release := make(chan struct{})
	var key atomic.Int64
	kubeconfig := newProxy(t, target, func(request *http.Request) {
		if strings.HasSuffix(request.URL.Path, "/token") {
			key.Add(1)
			<-release
		}
	})
	claims := `{"iat": 1000, "exp": 4600, "kubernetes.io": {"namespace": "default", "serviceaccount": {"name": "waits"}}}`
	old := "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2lnbmF0dXJl"
	kubeconfig = bytes.Replace(kubeconfig, []byte(secret), []byte(old), 1)
	registry := newRegistry(t.Context(), t, clock.RealClock{})
	connection, err := registry.Connect(syncTarget, kubeconfig, kcp.Limits{})
	g.Expect(err).NotTo(HaveOccurred())
	suite.Eventually(t, func(g Gomega) { g.Expect(connection.Health.IsUp()).To(BeTrue()) })

	changes := registry.changes.Load()
	for range 3 {
		_, err := connection.Token.RenewAsync(kubeconfig)
		g.Expect(err).To(MatchError(ErrPending))
	}
	close(release)
	suite.Eventually(t, func(g Gomega) { g.Expect(registry.changes.Load()).To(BeNumerically(">", changes)) })
	renewed, err := connection.Token.RenewAsync(kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(renewed)).NotTo(ContainSubstring(old))
	g.Expect(key.Load()).To(BeEquivalentTo(1))

	// A result is returned only for the kubeconfig of its request.
	_, err = connection.Token.RenewAsync(kubeconfig)
	g.Expect(err).To(MatchError(ErrPending))
	suite.Eventually(t, func(g Gomega) { g.Expect(registry.changes.Load()).To(BeNumerically(">", changes+1)) })
	_, err = connection.Token.RenewAsync(renewed)
	g.Expect(err).To(MatchError(ErrPending))
	suite.Eventually(t, func(g Gomega) {
		_, err := connection.Token.RenewAsync(renewed)
		g.Expect(err).To(MatchError(ErrKubeconfigChanged))
	})
}

func TestTokenIsNotRenewedWithoutTheRight(t *testing.T) {
	g := NewWithT(t)
	kubeconfig := createServiceAccount(t, steady(t), "keeps", false)
	connection := connectTo(t, kubeconfig)
	_, err := connection.Token.renew(t.Context(), kubeconfig)
	g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
}

// A token that the target would not accept is not written anywhere.
func TestTokenIsVerified(t *testing.T) {
	g := NewWithT(t)
	target := steady(t)
	content := createServiceAccount(t, target, "proves", true)
	connection := connectTo(t, content)
	g.Expect(connection.Token.verify(t.Context(), "e30.e30.c2lnbmF0dXJl")).NotTo(Succeed())
	config, err := kubeconfig.Parse(content)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(connection.Token.verify(t.Context(), config.BearerToken)).To(Succeed())
}

// Users see the errors of a target, so they must not contain credentials that the hub has sent.
func TestRedactErrorWithholdsCredentials(t *testing.T) {
	g := NewWithT(t)
	target := newScriptedServer(t)
	refusal := status(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)
	refusal.body = strings.Replace(refusal.body, `"no"`, `"you sent `+secret+strings.Repeat("ä", 5000)+`"`, 1)
	target.set(&target.present, refusal)
	connection, err := newRegistry(t.Context(), t, clock.RealClock{}).Connect(syncTarget, kubeconfigFor(t, target.Server), kcp.Limits{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = connection.Objects.supportsCreateByApply()
	g.Expect(err).To(HaveOccurred())
	message := connection.RedactError(err)
	g.Expect(message).To(ContainSubstring("you sent (redacted)"))
	g.Expect(len(message)).To(BeNumerically("<=", 256+len("...")))
	expectNoSecret(t, message)
}

// The address of a target is in its kubeconfig. Not every user who gets the result of a request may read the kubeconfig.
func TestRedactErrorWithholdsTheServer(t *testing.T) {
	withoutClients := &client{}
	for _, test := range []struct {
		err  error
		want string
	}{
		{context.DeadlineExceeded, "the server did not answer in time (Timeout)"},
		{io.EOF, "cannot list: EOF"},
		{errors.New("no"), "cannot list: no"},
	} {
		err := fmt.Errorf("cannot list: %w", &url.Error{Op: "Get", URL: "https://target.example.com:6443/api", Err: test.err})
		if got := withoutClients.redactError(err); got != test.want {
			t.Errorf("want %q, got %q", test.want, got)
		}
	}
}
