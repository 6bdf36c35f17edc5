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
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/agent/assignment"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/redact"
	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
)

// Keys of the agent's Secret in its own cluster.
const (
	// KubeconfigKey has the kubeconfig for the mailbox.
	KubeconfigKey = "kubeconfig"
	// RenewedTokenKey has the token by which the agent has replaced that of the kubeconfig. The manifest lacks this key, so the token stays
	// there when somebody applies the manifest again.
	RenewedTokenKey = "renewed-token"
)

// renewTimeout bounds the requests that renew the token.
const renewTimeout = 30 * time.Second

// Credentials are the content of the agent's Secret. One goroutine at a time may change them.
type Credentials struct {
	// Access makes clients for kcp.
	Access *kcp.ConfigProvider
	// Key is shared with the hub. MarkKey seals the marks of objects, so it must stay the same as long as there are any.
	Key, MarkKey []byte
	// Mailbox is the logical cluster of the mailbox.
	Mailbox string

	secret types.NamespacedName
	// server is the URL of the mailbox, and kubeconfig the one in use.
	server     string
	kubeconfig []byte
	// nextRenewal is when the Secret is read again.
	nextRenewal time.Time
}

// LoadCredentials reads the agent's Secret.
func LoadCredentials(ctx context.Context, secrets coreclient.SecretsGetter, name types.NamespacedName, limits kcp.Limits) (*Credentials, error) {
	secret, err := secrets.Secrets(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot read the agent's Secret %s: %w", name, err)
	}
	credentials := &Credentials{Key: secret.Data[edgev2alpha1.AgentKeyField], MarkKey: secret.Data[edgev2alpha1.MarkKeyField], secret: name}
	if len(credentials.Key) != assignment.KeyLength || len(credentials.MarkKey) != assignment.KeyLength {
		return nil, fmt.Errorf("the Secret %s needs %s and %s of %d bytes each: apply the manifest of `kubectl synchub register NAME --mode=agent -o yaml` again",
			name, edgev2alpha1.AgentKeyField, edgev2alpha1.MarkKeyField, assignment.KeyLength)
	}
	if credentials.kubeconfig, credentials.server, err = kubeconfigIn(secret); err != nil {
		return nil, fmt.Errorf("in the Secret %s: %w", name, err)
	}
	if credentials.Mailbox, err = mailboxOf(credentials.server); err != nil {
		return nil, fmt.Errorf("in the Secret %s: %w", name, err)
	}
	if credentials.Access, err = kcp.LoadContent(credentials.kubeconfig, limits); err != nil {
		return nil, fmt.Errorf("cannot use the kubeconfig of the Secret %s: %w", name, err)
	}
	redact.RegisterHub(string(credentials.Key), string(credentials.MarkKey))
	return credentials, nil
}

// kubeconfigIn returns the kubeconfig in the agent's Secret, and the URL of its server. It has the renewed token, unless that is another
// ServiceAccount's, or was issued before the one in the manifest.
func kubeconfigIn(secret *corev1.Secret) (content []byte, server string, err error) {
	content = secret.Data[KubeconfigKey]
	config, err := kubeconfig.Parse(content)
	if err != nil {
		return nil, "", err
	}
	stored := string(secret.Data[RenewedTokenKey])
	given, isGiven := kubeconfig.ParseToken(config.BearerToken)
	renewed, isRenewed := kubeconfig.ParseToken(stored)
	if isGiven && isRenewed && renewed.UID == given.UID && renewed.IssuedAt.After(given.IssuedAt) {
		content, err = kubeconfig.ReplaceToken(content, stored)
	}
	return content, config.Host, err
}

// mailboxOf returns the logical cluster in the URL of a workspace.
func mailboxOf(server string) (string, error) {
	parsed, err := url.Parse(server)
	if err != nil {
		return "", fmt.Errorf("its server is no URL: %w", err)
	}
	_, mailbox, ok := strings.Cut(parsed.Path, "/clusters/")
	if mailbox = strings.TrimSuffix(mailbox, "/"); !ok || mailbox == "" || strings.ContainsAny(mailbox, ":/") {
		return "", fmt.Errorf("the path of its server must be /clusters/<logical cluster of the mailbox>, not %q", parsed.Path)
	}
	return mailbox, nil
}

// renewIfDue calls renew once per renewInterval. It only logs errors, except for [ErrRestart].
func (c *Credentials) renewIfDue(ctx context.Context, secrets coreclient.SecretsGetter, now time.Time, log logr.Logger) error {
	if now.Before(c.nextRenewal) {
		return nil
	}
	c.nextRenewal = now.Add(renewInterval)
	err := c.renew(ctx, secrets, now)
	if errors.Is(err, ErrRestart) {
		return err
	}
	if err != nil && ctx.Err() == nil {
		log.Error(err, "the credentials for kcp were not renewed")
	}
	return nil
}

// renew takes over a Secret that an operator has changed, and replaces the token when a third of its lifetime is left.
func (c *Credentials) renew(ctx context.Context, secrets coreclient.SecretsGetter, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	secret, err := secrets.Secrets(c.secret.Namespace).Get(ctx, c.secret.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("cannot read the agent's Secret %s: %w", c.secret, err)
	}
	if string(secret.Data[edgev2alpha1.AgentKeyField]) != string(c.Key) || string(secret.Data[edgev2alpha1.MarkKeyField]) != string(c.MarkKey) {
		return fmt.Errorf("the Secret %s has another key: %w", c.secret, ErrRestart)
	}
	// A kubeconfig that cannot be used must not keep the token so far from being renewed.
	takeOverErr := c.takeOver(secret)
	if errors.Is(takeOverErr, ErrRestart) {
		return takeOverErr
	}
	config, err := kubeconfig.Parse(c.kubeconfig)
	if err != nil {
		return err
	}
	token, ok := kubeconfig.ParseToken(config.BearerToken)
	if !ok || now.Before(token.ExpiresAt.Add(-token.Lifetime()/3)) {
		return takeOverErr
	}
	return errors.Join(takeOverErr, c.replaceToken(ctx, secrets, secret, token))
}

// takeOver uses the kubeconfig of the agent's Secret from now on. The error is [ErrRestart] if that leads to another server or mailbox.
func (c *Credentials) takeOver(secret *corev1.Secret) error {
	content, server, err := kubeconfigIn(secret)
	switch {
	case err != nil:
		return fmt.Errorf("the changed kubeconfig of the Secret %s is not used: %w", c.secret, err)
	case server != c.server:
		return fmt.Errorf("the Secret %s leads to another server or mailbox: %w", c.secret, ErrRestart)
	}
	if _, err := c.Access.Replace(content); err != nil {
		return fmt.Errorf("the changed kubeconfig of the Secret %s is not used: %w", c.secret, err)
	}
	c.kubeconfig = content
	return nil
}

// renewInterval is how often the agent reads its Secret.
const renewInterval = time.Minute

// replaceToken requests a token of the same lifetime from kcp, and stores it before it is used.
func (c *Credentials) replaceToken(ctx context.Context, secrets coreclient.SecretsGetter, secret *corev1.Secret, claimed kubeconfig.Token) error {
	core, err := newCoreClient(c.Access.WorkspaceConfig(c.Mailbox))
	if err != nil {
		return err
	}
	answer, err := core.ServiceAccounts(claimed.Namespace).CreateToken(ctx, claimed.ServiceAccount, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: claimed.Audiences, ExpirationSeconds: new(int64(claimed.Lifetime() / time.Second))},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("cannot renew the token for kcp, which ends at %s: %w", claimed.ExpiresAt.Format(time.RFC3339), err)
	}
	content, err := kubeconfig.ReplaceToken(c.kubeconfig, answer.Status.Token)
	if err != nil {
		return err
	}
	secret.Data[RenewedTokenKey] = []byte(answer.Status.Token)
	if _, err := secrets.Secrets(secret.Namespace).Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("cannot store the renewed token in the Secret %s: %w", c.secret, err)
	}
	if _, err := c.Access.Replace(content); err != nil {
		return err
	}
	c.kubeconfig = content
	return nil
}

// newCoreClient returns a client for the core group.
func newCoreClient(config *rest.Config) (*coreclient.CoreV1Client, error) {
	core, err := coreclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for %s: %w", config.Host, err)
	}
	return core, nil
}

// kubeconfigOf returns a kubeconfig with the content of the files that a Pod's configuration names.
func kubeconfigOf(config *rest.Config) ([]byte, error) {
	authority, token := config.CAData, config.BearerToken
	if config.CAFile != "" {
		content, err := os.ReadFile(config.CAFile)
		if err != nil {
			return nil, fmt.Errorf("cannot read the certificate authority of the agent's own cluster: %w", err)
		}
		authority = content
	}
	if config.BearerTokenFile != "" {
		content, err := os.ReadFile(config.BearerTokenFile)
		if err != nil {
			return nil, fmt.Errorf("cannot read the token of the agent's Pod: %w", err)
		}
		token = strings.TrimSpace(string(content))
	}
	const name = "own"
	result := clientcmdapi.NewConfig()
	result.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: authority}
	result.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	result.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	result.CurrentContext = name
	return clientcmd.Write(*result)
}
