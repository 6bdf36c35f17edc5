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
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/provider/redact"
	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
)

// renewTimeout bounds each of the requests that renew a token.
const renewTimeout = 10 * time.Second

// ErrKubeconfigChanged means that a token is not renewed, because the connection uses another kubeconfig.
var ErrKubeconfigChanged = errors.New("the kubeconfig has changed in the meantime")

var serviceAccountsResource = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}

// BearerToken is the token of a connection, which it can renew.
type BearerToken struct {
	env    *environment
	client *client
	// token is secret.
	token string

	lock sync.Mutex
	// running is true during a renewal. result is nil before its answer, and after it was returned.
	running bool
	result  *renewalResult
}

// Claims returns the claims of the connection's token; ok is false if there is no token that expires.
func (t *BearerToken) Claims() (claimed kubeconfig.Token, ok bool) {
	return kubeconfig.ParseToken(t.token)
}

// renew requests a new token for the connection's ServiceAccount, and verifies by a request that the target accepts it.
// renew returns the kubeconfig with the new token.
func (t *BearerToken) renew(ctx context.Context, content []byte) ([]byte, error) {
	ctx = requestclass.With(ctx, requestclass.Background)
	config, err := kubeconfig.Parse(content)
	if err != nil {
		return nil, err
	}
	if config.BearerToken != t.token {
		return nil, ErrKubeconfigChanged
	}
	claimed, ok := t.Claims()
	if !ok {
		return nil, errors.New("the token does not belong to a ServiceAccount, or does not expire")
	}
	token, err := t.request(ctx, claimed)
	if err != nil {
		return nil, fmt.Errorf("cannot request a token for the ServiceAccount %s/%s: %w", claimed.Namespace, claimed.ServiceAccount, err)
	}
	defer redact.Register(token)()
	if err := t.verify(ctx, token); err != nil {
		return nil, fmt.Errorf("the target does not accept the token that it issued: %w", err)
	}
	return kubeconfig.ReplaceToken(content, token)
}

// RenewAsync is renew for callers that must not wait. It returns [ErrPending] until the target has
// answered, and a change is published then. Each result is returned once, and only for the kubeconfig of its request.
func (t *BearerToken) RenewAsync(content []byte) ([]byte, error) {
	fingerprint := sha256.Sum256(content)
	t.lock.Lock()
	defer t.lock.Unlock()
	result := t.result
	if t.result = nil; result != nil && result.fingerprint == fingerprint {
		return result.kubeconfig, result.err
	}
	if !t.running {
		t.running = true
		t.env.runInBackground(func(ctx context.Context) {
			renewed, err := t.renew(ctx, content)
			t.lock.Lock()
			t.running, t.result = false, &renewalResult{fingerprint: fingerprint, kubeconfig: renewed, err: err}
			t.lock.Unlock()
			t.env.changed()
		})
	}
	return nil, ErrPending
}

// renewalResult is the result of a renewal; fingerprint identifies the kubeconfig before the renewal.
type renewalResult struct {
	fingerprint [sha256.Size]byte
	kubeconfig  []byte
	err         error
}

// request requests a token of the same lifetime and audiences.
func (t *BearerToken) request(ctx context.Context, claimed kubeconfig.Token) (string, error) {
	ctx, done := withTimeout(ctx, renewTimeout)
	defer done()
	request := &authenticationv1.TokenRequest{
		ObjectMeta: metav1.ObjectMeta{Name: claimed.ServiceAccount},
		Spec:       authenticationv1.TokenRequestSpec{Audiences: claimed.Audiences, ExpirationSeconds: new(int64(claimed.Lifetime() / time.Second))},
	}
	kind := authenticationv1.SchemeGroupVersion.WithKind("TokenRequest")
	if err := t.client.create(ctx, serviceAccountsResource, claimed.Namespace, kind, request, "token"); err != nil {
		return "", err
	}
	token := request.Status.Token
	if issued, ok := kubeconfig.ParseToken(token); !ok || issued.Namespace != claimed.Namespace || issued.ServiceAccount != claimed.ServiceAccount {
		return "", errors.New("the answer has no token of this ServiceAccount")
	}
	return token, nil
}

// verify gets the version with a token. Every user may do so, but an API server refuses unknown tokens.
func (t *BearerToken) verify(ctx context.Context, token string) error {
	ctx, done := withTimeout(ctx, renewTimeout)
	defer done()
	// The transport adds the connection's own token only to requests that have none.
	return t.client.discovery.RESTClient().Get().AbsPath("/version").MaxRetries(0).SetHeader("Authorization", "Bearer "+token).Do(ctx).Error()
}
