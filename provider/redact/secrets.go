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
	// telling is how much of the beginning of a credential is taken for it, where that takes nothing from others.
	telling = 16
	// minSecret is how long a credential of anybody must be to be withheld from all texts.
	minSecret = 32
	// maxSecret is how long a credential of a kubeconfig may be.
	maxSecret = 32 << 10
)

// Credentials are those of one connection. They are withheld from what comes over it, also where only the beginning of one is
// left. Nil are none.
type Credentials struct{ forms []string }

// CredentialsOf returns the credentials of a connection; empty ones are ignored.
func CredentialsOf(values ...string) *Credentials { return &Credentials{formsOf(values)} }

// formsOf returns credentials as they are, and in base64.
func formsOf(values []string) (forms []string) {
	for _, value := range values {
		if value != "" {
			forms = append(forms, value, base64.StdEncoding.EncodeToString([]byte(value)))
		}
	}
	return forms
}

func (c *Credentials) withhold(text string) string {
	if c == nil {
		return text
	}
	for _, form := range c.forms {
		text = without(text, form)
	}
	return text
}

// inUse are credentials of this process that are withheld from all texts, whichever way they come.
var inUse secrets

// secrets are credentials with the number of those who use them. Texts are made fit to be shown far more often than credentials
// change, and each takes one look per credential, so that the map is copied when it changes and read without a lock.
type secrets struct {
	lock   sync.Mutex
	counts map[secret]int
	known  atomic.Pointer[[]secret]
}

type secret struct {
	text string
	// hubs is true of the hub's own.
	hubs bool
}

// Register has the values withheld from all texts until release is called, as they are and in base64. Only those count that can
// be nothing else than credentials, and only as a whole: anybody who registers a cluster chooses one, and must not be able to
// take words or names out of what others read.
func Register(values ...string) (release func()) {
	var all []secret
	for _, form := range formsOf(values) {
		if looksRandom(form) {
			all = append(all, secret{text: form})
		}
	}
	return inUse.add(all)
}

// RegisterHub does so for credentials of the hub, which its operator has chosen, if they are not short.
func RegisterHub(values ...string) (release func()) {
	var all []secret
	for _, form := range formsOf(values) {
		if len(form) >= telling {
			all = append(all, secret{text: form, hubs: true})
		}
	}
	return inUse.add(all)
}

// looksRandom tells whether a text is long, without a space, and changes between small letters, capitals and digits as often as
// random ones do: in words, names, paths and UIDs with names before them, that is seldom so.
func looksRandom(text string) bool {
	changes, class := 0, byte(0)
	for i := range len(text) {
		if !isOfToken(text[i]) {
			return false
		}
		if next := classOf(text[i]); next != 0 && next != class {
			changes, class = changes+1, next
		}
	}
	return len(text) >= minSecret && changes > len(text)/3
}

// classOf tells small letters, capitals and digits apart; of other characters it returns 0.
func classOf(c byte) byte {
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

func (s *secrets) add(all []secret) (release func()) {
	s.change(all, 1)
	return sync.OnceFunc(func() { s.change(all, -1) })
}

func (s *secrets) change(all []secret, by int) {
	if len(all) == 0 {
		return
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.counts == nil {
		s.counts = map[secret]int{}
	}
	for _, one := range all {
		if s.counts[one] += by; s.counts[one] <= 0 {
			delete(s.counts, one)
		}
	}
	known := make([]secret, 0, len(s.counts))
	for one := range s.counts {
		known = append(known, one)
	}
	s.known.Store(&known)
}

// withhold takes credentials out of a text, and what begins like one of the hub.
func (s *secrets) withhold(text string) string {
	known := s.known.Load()
	if known == nil || len(text) < telling {
		return text
	}
	for _, one := range *known {
		if one.hubs {
			text = without(text, one.text)
		} else {
			text = strings.ReplaceAll(text, one.text, withheld)
		}
	}
	return text
}

// without takes one credential out of a text, with all that could belong to it: several may begin alike.
func without(text, secret string) string {
	if len(secret) < telling {
		return strings.ReplaceAll(text, secret, withheld)
	}
	at := strings.Index(text, secret[:telling])
	if at < 0 {
		return text
	}
	var left strings.Builder
	for ; at >= 0; at = strings.Index(text, secret[:telling]) {
		end := at + telling
		for end < len(text) && (end-at < len(secret) && text[end] == secret[end-at] || isOfToken(text[end])) {
			end++
		}
		left.WriteString(text[:at] + withheld)
		text = text[end:]
	}
	return left.String() + text
}

// isOfToken tells whether a token may hold the character.
func isOfToken(c byte) bool { return classOf(c) != 0 || strings.IndexByte("-._~+/=", c) >= 0 }
