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
	"encoding/base64"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/synchub-dev/synchub/test/fixtures"
)

// tokenOf returns an unsigned JWT with these claims.
func tokenOf(claims string) string {
	return "eyJhbGciOiJSUzI1NiJ9." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2lnbmF0dXJl"
}

const hubClaims = `"kubernetes.io": {"namespace": "synchub", "serviceaccount": {"name": "hub", "uid": "u"}}`

func TestTokensOfOneSecondDiffer(t *testing.T) {
	claims := `{"iat": 1000, "exp": 4600, "jti": "%s", ` + hubClaims + `}`
	first, ok := ParseToken(tokenOf(fmt.Sprintf(claims, "a")))
	second, alsoOK := ParseToken(tokenOf(fmt.Sprintf(claims, "b")))
	if !ok || !alsoOK || first.ExpiresAt != second.ExpiresAt || first.Hash == second.Hash || len(first.Hash) != 2*hashBytes {
		t.Errorf("got %+v and %+v", first, second)
	}
}

func TestParseToken(t *testing.T) {
	want := Token{Namespace: "synchub", ServiceAccount: "hub", UID: "u", IssuedAt: time.Unix(1000, 0).UTC(), ExpiresAt: time.Unix(4600, 0).UTC(), Audiences: []string{"a", "b"}}
	one, none := want, want
	one.Audiences, none.Audiences = []string{"a"}, nil
	for name, test := range map[string]struct {
		token string
		want  *Token
	}{
		"a ServiceAccount's":   {tokenOf(`{"iat": 1000, "exp": 4600, "aud": ["a", "b"], "sub": "x", ` + hubClaims + `}`), &want},
		"for one audience":     {tokenOf(`{"iat": 1000, "exp": 4600, "aud": "a", ` + hubClaims + `}`), &one},
		"without audience":     {tokenOf(`{"iat": 1000, "exp": 4600, ` + hubClaims + `}`), &none},
		"with fractions":       {tokenOf(`{"iat": 1000.5, "exp": 4.6e3, "aud": ["a", "b"], ` + hubClaims + `}`), &want},
		"without expiry":       {tokenOf(`{"iat": 1000, ` + hubClaims + `}`), nil},
		"without issue time":   {tokenOf(`{"exp": 4600, ` + hubClaims + `}`), nil},
		"expired before issue": {tokenOf(`{"iat": 4600, "exp": 1000, ` + hubClaims + `}`), nil},
		"expiry out of range":  {tokenOf(`{"iat": 1000, "exp": 1e300, ` + hubClaims + `}`), nil},
		"negative issue time":  {tokenOf(`{"iat": -1, "exp": 4600, ` + hubClaims + `}`), nil},
		"a time in words":      {tokenOf(`{"iat": "now", "exp": 4600, ` + hubClaims + `}`), nil},
		"of another issuer":    {tokenOf(`{"iat": 1000, "exp": 4600, "email": "me@example.org"}`), nil},
		"a path as namespace":  {tokenOf(`{"iat": 1000, "exp": 4600, "kubernetes.io": {"namespace": "a/../b", "serviceaccount": {"name": "hub"}}}`), nil},
		"a path as name":       {tokenOf(`{"iat": 1000, "exp": 4600, "kubernetes.io": {"namespace": "a", "serviceaccount": {"name": "../x"}}}`), nil},
		"of another type":      {tokenOf(`{"iat": 1000, "exp": 4600, "kubernetes.io": "synchub"}`), nil},
		"no JSON":              {tokenOf(secret), nil},
		"no base64":            {"a.!.c", nil},
		"no JWT":               {secret, nil},
		"too many parts":       {tokenOf(`{"iat": 1000, "exp": 4600, `+hubClaims+`}`) + ".x", nil},
		"nothing":              {"", nil},
		"too long":             {tokenOf(`{"iat": 1000, "exp": 4600, `+hubClaims+`}`) + strings.Repeat("x", maxToken), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := ParseToken(test.token)
			got.Hash = ""
			if ok != (test.want != nil) || ok && !reflect.DeepEqual(got, *test.want) {
				t.Errorf("want %+v, got %+v, %v", test.want, got, ok)
			}
		})
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add([]byte(`{"iat": 1000, "exp": 4600, "aud": ["a"], ` + hubClaims + `}`))
	f.Add([]byte(`{"iat": 1e300, "exp": -4600, "aud": {}, "kubernetes.io": {}}`))
	f.Fuzz(func(t *testing.T, claims []byte) {
		got, ok := ParseToken(tokenOf(string(claims)))
		if !ok {
			return
		}
		if got.Lifetime() <= 0 || got.ExpiresAt.Year() > 9999 || strings.ContainsAny(got.Namespace+got.ServiceAccount, "/%?#") || got.Namespace == "" || got.ServiceAccount == "" {
			t.Errorf("accepted %+v", got)
		}
	})
}

// Only the token changes, and the rest of the text stays as its owner has written it.
func TestReplaceToken(t *testing.T) {
	before, after := tokenOf(`{"exp": 1}`), tokenOf(`{"exp": 2}`)
	long := strings.Repeat("long", 10)
	for name, test := range map[string]struct {
		user string
		// same is false if the whole kubeconfig is rewritten.
		same bool
	}{
		"plain":            {"# mine\n    token: " + before + " # until then", true},
		"quoted":           {"token: '" + before + "'", true},
		"in two places":    {"token: " + before + "\n- name: other\n  user: {token: " + before + "}", true},
		"escaped":          {`token: "` + strings.Replace(before, "e", `\u0065`, 1) + `"`, false},
		"on several lines": {"token: \"" + before[:5] + "\\\n      " + before[5:] + "\"", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			kubeconfig := strings.Replace(fixtures.Kubeconfig(goodCluster, long), "user: {"+long+"}", "user:\n    "+test.user, 1)
			config, err := Parse([]byte(kubeconfig))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(config.BearerToken).To(Equal(before))
			changed, err := ReplaceToken([]byte(kubeconfig), after)
			g.Expect(err).NotTo(HaveOccurred())
			got, err := Parse(changed)
			g.Expect(err).NotTo(HaveOccurred())
			config.BearerToken = after
			g.Expect(withoutProxy(t, got)).To(Equal(withoutProxy(t, config)))
			if replaced := strings.ReplaceAll(kubeconfig, before, after); test.same {
				g.Expect(string(changed)).To(Equal(replaced))
			} else {
				g.Expect(string(changed)).NotTo(Equal(replaced))
			}
		})
	}
}

// A token that occurs elsewhere too, such as in the server's address, must not change that.
func TestReplaceTokenChangesOnlyTheToken(t *testing.T) {
	g := NewWithT(t)
	kubeconfig := []byte(fixtures.Kubeconfig("server: https://cluster.example.org", "token: example"))
	changed, err := ReplaceToken(kubeconfig, "another")
	g.Expect(err).NotTo(HaveOccurred())
	got, err := Parse(changed)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got.Host).To(Equal("https://cluster.example.org"))
	g.Expect(got.BearerToken).To(Equal("another"))
}
