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

package tunnel

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

const (
	// tokenBytes is the number of random bytes in a token.
	tokenBytes = 32
	// maxCredentialBytes bounds the stored value.
	maxCredentialBytes = 4 << 10
)

// Credential is the value in the Secret of a SyncTarget with a tunnel, stored as JSON. It decides which clients may connect.
type Credential struct {
	// Token is the token of the latest manifest.
	Token string `json:"token"`
	// Previous is the previous token. It is accepted until PreviousUntil, so that a rotation causes no gap.
	Previous      string    `json:"previous,omitempty"`
	PreviousUntil time.Time `json:"previousUntil,omitzero"`
}

// NewCredential returns a credential with a random token.
func NewCredential() (Credential, error) {
	random := make([]byte, tokenBytes)
	if _, err := rand.Read(random); err != nil {
		return Credential{}, fmt.Errorf("cannot make a token: %w", err)
	}
	return Credential{Token: base64.RawURLEncoding.EncodeToString(random)}, nil
}

// Rotate returns a credential with a new token, which accepts the present one until the given time.
func (c Credential) Rotate(previousUntil time.Time) (Credential, error) {
	next, err := NewCredential()
	next.Previous, next.PreviousUntil = c.Token, previousUntil.UTC().Truncate(time.Second)
	return next, err
}

// Marshal returns the value for the Secret.
func (c Credential) Marshal() ([]byte, error) { return json.Marshal(c) }

// errCredential does not quote the stored value.
var errCredential = errors.New("the value is not one that `kubectl synchub register NAME --tunnel -o yaml` wrote; run that command again")

// ParseCredential returns the credential that a Secret holds. Its error does not quote the value.
func ParseCredential(stored []byte) (Credential, error) {
	var credential Credential
	if len(stored) > maxCredentialBytes || json.Unmarshal(stored, &credential) != nil {
		return Credential{}, errCredential
	}
	if !isToken(credential.Token) || credential.Previous != "" && !isToken(credential.Previous) {
		return Credential{}, errCredential
	}
	return credential, nil
}

func isToken(text string) bool {
	random, err := base64.RawURLEncoding.DecodeString(text)
	return err == nil && len(random) == tokenBytes
}

// tokenHash is the hash of a token. The hub keeps only the hash.
type tokenHash [sha256.Size]byte

func hashToken(token string) tokenHash { return sha256.Sum256([]byte(token)) }

// equal compares in constant time.
func (h tokenHash) equal(other tokenHash) bool {
	return subtle.ConstantTimeCompare(h[:], other[:]) == 1
}

// acceptedTokens are the tokens that clients of one SyncTarget may use.
type acceptedTokens struct {
	current, previous tokenHash
	// previousUntil is zero if there is no previous token.
	previousUntil time.Time
}

func (c Credential) accepted() acceptedTokens {
	tokens := acceptedTokens{current: hashToken(c.Token)}
	if c.Previous != "" {
		tokens.previous, tokens.previousUntil = hashToken(c.Previous), c.PreviousUntil
	}
	return tokens
}

// accept reports whether a token is valid now.
func (t acceptedTokens) accept(presented tokenHash, now time.Time) bool {
	isPrevious := t.previous.equal(presented) && now.Before(t.previousUntil)
	return t.current.equal(presented) || isPrevious
}
