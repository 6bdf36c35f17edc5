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
	// prefixLength is the length of a prefix that is masked like the whole credential, where that cannot affect other
	// users.
	prefixLength = 16
	// minCredentialLength is the minimum length of a registered credential that is masked in all texts.
	minCredentialLength = 32
	// maxCredentialLength is the maximum length of a credential in a kubeconfig.
	maxCredentialLength = 32 << 10
)

// Credentials are the credentials of one connection. Its methods mask them in texts from that connection, even if only a
// prefix is left. A nil value has no credentials.
type Credentials struct{ encodings []string }

// CredentialsOf returns the credentials of a connection. It ignores empty values.
func CredentialsOf(values ...string) *Credentials { return &Credentials{encodingsOf(values)} }

// encodingsOf returns each credential as it is and in base64.
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

// registered holds the credentials of this process that are masked in all texts, from any source.
var registered credentialRegistry

// credentialRegistry counts references to credentials. Texts are masked far more often than credentials change, so each
// change makes a snapshot of the credentials. mask reads the snapshot without a lock.
type credentialRegistry struct {
	lock       sync.Mutex
	references map[registeredCredential]int
	snapshot   atomic.Pointer[[]registeredCredential]
}

type registeredCredential struct {
	text string
	// isHubs is true for the hub's own credentials.
	isHubs bool
}

// Register masks the values in all texts, as they are and in base64, until release is called. Only values that look random
// are masked, and only as a whole. A user who registers a cluster chooses its credentials, and must not be able to delete
// words or names from texts that other users read.
func Register(values ...string) (release func()) {
	var all []registeredCredential
	for _, form := range encodingsOf(values) {
		if looksRandom(form) {
			all = append(all, registeredCredential{text: form})
		}
	}
	return registered.add(all)
}

// RegisterHub is Register for the hub's own credentials, which its operator chose. It masks all but short values, and their
// prefixes too.
func RegisterHub(values ...string) (release func()) {
	var all []registeredCredential
	for _, form := range encodingsOf(values) {
		if len(form) >= prefixLength {
			all = append(all, registeredCredential{text: form, isHubs: true})
		}
	}
	return registered.add(all)
}

// looksRandom reports whether a text is long, has only token characters, and changes between lower case, upper case and
// digits as often as random text. Words, names, paths and names with UIDs rarely do.
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

// charClass returns the class of a lower-case letter, an upper-case letter or a digit, and 0 for other characters.
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

// mask masks the registered credentials in a text, and prefixes of the hub's own.
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

// maskCredential masks all occurrences of a credential or its prefix, with the token characters that follow: several
// credentials may share a prefix.
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

// isTokenChar reports whether a token may contain the character.
func isTokenChar(c byte) bool { return charClass(c) != 0 || strings.IndexByte("-._~+/=", c) >= 0 }
