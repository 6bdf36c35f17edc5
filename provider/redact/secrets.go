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
	// minSecret is how long a credential must be to be withheld from all texts: shorter ones may be words of a language, and
	// whoever registers a cluster could take words out of what others read.
	minSecret = 16
	// maxSecret is how long a credential of a kubeconfig may be.
	maxSecret = 32 << 10
	// telling is how much of the beginning of a credential is taken for it.
	telling = 16
)

// inUse are the credentials of all connections of this process.
var inUse secrets

// secrets are credentials by their first bytes. Texts are made fit to be shown far more often than credentials change, and
// each takes one look per credential, so that the map is copied when it changes and read without a lock.
type secrets struct {
	lock   sync.Mutex
	counts map[string]int
	known  atomic.Pointer[[]string]
}

// Register has the values withheld from all texts until release is called, as they are and in base64. Values of less than
// 16 bytes are ignored.
func Register(values ...string) (release func()) {
	var forms []string
	for _, value := range values {
		if len(value) >= minSecret {
			forms = append(forms, value, base64.StdEncoding.EncodeToString([]byte(value)))
		}
	}
	inUse.change(forms, 1)
	return sync.OnceFunc(func() { inUse.change(forms, -1) })
}

func (s *secrets) change(forms []string, by int) {
	if len(forms) == 0 {
		return
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.counts == nil {
		s.counts = map[string]int{}
	}
	for _, form := range forms {
		if s.counts[form] += by; s.counts[form] <= 0 {
			delete(s.counts, form)
		}
	}
	known := make([]string, 0, len(s.counts))
	for form := range s.counts {
		known = append(known, form)
	}
	s.known.Store(&known)
}

// withhold takes credentials out of a text, and what begins like one.
func (s *secrets) withhold(text string) string {
	known := s.known.Load()
	if known == nil || len(text) < telling {
		return text
	}
	for _, secret := range *known {
		text = without(text, secret)
	}
	return text
}

// without takes one credential out of a text, with all that could belong to it: several may begin alike.
func without(text, secret string) string {
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
func isOfToken(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~+/=", c) >= 0
}
