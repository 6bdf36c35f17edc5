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

package redact

import (
	"encoding/base64"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	// prefixLength is how much of the beginning of a credential is taken for it, where that takes nothing from others.
	prefixLength = 16
	// minCredentialLength is how long a credential of anybody must be to be withheld from all texts.
	minCredentialLength = 32
	// maxCredentialLength is how long a credential of a kubeconfig may be.
	maxCredentialLength = 32 << 10
)

// Credentials are those of one connection. They are withheld from what comes over it, also where only the beginning of one is
// left. Nil are none.
type Credentials struct{ encodings []string }

// CredentialsOf returns the credentials of a connection; empty ones are ignored.
func CredentialsOf(values ...string) *Credentials { return &Credentials{encodingsOf(values)} }

// encodingsOf returns credentials as they are, and in base64.
func encodingsOf(values []string) (forms []string) {
	for _, value := range values {
		if value != "" {
			forms = append(forms, value, base64.StdEncoding.EncodeToString([]byte(value)))
		}
	}
	return forms
}

func (c *Credentials) mask(text string) string {
	if c == nil {
		return text
	}
	for _, form := range c.encodings {
		text = maskCredential(text, form)
	}
	return text
}

// registered are credentials of this process that are withheld from all texts, whichever way they come.
var registered credentialRegistry

// credentialRegistry are credentials with the number of those who use them. Texts are made fit to be shown far more often than credentials
// change, and each takes one look per credential, so that the map is copied when it changes and read without a lock.
type credentialRegistry struct {
	lock       sync.Mutex
	references map[registeredCredential]int
	snapshot   atomic.Pointer[[]registeredCredential]
}

type registeredCredential struct {
	text string
	// isHubs is true of the hub's own.
	isHubs bool
}

// Register has the values withheld from all texts until release is called, as they are and in base64. Only those count that can
// be nothing else than credentials, and only as a whole: anybody who registers a cluster chooses one, and must not be able to
// take words or names out of what others read.
func Register(values ...string) (release func()) {
	var all []registeredCredential
	for _, form := range encodingsOf(values) {
		if looksRandom(form) {
			all = append(all, registeredCredential{text: form})
		}
	}
	return registered.add(all)
}

// RegisterHub does so for credentials of the hub, which its operator has chosen, if they are not short.
func RegisterHub(values ...string) (release func()) {
	var all []registeredCredential
	for _, form := range encodingsOf(values) {
		if len(form) >= prefixLength {
			all = append(all, registeredCredential{text: form, isHubs: true})
		}
	}
	return registered.add(all)
}

// looksRandom tells whether a text is long, without a space, and changes between small letters, capitals and digits as often as
// random ones do: in words, names, paths and UIDs with names before them, that is seldom so.
func looksRandom(text string) bool {
	changes, class := 0, byte(0)
	for i := range len(text) {
		if !isTokenChar(text[i]) {
			return false
		}
		if next := charClass(text[i]); next != 0 && next != class {
			changes, class = changes+1, next
		}
	}
	return len(text) >= minCredentialLength && changes > len(text)/3
}

// charClass tells small letters, capitals and digits apart; of other characters it returns 0.
func charClass(c byte) byte {
	switch {
	case 'a' <= c && c <= 'z':
		return 'a'
	case 'A' <= c && c <= 'Z':
		return 'A'
	case '0' <= c && c <= '9':
		return '0'
	default:
		return 0
	}
}

func (s *credentialRegistry) add(all []registeredCredential) (release func()) {
	s.change(all, 1)
	return sync.OnceFunc(func() { s.change(all, -1) })
}

func (s *credentialRegistry) change(all []registeredCredential, by int) {
	if len(all) == 0 {
		return
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.references == nil {
		s.references = map[registeredCredential]int{}
	}
	for _, one := range all {
		if s.references[one] += by; s.references[one] <= 0 {
			delete(s.references, one)
		}
	}
	known := make([]registeredCredential, 0, len(s.references))
	for one := range s.references {
		known = append(known, one)
	}
	s.snapshot.Store(&known)
}

// mask takes credentials out of a text, and what begins like one of the hub.
func (s *credentialRegistry) mask(text string) string {
	known := s.snapshot.Load()
	if known == nil || len(text) < prefixLength {
		return text
	}
	for _, one := range *known {
		if one.isHubs {
			text = maskCredential(text, one.text)
		} else {
			text = strings.ReplaceAll(text, one.text, maskedText)
		}
	}
	return text
}

// maskCredential takes one credential out of a text, with all that could belong to it: several may begin alike.
func maskCredential(text, secret string) string {
	if len(secret) < prefixLength {
		return strings.ReplaceAll(text, secret, maskedText)
	}
	at := strings.Index(text, secret[:prefixLength])
	if at < 0 {
		return text
	}
	var left strings.Builder
	for ; at >= 0; at = strings.Index(text, secret[:prefixLength]) {
		end := at + prefixLength
		for end < len(text) && (end-at < len(secret) && text[end] == secret[end-at] || isTokenChar(text[end])) {
			end++
		}
		left.WriteString(text[:at] + maskedText)
		text = text[end:]
	}
	return left.String() + text
}

// isTokenChar tells whether a token may hold the character.
func isTokenChar(c byte) bool { return charClass(c) != 0 || strings.IndexByte("-._~+/=", c) >= 0 }
