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
	"reflect"
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
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// tokenOf returns a token with these claims, in the form of a JWT that nobody signed.
func tokenOf(claims string) string {
	return "eyJhbGciOiJSUzI1NiJ9." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2lnbmF0dXJl"
}

const hubClaims = `"kubernetes.io": {"namespace": "synchub", "serviceaccount": {"name": "hub", "uid": "u"}}`

func TestParseToken(t *testing.T) {
	want := Token{Namespace: "synchub", ServiceAccount: "hub", UID: "u", IssuedAt: time.Unix(1000, 0).UTC(), ExpiresAt: time.Unix(4600, 0).UTC(), Audiences: []string{"a", "b"}}
	one, none := want, want
	one.Audiences, none.Audiences = []string{"a"}, nil
	for name, test := range map[string]struct {
		token string
		want  *Token
	}{
		"a ServiceAccount's":    {tokenOf(`{"iat": 1000, "exp": 4600, "aud": ["a", "b"], "sub": "x", ` + hubClaims + `}`), &want},
		"for one audience":      {tokenOf(`{"iat": 1000, "exp": 4600, "aud": "a", ` + hubClaims + `}`), &one},
		"for nobody":            {tokenOf(`{"iat": 1000, "exp": 4600, ` + hubClaims + `}`), &none},
		"with fractions":        {tokenOf(`{"iat": 1000.5, "exp": 4.6e3, "aud": ["a", "b"], ` + hubClaims + `}`), &want},
		"without an end":        {tokenOf(`{"iat": 1000, ` + hubClaims + `}`), nil},
		"without a beginning":   {tokenOf(`{"exp": 4600, ` + hubClaims + `}`), nil},
		"ended before it began": {tokenOf(`{"iat": 4600, "exp": 1000, ` + hubClaims + `}`), nil},
		"beyond all times":      {tokenOf(`{"iat": 1000, "exp": 1e300, ` + hubClaims + `}`), nil},
		"before all times":      {tokenOf(`{"iat": -1, "exp": 4600, ` + hubClaims + `}`), nil},
		"a time in words":       {tokenOf(`{"iat": "now", "exp": 4600, ` + hubClaims + `}`), nil},
		"of somebody else":      {tokenOf(`{"iat": 1000, "exp": 4600, "email": "me@example.org"}`), nil},
		"of a way out":          {tokenOf(`{"iat": 1000, "exp": 4600, "kubernetes.io": {"namespace": "a/../b", "serviceaccount": {"name": "hub"}}}`), nil},
		"of a name with a way":  {tokenOf(`{"iat": 1000, "exp": 4600, "kubernetes.io": {"namespace": "a", "serviceaccount": {"name": "../x"}}}`), nil},
		"of another form":       {tokenOf(`{"iat": 1000, "exp": 4600, "kubernetes.io": "synchub"}`), nil},
		"no JSON":               {tokenOf(secret), nil},
		"no base64":             {"a.!.c", nil},
		"no JWT":                {secret, nil},
		"too many parts":        {tokenOf(`{"iat": 1000, "exp": 4600, `+hubClaims+`}`) + ".x", nil},
		"nothing":               {"", nil},
		"an endless one":        {tokenOf(`{"iat": 1000, "exp": 4600, `+hubClaims+`}`) + strings.Repeat("x", maxToken), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := ParseToken(test.token)
			if ok != (test.want != nil) || ok && !reflect.DeepEqual(got, *test.want) {
				t.Errorf("want %+v, got %+v, %v", test.want, got, ok)
			}
		})
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add([]byte(`{"iat": 1000, "exp": 4600, "aud": ["a"], ` + hubClaims + `}`))
	f.Add([]byte(`{"iat": 1e300, "exp": -4600, "aud": {}, "kubernetes.io": {}}`))
	f.Fuzz(func(t *testing.T, claims []byte) {
		got, ok := ParseToken(tokenOf(string(claims)))
		if !ok {
			return
		}
		if got.Lifetime() <= 0 || got.ExpiresAt.Year() > 9999 || strings.ContainsAny(got.Namespace+got.ServiceAccount, "/%?#") || got.Namespace == "" || got.ServiceAccount == "" {
			t.Errorf("accepted %+v", got)
		}
	})
}

// Only the token changes, and what else its owner has written stays as it was.
func TestReplaceToken(t *testing.T) {
	before, after := tokenOf(`{"exp": 1}`), tokenOf(`{"exp": 2}`)
	long := strings.Repeat("long", 10)
	for name, test := range map[string]struct {
		user string
		// same is false if the kubeconfig is written anew.
		same bool
	}{
		"plain":            {"# mine\n    token: " + before + " # until then", true},
		"quoted":           {"token: '" + before + "'", true},
		"in two places":    {"token: " + before + "\n- name: other\n  user: {token: " + before + "}", true},
		"escaped":          {`token: "` + strings.Replace(before, "e", `\u0065`, 1) + `"`, false},
		"on several lines": {"token: \"" + before[:5] + "\\\n      " + before[5:] + "\"", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			kubeconfig := strings.Replace(kubeconfigOf(goodCluster, long), "user: {"+long+"}", "user:\n    "+test.user, 1)
			config, err := ParseKubeconfig([]byte(kubeconfig))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(config.BearerToken).To(Equal(before))
			changed, err := replaceToken([]byte(kubeconfig), config, after)
			g.Expect(err).NotTo(HaveOccurred())
			got, err := ParseKubeconfig(changed)
			g.Expect(err).NotTo(HaveOccurred())
			config.BearerToken = after
			g.Expect(withoutProxy(t, got)).To(Equal(withoutProxy(t, config)))
			if replaced := strings.ReplaceAll(kubeconfig, before, after); test.same {
				g.Expect(string(changed)).To(Equal(replaced))
			} else {
				g.Expect(string(changed)).NotTo(Equal(replaced))
			}
		})
	}
}

// A token that occurs elsewhere too, such as in the server's address, must not change that.
func TestReplaceTokenChangesNothingElse(t *testing.T) {
	g := NewWithT(t)
	kubeconfig := []byte(kubeconfigOf("server: https://cluster.example.org", "token: example"))
	config, err := ParseKubeconfig(kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	changed, err := replaceToken(kubeconfig, config, "another")
	g.Expect(err).NotTo(HaveOccurred())
	got, err := ParseKubeconfig(changed)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got.Host).To(Equal("https://cluster.example.org"))
	g.Expect(got.BearerToken).To(Equal("another"))
}

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
	old, ok := connection.Token()
	g.Expect(ok).To(BeTrue())
	g.Expect([]string{old.Namespace, old.ServiceAccount}).To(Equal([]string{"default", "renews"}))
	g.Expect(old.Lifetime()).To(Equal(10 * time.Minute))

	renewed, err := connection.RenewToken(t.Context(), kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(renewed).NotTo(Equal(kubeconfig))
	next := connectTo(t, renewed)
	fresh, ok := next.Token()
	g.Expect(ok).To(BeTrue())
	g.Expect(fresh.Lifetime()).To(Equal(old.Lifetime()))
	g.Expect(fresh.Audiences).To(Equal(old.Audiences))
	g.Expect(fresh.ServiceAccount).To(Equal(old.ServiceAccount))

	// What is not the connection's kubeconfig any more is left alone.
	_, err = connection.RenewToken(t.Context(), renewed)
	g.Expect(errors.Is(err, ErrKubeconfigChanged)).To(BeTrue())
}

// A target that does not answer holds up nobody who has its token renewed, and is asked once.
func TestRenewalWaitsForNoTarget(t *testing.T) {
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
	old := tokenOf(`{"iat": 1000, "exp": 4600, "kubernetes.io": {"namespace": "default", "serviceaccount": {"name": "waits"}}}`)
	kubeconfig = bytes.Replace(kubeconfig, []byte(secret), []byte(old), 1)
	registry := newRegistry(t.Context(), t, clock.RealClock{})
	connection, err := registry.Connect(syncTarget, kubeconfig, kcp.Limits{})
	g.Expect(err).NotTo(HaveOccurred())
	suite.Eventually(t, func(g Gomega) { g.Expect(connection.IsUp()).To(BeTrue()) })

	changes := registry.changes.Load()
	for range 3 {
		_, err := connection.RenewTokenAsync(kubeconfig)
		g.Expect(err).To(MatchError(ErrPending))
	}
	close(release)
	suite.Eventually(t, func(g Gomega) { g.Expect(registry.changes.Load()).To(BeNumerically(">", changes)) })
	renewed, err := connection.RenewTokenAsync(kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(renewed)).NotTo(ContainSubstring(old))
	g.Expect(key.Load()).To(BeEquivalentTo(1))

	// An answer is not given for another kubeconfig than it was asked with.
	_, err = connection.RenewTokenAsync(kubeconfig)
	g.Expect(err).To(MatchError(ErrPending))
	suite.Eventually(t, func(g Gomega) { g.Expect(registry.changes.Load()).To(BeNumerically(">", changes+1)) })
	_, err = connection.RenewTokenAsync(renewed)
	g.Expect(err).To(MatchError(ErrPending))
	suite.Eventually(t, func(g Gomega) {
		_, err := connection.RenewTokenAsync(renewed)
		g.Expect(err).To(MatchError(ErrKubeconfigChanged))
	})
}

func TestTokenIsNotRenewedWithoutTheRight(t *testing.T) {
	g := NewWithT(t)
	kubeconfig := createServiceAccount(t, steady(t), "keeps", false)
	connection := connectTo(t, kubeconfig)
	_, err := connection.RenewToken(t.Context(), kubeconfig)
	g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
}

// A token that the target would not accept is not written anywhere.
func TestTokenIsVerified(t *testing.T) {
	g := NewWithT(t)
	target := steady(t)
	kubeconfig := createServiceAccount(t, target, "proves", true)
	connection := connectTo(t, kubeconfig)
	g.Expect(connection.verifyToken(t.Context(), tokenOf("{}"))).NotTo(Succeed())
	config, err := ParseKubeconfig(kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(connection.verifyToken(t.Context(), config.BearerToken)).To(Succeed())
}

// What a target says reaches people, so it must not carry what the hub has sent.
func TestRedactErrorWithholdsCredentials(t *testing.T) {
	g := NewWithT(t)
	target := newScriptedServer(t)
	refusal := status(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)
	refusal.body = strings.Replace(refusal.body, `"no"`, `"you sent `+secret+strings.Repeat("ä", 5000)+`"`, 1)
	target.set(&target.present, refusal)
	connection, err := newRegistry(t.Context(), t, clock.RealClock{}).Connect(syncTarget, kubeconfigFor(t, target.Server), kcp.Limits{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = connection.supportsCreateByApply()
	g.Expect(err).To(HaveOccurred())
	message := connection.RedactError(err)
	g.Expect(message).To(ContainSubstring("you sent (redacted)"))
	g.Expect(len(message)).To(BeNumerically("<=", 256+len("...")))
	expectNoSecret(t, message)
}

// Where a target is stands in its kubeconfig, which not everybody may read who sees what became of a request.
func TestRedactErrorWithholdsTheServer(t *testing.T) {
	connection := &Connection{}
	for _, test := range []struct {
		err  error
		want string
	}{
		{context.DeadlineExceeded, "the server did not answer in time (Timeout)"},
		{io.EOF, "cannot list: EOF"},
		{errors.New("no"), "cannot list: no"},
	} {
		err := fmt.Errorf("cannot list: %w", &url.Error{Op: "Get", URL: "https://target.example.com:6443/api", Err: test.err})
		if got := connection.RedactError(err); got != test.want {
			t.Errorf("want %q, got %q", test.want, got)
		}
	}
}
