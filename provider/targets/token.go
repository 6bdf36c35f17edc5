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
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
	"github.com/synchub-dev/synchub/provider/redact"
)

// renewTimeout bounds each of the requests that renew a token.
const renewTimeout = 10 * time.Second

// ErrKubeconfigChanged is why a token is not renewed for a kubeconfig that is not the connection's.
var ErrKubeconfigChanged = errors.New("the kubeconfig has changed meanwhile")

var serviceAccountsResource = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}

// Token is what a ServiceAccount's token says of itself. It holds nothing secret, and nothing of it is proven: it serves
// to ask for a new one in time, which the target grants or refuses.
type Token struct {
	// Namespace and ServiceAccount say whose token it is, and UID which of that name.
	Namespace, ServiceAccount string
	UID                       types.UID
	// IssuedAt and ExpiresAt bound its life.
	IssuedAt, ExpiresAt time.Time
	// Audiences are whom it is for.
	Audiences []string
}

// Lifetime is for how long the token was issued.
func (t Token) Lifetime() time.Duration { return t.ExpiresAt.Sub(t.IssuedAt) }

// ParseToken reads the claims of a ServiceAccount's token, without verifying them. ok is false for anything else, and for
// a token without an end.
func ParseToken(token string) (claimed Token, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 || len(token) > maxToken {
		return Token{}, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return Token{}, false
	}
	var claims struct {
		IssuedAt   json.Number     `json:"iat"`
		ExpiresAt  json.Number     `json:"exp"`
		Audience   json.RawMessage `json:"aud"`
		Kubernetes struct {
			Namespace      string `json:"namespace"`
			ServiceAccount struct {
				Name string    `json:"name"`
				UID  types.UID `json:"uid"`
			} `json:"serviceaccount"`
		} `json:"kubernetes.io"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return Token{}, false
	}
	account := claims.Kubernetes.ServiceAccount
	claimed = Token{Namespace: claims.Kubernetes.Namespace, ServiceAccount: account.Name, UID: account.UID, Audiences: audiences(claims.Audience)}
	// They become part of a URL.
	if len(validation.ValidateNamespaceName(claimed.Namespace, false)) > 0 || len(validation.ValidateServiceAccountName(claimed.ServiceAccount, false)) > 0 {
		return Token{}, false
	}
	var issued, expires bool
	claimed.IssuedAt, issued = parseNumericDate(claims.IssuedAt)
	claimed.ExpiresAt, expires = parseNumericDate(claims.ExpiresAt)
	return claimed, issued && expires && claimed.Lifetime() > 0
}

// lastDate is the end of the year 9999, beyond which times cannot be written into a status.
const lastDate = 253402300799

func parseNumericDate(claim json.Number) (time.Time, bool) {
	seconds, err := claim.Float64()
	if err != nil || seconds < 1 || seconds > lastDate {
		return time.Time{}, false
	}
	return time.Unix(int64(seconds), 0).UTC(), true
}

// audiences reads a claim that is a text or a list of texts.
func audiences(claim json.RawMessage) []string {
	var one string
	if json.Unmarshal(claim, &one) == nil && one != "" {
		return []string{one}
	}
	var many []string
	if json.Unmarshal(claim, &many) != nil {
		return nil
	}
	return many
}

// Token returns what the connection's token says of itself; ok is false if it has none that ends.
func (c *Connection) Token() (claimed Token, ok bool) { return ParseToken(c.bearerToken) }

// RenewToken asks the target for another token of the same kind for the connection's user, proves by a request that the
// target accepts it, and returns the kubeconfig with that token in the place of its own. The error says what was refused.
func (c *Connection) RenewToken(ctx context.Context, kubeconfig []byte) ([]byte, error) {
	ctx = requestmetrics.WithClass(ctx, requestmetrics.Background)
	config, err := ParseKubeconfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	if config.BearerToken != c.bearerToken {
		return nil, ErrKubeconfigChanged
	}
	claimed, ok := c.Token()
	if !ok {
		return nil, errors.New("the token is not that of a ServiceAccount, or has no end")
	}
	token, err := c.requestToken(ctx, claimed)
	if err != nil {
		return nil, fmt.Errorf("cannot request a token for the ServiceAccount %s/%s: %w", claimed.Namespace, claimed.ServiceAccount, err)
	}
	defer redact.Register(token)()
	if err := c.verifyToken(ctx, token); err != nil {
		return nil, fmt.Errorf("the target does not accept the token that it issued: %w", err)
	}
	return replaceToken(kubeconfig, config, token)
}

// RenewTokenAsync is [Connection.RenewToken] for whoever must not wait for the target: the error is [ErrPending] until the target
// has answered, and OnChange is called then. An answer is given once, and only for the kubeconfig that was asked with.
func (c *Connection) RenewTokenAsync(kubeconfig []byte) ([]byte, error) {
	fingerprint := sha256.Sum256(kubeconfig)
	c.tokenRenewal.lock.Lock()
	defer c.tokenRenewal.lock.Unlock()
	answer := c.tokenRenewal.result
	if c.tokenRenewal.result = nil; answer != nil && answer.kubeconfigHash == fingerprint {
		return answer.kubeconfig, answer.err
	}
	if !c.tokenRenewal.running {
		c.tokenRenewal.running = true
		c.RunInBackground(func(ctx context.Context) {
			renewed, err := c.RenewToken(ctx, kubeconfig)
			c.tokenRenewal.lock.Lock()
			c.tokenRenewal.running, c.tokenRenewal.result = false, &renewalResult{kubeconfigHash: fingerprint, kubeconfig: renewed, err: err}
			c.tokenRenewal.lock.Unlock()
			c.onChange(c.SyncTarget)
		})
	}
	return nil, ErrPending
}

// tokenRenewal is the one renewal of a token that nobody waits for.
type tokenRenewal struct {
	lock    sync.Mutex
	running bool
	// result is nil once it was taken.
	result *renewalResult
}

// renewalResult is how a renewal went that was asked for with a kubeconfig of this SHA-256.
type renewalResult struct {
	kubeconfigHash [sha256.Size]byte
	kubeconfig     []byte
	err            error
}

func (c *Connection) requestToken(ctx context.Context, claimed Token) (string, error) {
	ctx, done := withTimeout(ctx, renewTimeout)
	defer done()
	request := &authenticationv1.TokenRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: authenticationv1.SchemeGroupVersion.String(), Kind: "TokenRequest"},
		Spec:     authenticationv1.TokenRequestSpec{Audiences: claimed.Audiences, ExpirationSeconds: new(int64(claimed.Lifetime() / time.Second))},
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(request)
	if err != nil {
		return "", err
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetName(claimed.ServiceAccount)
	answer, err := c.client.Resource(serviceAccountsResource).Namespace(claimed.Namespace).Create(ctx, object, metav1.CreateOptions{}, "token")
	if err != nil {
		return "", err
	}
	token, _, _ := unstructured.NestedString(answer.Object, "status", "token")
	if issued, ok := ParseToken(token); !ok || issued.Namespace != claimed.Namespace || issued.ServiceAccount != claimed.ServiceAccount {
		return "", errors.New("the answer holds no such token")
	}
	return token, nil
}

// verifyToken asks for what anybody may ask: a server that does not know a token refuses that too.
func (c *Connection) verifyToken(ctx context.Context, token string) error {
	ctx, done := withTimeout(ctx, renewTimeout)
	defer done()
	// The transport adds the connection's own token only to requests that have none.
	return c.discovery.RESTClient().Get().AbsPath("/version").MaxRetries(0).SetHeader("Authorization", "Bearer "+token).Do(ctx).Error()
}

// replaceToken returns the kubeconfig with another token. All else stays as its owner has written it, if that is possible.
func replaceToken(kubeconfig []byte, before *rest.Config, token string) ([]byte, error) {
	changed := bytes.ReplaceAll(kubeconfig, []byte(before.BearerToken), []byte(token))
	if differsOnlyInToken(changed, before, token) {
		return changed, nil
	}
	// It was written in a way that hides it, such as over several lines.
	parsed, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, errMalformed
	}
	parsed.AuthInfos[parsed.Contexts[parsed.CurrentContext].AuthInfo].Token = token
	if changed, err = clientcmd.Write(*parsed); err != nil {
		return nil, errMalformed
	}
	if !differsOnlyInToken(changed, before, token) {
		return nil, errors.New("the token cannot be replaced in this kubeconfig")
	}
	return changed, nil
}

// differsOnlyInToken reports whether a kubeconfig leads to the same server and is the same but for its token.
func differsOnlyInToken(kubeconfig []byte, before *rest.Config, token string) bool {
	after, err := ParseKubeconfig(kubeconfig)
	if err != nil || after.BearerToken != token {
		return false
	}
	return after.Host == before.Host && after.ServerName == before.ServerName &&
		slices.Equal(after.CAData, before.CAData) && slices.Equal(after.CertData, before.CertData) && slices.Equal(after.KeyData, before.KeyData)
}
