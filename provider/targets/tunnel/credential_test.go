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
	"crypto/x509"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestCredentials(t *testing.T) {
	g := NewWithT(t)
	first, err := NewCredential()
	g.Expect(err).NotTo(HaveOccurred())
	now := time.Now()
	second, err := first.Rotate(now.Add(time.Hour))
	g.Expect(err).NotTo(HaveOccurred())
	stored, err := second.Marshal()
	g.Expect(err).NotTo(HaveOccurred())
	parsed, err := ParseCredential(stored)
	g.Expect(err).NotTo(HaveOccurred())
	accepted := parsed.accepted()
	g.Expect(accepted.accept(hashToken(second.Token), now)).To(BeTrue())
	g.Expect(accepted.accept(hashToken(first.Token), now)).To(BeTrue())
	g.Expect(accepted.accept(hashToken(first.Token), now.Add(2*time.Hour))).To(BeFalse())
	g.Expect(accepted.accept(hashToken(""), now)).To(BeFalse())
	g.Expect(first.accepted().accept(tokenHash{}, now)).To(BeFalse())
	g.Expect(acceptedTokens{}.accept(hashToken(""), now)).To(BeFalse())

	for name, content := range map[string]string{
		"nothing": "", "no JSON": "token", "a kubeconfig": "apiVersion: v1\nkind: Config\n", "no token": "{}", "a short one": `{"token":"YWJj"}`,
		"a wrong previous one": `{"token":"` + first.Token + `","previous":"x"}`, "too much": `{"token":"` + first.Token + `","x":"` + strings.Repeat("x", maxCredentialBytes) + `"}`,
	} {
		if _, err := ParseCredential([]byte(content)); err == nil || strings.Contains(err.Error(), "YWJj") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func FuzzParseCredential(f *testing.F) {
	f.Add([]byte(`{"token":"x"}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		if credential, err := ParseCredential(content); err == nil && !isToken(credential.Token) {
			t.Errorf("accepted %q", content)
		}
	})
}

func TestAuthority(t *testing.T) {
	g := NewWithT(t)
	stored, err := newAuthoritySecret()
	g.Expect(err).NotTo(HaveOccurred())
	clock := clocktesting.NewFakePassiveClock(time.Now())
	authority, err := parseAuthority(stored, "hub.example.com", clock)
	g.Expect(err).NotTo(HaveOccurred())
	roots := x509.NewCertPool()
	g.Expect(roots.AppendCertsFromPEM(authority.PEM())).To(BeTrue())
	issued := func() *x509.Certificate {
		serving, err := authority.GetCertificate(nil)
		g.Expect(err).NotTo(HaveOccurred())
		parsed, err := x509.ParseCertificate(serving.Certificate[0])
		g.Expect(err).NotTo(HaveOccurred())
		_, err = parsed.Verify(x509.VerifyOptions{Roots: roots, DNSName: "hub.example.com", CurrentTime: clock.Now()})
		g.Expect(err).NotTo(HaveOccurred())
		return parsed
	}
	first := issued()
	g.Expect(issued().SerialNumber).To(Equal(first.SerialNumber))
	clock.SetTime(clock.Now().Add(certificateLifetime))
	g.Expect(issued().SerialNumber).NotTo(Equal(first.SerialNumber))

	for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		broken := stored.DeepCopy()
		broken.Data[key] = []byte("x")
		_, err = parseAuthority(broken, "hub.example.com", clock)
		g.Expect(err).To(MatchError(ContainSubstring("delete it, and the hub makes another authority")))
	}
}
