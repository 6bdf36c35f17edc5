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
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// MaxText is how many bytes of a server's text are shown: enough for a sentence with the name of an object.
	MaxText = 256
	// maxScanned is how much of a text is read at all. What begins after it is never shown.
	maxScanned = 64 << 10
	// maskedText takes the place of a credential.
	maskedText = "(redacted)"
	ellipsis   = "…"
	// tailShare is which part of a text that is cut is its end: a third.
	tailShare = 3
)

// credentialPattern are forms of credentials that are withheld whether or not they are in use: what an Authorization header holds,
// JSON Web Tokens or the beginning of one, PEM blocks, and passwords in URLs.
var credentialPattern = regexp.MustCompile(
	`(?i)\b(?:bearer|basic)[\s:="']+[a-z0-9._~+/=-]{4,}` +
		`|eyJ[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]*)*` +
		`|-----BEGIN [A-Z0-9 ]*-----(?s:.*?(?:-----END [A-Z0-9 ]*-----|$))` +
		`|://[^/\s:@]*:[^/\s@]*@`)

// schemeInProse is what is no credential: "bearer token", "basic authentication".
var schemeInProse = regexp.MustCompile(`^(?i:bearer|basic)[\s:="']+[a-z]+$`)

// Text returns a text fit to be shown: at most [MaxText] bytes of one line of printable characters, without credentials.
// Text of its own result is the same.
func Text(text string) string { return Truncate(text, MaxText) }

// Text is [Text] of what came over the connection.
func (c *Credentials) Text(text string) string { return c.Truncate(text, MaxText) }

// Truncate is [Text] with another length. What is too long loses its middle: API servers name the object first and the reason last.
func Truncate(text string, limit int) string { return (*Credentials)(nil).Truncate(text, limit) }

// Truncate is [Truncate] of what came over the connection.
func (c *Credentials) Truncate(text string, limit int) string {
	text = c.singleLine(text)
	if len(text) <= limit {
		return text
	}
	kept := max(limit-len(ellipsis), 0)
	head, tail := kept-kept/tailShare, len(text)-kept/tailShare
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return text[:head] + ellipsis + text[tail:]
}

// SingleLine is [Text] without a limit of its own, for texts of which most is the hub's: nothing that begins after 64 KiB is kept.
func SingleLine(text string) string { return (*Credentials)(nil).singleLine(text) }

func (c *Credentials) singleLine(text string) string {
	if len(text) > maxScanned {
		// A credential may be cut in two here. Its first part is longer than what is dropped with it only if it is no
		// credential that a kubeconfig may have.
		text = text[:maxScanned]
		text = c.maskAll(text)
		text = text[:max(len(text)-maxCredentialLength, 0)] + ellipsis
	} else {
		text = c.maskAll(text)
	}
	return Printable(text)
}

// maskAll takes credentials out of a text that came over the connection.
func (c *Credentials) maskAll(text string) string {
	text = credentialPattern.ReplaceAllStringFunc(text, func(found string) string {
		if schemeInProse.MatchString(found) {
			return found
		}
		return maskedText
	})
	return registered.mask(c.mask(text))
}

// Printable writes characters that cannot be seen, or that change how others are seen, as Go would in a literal, and all on one line.
func Printable(text string) string {
	clean := strings.IndexFunc(text, func(r rune) bool { return r == utf8.RuneError || !strconv.IsPrint(r) }) < 0
	if clean {
		return text
	}
	var escaped strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			escaped.WriteByte(' ')
		case strconv.IsPrint(r):
			escaped.WriteRune(r)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			escaped.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return escaped.String()
}
