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

package ownership

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"strings"
)

const (
	// sealBytes is the length of a seal: 144 bits of an HMAC.
	sealBytes = 18
	// sealLength is the length of a seal as text.
	sealLength = sealBytes / 3 * 4
	// maxMACs bounds the MACs that are kept for reuse. Fewer are in use at the same time.
	maxMACs = 64

	sealPrefix, sealSuffix = `,"seal":"`, `"}`
)

// Sealer seals marks with the hub's key, and verifies seals. It is safe for concurrent use. A nil Sealer verifies nothing, and
// its seals never verify.
type Sealer struct {
	key []byte
	// macs are reused, because a mark is verified each time that it is read.
	macs               chan *mac
	insecureSkipVerify bool
}

// mac is a MAC with the buffers to make a seal without allocations.
type mac struct {
	hash.Hash
	text []byte
	sum  [sha256.Size]byte
	seal [sealLength]byte
}

// InsecureSealer is for programs without the key, such as the kubectl plugin: it accepts every mark. It must never decide
// about a write.
var InsecureSealer = &Sealer{insecureSkipVerify: true}

// NewSealer returns a Sealer for the key, which must be the same for all replicas of a hub. The Sealer derives its own key, so
// seals do not depend on the hashes of a [Hasher].
func NewSealer(key []byte) *Sealer {
	derived := hmac.New(sha256.New, key)
	_, _ = derived.Write([]byte("synchub.dev/mark/seal"))
	return &Sealer{key: derived.Sum(nil), macs: make(chan *mac, maxMACs)}
}

// getMAC returns a MAC for one use.
func (s *Sealer) getMAC() *mac {
	select {
	case m := <-s.macs:
		return m
	default:
		return &mac{Hash: hmac.New(sha256.New, s.key)}
	}
}

func (s *Sealer) putMAC(m *mac) {
	select {
	case s.macs <- m:
	default:
	}
}

// Seal returns the value of [MarkAnnotation]: the mark with a seal over all of it. Without the hub's key, nobody can seal another
// mark, or the same mark for another object. Equal marks give equal values.
func (o Owner) Seal(mark Mark) string {
	body := mark.encode()
	body = body[:len(body)-1]
	var text strings.Builder
	text.Grow(len(body) + len(sealPrefix) + sealLength + len(sealSuffix))
	text.Write(body)
	text.WriteString(sealPrefix)
	o.Sealer.appendSeal(&text, body)
	text.WriteString(sealSuffix)
	return text.String()
}

// EnsuredValue returns the value of [EnsuredAnnotation] for an object.
func (o Owner) EnsuredValue(self Self) string {
	return o.LabelValue() + "." + o.Sealer.sealOf(o.ensuredText(self))
}

// HasEnsured reports whether the owner created the object, according to the value of [EnsuredAnnotation].
func (o Owner) HasEnsured(value string, self Self) bool {
	label, seal, _ := strings.Cut(value, ".")
	return label == o.LabelValue() && o.Sealer.verify(seal, o.ensuredText(self))
}

// ensuredText returns the text to seal for an ensured object. It is not a prefix of any mark, and none of its parts can contain a
// slash.
func (o Owner) ensuredText(self Self) string {
	return strings.Join([]string{"ensured", o.LabelValue(), self.Group, self.Kind, self.Namespace, self.Name}, "/")
}

// SealText returns a seal over a text and its purpose. No mark, and no text of another purpose, has the same seal.
func (s *Sealer) SealText(purpose, text string) string { return s.sealOf(purpose + "/" + text) }

// VerifyText reports whether a seal is the result of [Sealer.SealText].
func (s *Sealer) VerifyText(seal, purpose, text string) bool { return s.verify(seal, purpose+"/"+text) }

// verifyMark reports whether the value of a mark has the seal over its content.
func (s *Sealer) verifyMark(text string) bool {
	if s != nil && s.insecureSkipVerify {
		return true
	}
	end := len(text) - len(sealSuffix)
	start := end - sealLength
	body := start - len(sealPrefix)
	return body > 0 && text[end:] == sealSuffix && text[body:start] == sealPrefix && s.verify(text[start:end], text[:body])
}

// verify reports whether the Sealer made the seal for the text.
func (s *Sealer) verify(seal, text string) bool {
	if s == nil || s.insecureSkipVerify {
		return s != nil
	}
	m := s.getMAC()
	defer s.putMAC(m)
	m.text = append(m.text[:0], text...)
	m.computeSeal(m.text)
	return hmac.Equal([]byte(seal), m.seal[:])
}

// sealOf returns the seal for a text; empty without a key.
func (s *Sealer) sealOf(text string) string {
	var seal strings.Builder
	s.appendSeal(&seal, []byte(text))
	return seal.String()
}

// appendSeal writes the seal for a text; nothing without a key.
func (s *Sealer) appendSeal(to *strings.Builder, text []byte) {
	if s == nil || s.insecureSkipVerify {
		return
	}
	m := s.getMAC()
	defer s.putMAC(m)
	m.computeSeal(text)
	to.Write(m.seal[:])
}

// computeSeal makes the seal for a text.
func (m *mac) computeSeal(text []byte) {
	m.Reset()
	_, _ = m.Write(text)
	base64.RawURLEncoding.Encode(m.seal[:], m.Sum(m.sum[:0])[:sealBytes])
}
