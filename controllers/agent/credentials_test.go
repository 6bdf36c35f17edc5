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

package agent

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

var agentSecret = types.NamespacedName{Namespace: "agent", Name: "agent"}

// tokenOf returns a token of a ServiceAccount that lasts for an hour.
func tokenOf(account string, issued time.Time) string {
	claims := fmt.Sprintf(`{"iat": %d, "exp": %d, "aud": "kcp", "kubernetes.io": {"namespace": "synchub-agent", "serviceaccount": {"name": "synchub-agent", "uid": %q}}}`,
		issued.Unix(), issued.Add(time.Hour).Unix(), account)
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}

// secretsFixture is the agent's Secret in its cluster, with the credentials that were read from it.
type secretsFixture struct {
	*fake.Clientset
	credentials *Credentials
}

func newSecretsFixture(t *testing.T, kubeconfig []byte) *secretsFixture {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: agentSecret.Namespace, Name: agentSecret.Name}, Data: map[string][]byte{
		edgev2alpha1.AgentKeyField: key, edgev2alpha1.MarkKeyField: key, KubeconfigKey: kubeconfig,
	}}
	f := &secretsFixture{Clientset: fake.NewClientset(secret)}
	f.load(t)
	return f
}

// load reads the Secret as an agent does that starts.
func (f *secretsFixture) load(t *testing.T) {
	t.Helper()
	var err error
	if f.credentials, err = LoadCredentials(t.Context(), f.CoreV1(), agentSecret, kcp.Limits{}); err != nil {
		t.Fatal(err)
	}
}

// set changes the Secret.
func (f *secretsFixture) set(t *testing.T, field string, content []byte) {
	t.Helper()
	secrets := f.CoreV1().Secrets(agentSecret.Namespace)
	secret, err := secrets.Get(t.Context(), agentSecret.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	secret.Data[field] = content
	if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// token returns the token that the agent uses.
func (f *secretsFixture) token(t *testing.T) string {
	t.Helper()
	config, err := kubeconfig.Parse(f.credentials.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return config.BearerToken
}

// newKCP returns a server that issues a token on request, and how to make a kubeconfig for a mailbox there.
func newKCP(t *testing.T, issued string) (requests *int, kubeconfigFor func(mailbox, token string) []byte) {
	t.Helper()
	requests = new(int)
	server := suite.ServeTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			http.Error(w, "no", http.StatusNotFound)
			return
		}
		*requests++
		w.Header().Set("Content-Type", "application/json")
		answer := authenticationv1.TokenRequest{TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest"}}
		answer.Status.Token = issued
		_ = json.NewEncoder(w).Encode(answer)
	}))
	return requests, func(mailbox, token string) []byte {
		return suite.Kubeconfig(t, server.URL+"/clusters/"+mailbox, suite.CertificateOf(server), token)
	}
}

// Whoever upgrades the agent, or a GitOps tool, applies the manifest with the first token again.
func TestARenewedTokenSurvivesTheManifest(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	first, renewed := tokenOf("a", start), tokenOf("a", start.Add(45*time.Minute))
	requests, kubeconfigFor := newKCP(t, renewed)
	f := newSecretsFixture(t, kubeconfigFor("2x7fz9k1", first))
	renew := func(after time.Duration) {
		t.Helper()
		if err := f.credentials.renew(t.Context(), f.CoreV1(), start.Add(after)); err != nil {
			t.Fatal(err)
		}
	}
	renew(10 * time.Minute)
	if *requests != 0 || f.token(t) != first {
		t.Errorf("%d requests before a renewal is due", *requests)
	}
	renew(45 * time.Minute)
	if *requests != 1 || f.token(t) != renewed {
		t.Errorf("%d requests, and the token is the renewed one: %v", *requests, f.token(t) == renewed)
	}
	f.set(t, KubeconfigKey, kubeconfigFor("2x7fz9k1", first))
	renew(70 * time.Minute)
	if *requests != 1 || f.token(t) != renewed {
		t.Error("the manifest was applied again, and the renewed token is not used")
	}
	if f.load(t); f.token(t) != renewed {
		t.Error("an agent that starts does not use the renewed token")
	}
	for name, token := range map[string]string{"a later one": tokenOf("a", start.Add(50*time.Minute)), "another ServiceAccount": tokenOf("b", start.Add(20*time.Minute))} {
		f.set(t, KubeconfigKey, kubeconfigFor("2x7fz9k1", token))
		if renew(51 * time.Minute); f.token(t) != token {
			t.Errorf("%s: the token of a new manifest is not used", name)
		}
	}
}

func TestAnAgentStartsAgainWithOtherCredentials(t *testing.T) {
	_, kubeconfigFor := newKCP(t, "")
	_, elsewhere := newKCP(t, "")
	other := bytes.Repeat([]byte{2}, len(key))
	for name, test := range map[string]struct {
		field   string
		content []byte
		restart bool
	}{
		"mailbox":   {KubeconfigKey, kubeconfigFor("other", "token"), true},
		"server":    {KubeconfigKey, elsewhere("2x7fz9k1", "token"), true},
		"token":     {KubeconfigKey, kubeconfigFor("2x7fz9k1", "other"), false},
		"agent key": {edgev2alpha1.AgentKeyField, other, true},
		"mark key":  {edgev2alpha1.MarkKeyField, other, true},
	} {
		f := newSecretsFixture(t, kubeconfigFor("2x7fz9k1", "token"))
		f.set(t, test.field, test.content)
		if err := f.credentials.renew(t.Context(), f.CoreV1(), time.Now()); errors.Is(err, ErrRestart) != test.restart || !test.restart && err != nil {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// An unusable kubeconfig must not keep the token so far from being renewed.
func TestATokenIsRenewedBesideAnUnusableKubeconfig(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	renewed := tokenOf("a", start.Add(time.Hour))
	requests, kubeconfigFor := newKCP(t, renewed)
	f := newSecretsFixture(t, kubeconfigFor("2x7fz9k1", tokenOf("a", start)))
	f.set(t, KubeconfigKey, []byte("unusable"))
	if err := f.credentials.renew(t.Context(), f.CoreV1(), start.Add(50*time.Minute)); err == nil || *requests != 1 || f.token(t) != renewed {
		t.Errorf("got %v after %d requests", err, *requests)
	}
}

// The token of an agent that waits may have ended, so that only another manifest helps.
func TestAWaitingAgentReadsItsSecretAgain(t *testing.T) {
	_, kubeconfigFor := newKCP(t, "")
	f := newSecretsFixture(t, kubeconfigFor("2x7fz9k1", "ended"))
	f.set(t, edgev2alpha1.AgentKeyField, bytes.Repeat([]byte{2}, len(key)))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := AwaitAssignment(ctx, f.credentials, f.CoreV1(), logr.Discard()); !errors.Is(err, ErrRestart) {
		t.Errorf("got %v", err)
	}
}
