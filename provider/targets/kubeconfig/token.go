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

package kubeconfig

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Token holds the claims of a ServiceAccount's token, which are neither secret nor verified. The hub uses them to request a new
// token in time.
type Token struct {
	// Namespace, ServiceAccount and UID identify the ServiceAccount.
	Namespace, ServiceAccount string
	UID                       types.UID
	IssuedAt, ExpiresAt       time.Time
	Audiences                 []string
	// Hash identifies the token. It is the beginning of its SHA-256 hash.
	Hash string
}

// hashBytes is the length of a token's hash.
const hashBytes = 16

// Lifetime returns the time for which the token was issued.
func (t Token) Lifetime() time.Duration { return t.ExpiresAt.Sub(t.IssuedAt) }

// ParseToken returns the claims of a ServiceAccount's token, without verifying them. ok is false for other tokens, and for
// a token that does not expire.
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
	// Both become part of a URL.
	if len(validation.ValidateNamespaceName(claimed.Namespace, false)) > 0 || len(validation.ValidateServiceAccountName(claimed.ServiceAccount, false)) > 0 {
		return Token{}, false
	}
	var issued, expires bool
	claimed.IssuedAt, issued = parseNumericDate(claims.IssuedAt)
	claimed.ExpiresAt, expires = parseNumericDate(claims.ExpiresAt)
	sum := sha256.Sum256([]byte(token))
	claimed.Hash = hex.EncodeToString(sum[:hashBytes])
	return claimed, issued && expires && claimed.Lifetime() > 0
}

// lastDate is the end of the year 9999, in Unix seconds. A status cannot hold a later time.
const lastDate = 253402300799

func parseNumericDate(claim json.Number) (time.Time, bool) {
	seconds, err := claim.Float64()
	if err != nil || seconds < 1 || seconds > lastDate {
		return time.Time{}, false
	}
	return time.Unix(int64(seconds), 0).UTC(), true
}

// audiences returns the values of a claim that is a string or a list of strings.
func audiences(claim json.RawMessage) []string {
	var single string
	if json.Unmarshal(claim, &single) == nil && single != "" {
		return []string{single}
	}
	var list []string
	if json.Unmarshal(claim, &list) != nil {
		return nil
	}
	return list
}

// ReplaceToken returns the kubeconfig with another token for its current user. It keeps all other text as it is, if possible.
func ReplaceToken(kubeconfig []byte, token string) ([]byte, error) {
	before, err := Parse(kubeconfig)
	if err != nil {
		return nil, err
	}
	changed := bytes.ReplaceAll(kubeconfig, []byte(before.BearerToken), []byte(token))
	if differsOnlyInToken(changed, before, token) {
		return changed, nil
	}
	// The token is written in another form, such as over several lines, or occurs elsewhere too.
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

// differsOnlyInToken reports whether a kubeconfig has the new token, and is otherwise the same as before.
func differsOnlyInToken(kubeconfig []byte, before *rest.Config, token string) bool {
	after, err := Parse(kubeconfig)
	if err != nil || after.BearerToken != token {
		return false
	}
	return after.Host == before.Host && after.ServerName == before.ServerName &&
		slices.Equal(after.CAData, before.CAData) && slices.Equal(after.CertData, before.CertData) && slices.Equal(after.KeyData, before.KeyData)
}
