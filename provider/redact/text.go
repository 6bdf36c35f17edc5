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
	// MaxText is the default maximum length of a text in bytes: enough for a sentence with the name of an object.
	MaxText = 256
	// maxScanned is how many bytes of a text are scanned. Text beyond them is never shown.
	maxScanned = 64 << 10
	// maskedText replaces a credential.
	maskedText = "(redacted)"
	ellipsis   = "…"
	// tailShare is the share of a truncated text that is taken from its end: one third.
	tailShare = 3
)

// credentialPattern matches credentials that are masked whether or not they are registered: values of Authorization
// headers, JSON Web Tokens or their prefixes, PEM blocks, and passwords in URLs.
var credentialPattern = regexp.MustCompile(
	`(?i)\b(?:bearer|basic)[\s:="']+[a-z0-9._~+/=-]{4,}` +
		`|eyJ[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]*)*` +
		`|-----BEGIN [A-Z0-9 ]*-----(?s:.*?(?:-----END [A-Z0-9 ]*-----|$))` +
		`|://[^/\s:@]*:[^/\s@]*@`)

// schemeInProse matches words that credentialPattern takes for a credential: "bearer token", "basic authentication".
var schemeInProse = regexp.MustCompile(`^(?i:bearer|basic)[\s:="']+[a-z]+$`)

// Text returns at most [MaxText] bytes of the text, on one line, in printable characters and without credentials. It is
// idempotent.
func Text(text string) string { return Truncate(text, MaxText) }

// Text is [Text] for a text from the connection.
func (c *Credentials) Text(text string) string { return c.Truncate(text, MaxText) }

// Truncate is [Text] with another maximum length. It cuts out the middle: API servers name the object first and the reason
// last.
func Truncate(text string, limit int) string { return (*Credentials)(nil).Truncate(text, limit) }

// Truncate is [Truncate] for a text from the connection.
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

// pemBegin and pemEnd are the boundaries of a PEM block, and pemLine is a line between them.
var (
	pemBegin = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*-----`)
	pemEnd   = regexp.MustCompile(`-----END [A-Z0-9 ]*-----`)
	pemLine  = regexp.MustCompile(`^\s*(?:[A-Za-z0-9+/=]*|(?:Proc-Type|DEK-Info): .*)\s*$`)
)

// Lines returns a text with several lines, such as a log, in printable characters and without credentials, also where a PEM block extends
// over several lines. Of a line over 64 KiB it keeps about the first 32 KiB.
func Lines(text string) string {
	var lines []string
	inBlock := false
	for line := range strings.SplitSeq(text, "\n") {
		if inBlock {
			end := pemEnd.FindStringIndex(line)
			switch {
			case end != nil:
				line, inBlock = line[end[1]:], false
			case pemLine.MatchString(line):
				continue
			default:
				inBlock = false
			}
		}
		if begins := pemBegin.FindAllStringIndex(line, -1); len(begins) > 0 {
			inBlock = !pemEnd.MatchString(line[begins[len(begins)-1][1]:])
		}
		lines = append(lines, (*Credentials)(nil).singleLine(line))
	}
	return strings.Join(lines, "\n")
}

// singleLine returns a text in one line and without credentials. Of a text over 64 KiB it keeps about the first 32 KiB.
func (c *Credentials) singleLine(text string) string {
	if len(text) > maxScanned {
		// The cut may split a credential, which is then not masked. The last maxCredentialLength bytes are dropped too, so
		// that no part of a credential from a kubeconfig is left.
		text = text[:maxScanned]
		text = c.maskAll(text)
		text = text[:max(len(text)-maxCredentialLength, 0)] + ellipsis
	} else {
		text = c.maskAll(text)
	}
	shown := Printable(text)
	if shown != text {
		// A line break within a credential hides it from the patterns, but not from a reader.
		shown = c.maskAll(shown)
	}
	return shown
}

// maskAll masks all credentials in a text from the connection.
func (c *Credentials) maskAll(text string) string {
	text = credentialPattern.ReplaceAllStringFunc(text, func(found string) string {
		if schemeInProse.MatchString(found) {
			return found
		}
		return maskedText
	})
	return registered.mask(c.mask(text))
}

// Printable escapes invisible characters, and characters that change the display of other characters, as in a Go literal. It
// replaces line breaks and tabs with spaces.
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
