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
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	token    = "s3cr3t-token-of-somebody-0123456789"
	another  = "s3cr3t-token-of-somebody-else-9876"
	password = "pass word with spaces"
	random   = "Zx8Qp2LmT4vRw9Ks1NhBc7Yd3Gf6JtUe"
	jwt      = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJodWIifQ.c2lnbmF0dXJl"
)

func TestText(t *testing.T) {
	t.Cleanup(Register(random))
	credentials := CredentialsOf(token, password, "short", "")
	for name, test := range map[string]struct{ text, want string }{
		"nothing":                       {"", ""},
		"a sentence":                    {`pods "a" is forbidden: exceeded quota`, `pods "a" is forbidden: exceeded quota`},
		"another language":              {"Zugriff verweigert: größer als erlaubt, 拒否", "Zugriff verweigert: größer als erlaubt, 拒否"},
		"a token in use":                {"unknown token " + token + "!", "unknown token (redacted)!"},
		"half of it":                    {"unknown token " + token[:20], "unknown token (redacted)"},
		"one that begins alike":         {"x=" + another + " y", "x=(redacted) y"},
		"two of them":                   {token + " and " + token, "(redacted) and (redacted)"},
		"in base64":                     {"got " + base64.StdEncoding.EncodeToString([]byte(token)), "got (redacted)"},
		"a password":                    {"wrong: " + password + " for me", "wrong: (redacted) for me"},
		"a short one":                   {"a short text", "a (redacted) text"},
		"a random credential":           {"got " + random + "!", "got (redacted)!"},
		"half of that":                  {"got " + random[:20], "got " + random[:20]},
		"anybody's JWT":                 {"got " + jwt + " from you", "got (redacted) from you"},
		"half of a JWT":                 {"got " + jwt[:25], "got (redacted)"},
		"an Authorization header":       {"Authorization: Bearer abcd1234", "Authorization: (redacted)"},
		"basic authentication":          {"Authorization: Basic dTpw1==, and basic authentication", "Authorization: (redacted), and basic authentication"},
		"a bearer token":                {"no bearer token was sent", "no bearer token was sent"},
		"a key":                         {"-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY----- and more", "(redacted) and more"},
		"a key with a broken header":    {"-----BEGIN\rPRIVATE KEY-----\rMIIB", "(redacted)"},
		"half of a key":                 {"got -----BEGIN EC PRIVATE KEY-----\nMIIB", "got (redacted)"},
		"a URL with a password":         {"https://me:secret@host/x", "https(redacted)host/x"},
		"colours":                       {"\x1b[31mred\x1b[0m", `\x1b[31mred\x1b[0m`},
		"lines":                         {"one\r\ntwo\tthree", "one  two three"},
		"bells and nulls":               {"\a\x00", `\a\x00`},
		"writing backwards":             {"abc\u202edef\u2066", `abc\u202edef\u2066`},
		"invisible characters":          {"a\u200bb\ufeff", `a\u200bb\ufeff`},
		"no UTF-8":                      {"a\xffb", "a\ufffdb"},
		"the reason is at the end":      {"Job x is invalid: " + strings.Repeat("v", 1000) + ": field is immutable", "Job x is invalid: " + strings.Repeat("v", 151) + "…" + strings.Repeat("v", 64) + ": field is immutable"},
		"a long one":                    {strings.Repeat("x", 300), strings.Repeat("x", 169) + "…" + strings.Repeat("x", 84)},
		"a long one of wide characters": {strings.Repeat("é", 200), strings.Repeat("é", 84) + "…" + strings.Repeat("é", 42)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := credentials.Text(test.text); got != test.want {
				t.Errorf("want %q, got %q", test.want, got)
			}
		})
	}
}

func TestLines(t *testing.T) {
	const key = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIBAQ==\n"
	for name, test := range map[string]struct{ text, want string }{
		"nothing":            {"", ""},
		"lines":              {"one\n\ntwo\n", "one\n\ntwo\n"},
		"a JWT in a line":    {"one\ngot " + jwt + " from you\ntwo", "one\ngot (redacted) from you\ntwo"},
		"a key":              {"one\n-----BEGIN PRIVATE KEY-----\n" + key + "-----END PRIVATE KEY----- and\ntwo", "one\n(redacted)\n and\ntwo"},
		"a key without end":  {"-----BEGIN PRIVATE KEY-----\n" + key + "a line of words\ntwo", "(redacted)\na line of words\ntwo"},
		"a key with headers": {"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,ABC\n\n" + key + "-----END RSA PRIVATE KEY-----\ntwo", "(redacted)\n\ntwo"},
		"two keys in a line": {"-----BEGIN A-----MIIB-----END A----- and -----BEGIN A-----\n" + key + "-----END A-----\ntwo", "(redacted) and (redacted)\n\ntwo"},
		"an escaped key":     {`{"key":"-----BEGIN A-----\nMIIB\n-----END A-----"}` + "\ntwo", `{"key":"(redacted)"}` + "\ntwo"},
		"colours":            {"\x1b[31mred\ntwo", `\x1b[31mred` + "\ntwo"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Lines(test.text); got != test.want {
				t.Errorf("want %q, got %q", test.want, got)
			}
		})
	}
}

func TestCredentialsAreForgottenWhenReleased(t *testing.T) {
	for name, register := range map[string]func(...string) func(){"anybody's": Register, "the hub's": RegisterHub} {
		first, second := register(random), register(random)
		first()
		first()
		if got := Text(random); got != maskedText {
			t.Errorf("%s: got %q while it is in use", name, got)
		}
		second()
		if got := Text(random); got == maskedText {
			t.Errorf("%s: got %q when it is no longer in use", name, got)
		}
	}
}

// A user who registers a cluster can choose any token, but cannot delete words, names and paths from texts that other users
// read. The hub's own credentials, which its operator chose, are masked even if they look like words.
func TestCredentialsRedactNoOtherText(t *testing.T) {
	for _, text := range []string{
		"ConfigMap is forbidden", "system:serviceaccount:synchub-system:synchub", "spec.template.spec.containers[0].image",
		"StatefulSet/production-database-0-of-the-shop", "payments-production-api-server-5d7f9c8b4-x7k2p", "status.containerStatuses.0.lastState",
		"https://127.0.0.1:6443/api/v1/namespaces", "(redacted)(redacted)(redacted)(redacted)", strings.Repeat("a", 40), strings.Repeat("-", 40),
	} {
		release := Register(text, text+" "+random, text+":"+random)
		if got := Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
		release()
		release = RegisterHub(text)
		if got := Text(text); !strings.Contains(got, maskedText) {
			t.Errorf("%q became %q", text, got)
		}
		release()
	}
	for _, text := range []string{random, "0123456789abcdef0a1b2c3d4e5f60718293a4b5", base64.StdEncoding.EncodeToString([]byte(token + another))} {
		release := Register(text)
		if got := Text("got " + text); got != "got (redacted)" {
			t.Errorf("got %q", got)
		}
		release()
	}
}

// A credential at the point where a text is cut leaves no part of itself.
func TestTruncationRemovesPartialCredentials(t *testing.T) {
	credentials := CredentialsOf(token)
	for before := range 300 {
		text := credentials.Text(strings.Repeat("x", before) + " " + token)
		if strings.Contains(text, token[:8]) {
			t.Fatalf("after %d bytes: %q", before, text)
		}
	}
	if text := credentials.Text(strings.Repeat(token+" ", 1<<18)); strings.Contains(text, token[:8]) || len(text) > MaxText {
		t.Errorf("got %q", text)
	}
}

func TestError(t *testing.T) {
	status := apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, strings.Repeat("x", 500))
	err := Error(status)
	if !apierrors.IsNotFound(err) || !errors.Is(err, error(status)) || len(err.Error()) > MaxText {
		t.Errorf("got %v", err)
	}
	if plain := errors.New("plain"); !errors.Is(Error(plain), plain) || Error(nil) != nil {
		t.Error("a text without credentials must stay the same")
	}
}

func TestStatus(t *testing.T) {
	name := strings.Repeat("n", 253)
	status := &metav1.Status{
		Message: `configmaps "` + name + `" is forbidden: exceeded quota: ` + strings.Repeat("x", 5<<20),
		Details: &metav1.StatusDetails{Name: name, Causes: make([]metav1.StatusCause, 1000)},
	}
	(*Credentials)(nil).Status(status, MaxText)
	if !strings.Contains(status.Message, "exceeded quota") || len(status.Message) > MaxText || len(status.Details.Causes) != maxCauses {
		t.Errorf("got %q and %d causes", status.Message, len(status.Details.Causes))
	}
}

func FuzzText(f *testing.F) {
	credentials := CredentialsOf(token, password)
	f.Cleanup(Register(random))
	for _, seed := range []string{"", token, random, jwt, "a\u202eb", "\x1b[1m", "Bearer " + token, strings.Repeat("é", 300), "://a:b@c", "-----BEGIN X-----", "-----BEGIN\r-----"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		shown := credentials.Text(text)
		if len(shown) > MaxText || !utf8.ValidString(shown) || strings.Contains(shown, token) || strings.Contains(shown, random) || strings.ContainsAny(shown, "\x1b\n\u202e") {
			t.Errorf("%q became %q", text, shown)
		}
		if again := credentials.Text(shown); again != shown {
			t.Errorf("%q became %q at first and %q then", text, shown, again)
		}
	})
}
