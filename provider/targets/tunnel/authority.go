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
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/utils/clock"
)

const (
	// AuthoritySecret is the name of the Secret with the certificate authority that the hub makes for its port.
	AuthoritySecret = "synchub-tunnel-ca" //nolint:gosec // the name of a Secret is no secret
	// authorityName is the common name of that authority.
	authorityName = "synchub-tunnel-ca"
	// certificateLifetime is the lifetime of a certificate for the port. It is renewed after two thirds.
	certificateLifetime = 90 * 24 * time.Hour
	// clockTolerance is how long before now a certificate becomes valid, for clusters whose clock is behind.
	clockTolerance = time.Hour
)

// Authority is the certificate authority of the hub's port. All replicas use the same one, and each makes its own certificates.
type Authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
	host        string
	clock       clock.PassiveClock

	lock    sync.Mutex
	serving *tls.Certificate
	renewAt time.Time
}

// LoadAuthority returns the authority in the Secret of the hosting cluster, and makes one if there is none. Its certificates are for the
// host.
func LoadAuthority(ctx context.Context, secrets corev1client.SecretInterface, host string, clock clock.PassiveClock) (*Authority, error) {
	stored, err := secrets.Get(ctx, AuthoritySecret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		if stored, err = newAuthoritySecret(); err == nil {
			var created *corev1.Secret
			if created, err = secrets.Create(ctx, stored, metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
				// Another replica created the Secret first.
				created, err = secrets.Get(ctx, AuthoritySecret, metav1.GetOptions{})
			}
			stored = created
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot load the certificate authority for tunnels from the Secret %s: %w", AuthoritySecret, err)
	}
	return parseAuthority(stored, host, clock)
}

func parseAuthority(stored *corev1.Secret, host string, clock clock.PassiveClock) (*Authority, error) {
	certificates, err := cert.ParseCertsPEM(stored.Data[corev1.TLSCertKey])
	if err != nil {
		return nil, fmt.Errorf("the Secret %s has no certificate in %s; delete it, and the hub makes another authority: %w", AuthoritySecret, corev1.TLSCertKey, err)
	}
	parsed, err := keyutil.ParsePrivateKeyPEM(stored.Data[corev1.TLSPrivateKeyKey])
	key, isSigner := parsed.(crypto.Signer)
	if err != nil || !isSigner {
		return nil, fmt.Errorf("the Secret %s has no private key in %s; delete it, and the hub makes another authority", AuthoritySecret, corev1.TLSPrivateKeyKey)
	}
	return &Authority{certificate: certificates[0], key: key, host: host, clock: clock}, nil
}

func newAuthoritySecret() (*corev1.Secret, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot make a key: %w", err)
	}
	authority, err := cert.NewSelfSignedCACert(cert.Config{CommonName: authorityName}, key)
	if err != nil {
		return nil, fmt.Errorf("cannot make a certificate authority: %w", err)
	}
	encodedKey, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, fmt.Errorf("cannot encode a key: %w", err)
	}
	encoded, err := cert.EncodeCertificates(authority)
	if err != nil {
		return nil, fmt.Errorf("cannot encode a certificate: %w", err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: AuthoritySecret}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: encoded, corev1.TLSPrivateKeyKey: encodedKey},
	}, nil
}

// PEM returns the certificate of the authority, for manifests.
func (a *Authority) PEM() []byte {
	encoded, err := cert.EncodeCertificates(a.certificate)
	if err != nil {
		// The certificate was parsed, so it can be encoded.
		return nil
	}
	return encoded
}

// GetCertificate returns the certificate for a connection, and makes the next one after two thirds of its lifetime.
func (a *Authority) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	a.lock.Lock()
	defer a.lock.Unlock()
	now := a.clock.Now()
	if a.serving != nil && now.Before(a.renewAt) {
		return a.serving, nil
	}
	serving, err := a.issue(now)
	if err != nil {
		return nil, err
	}
	a.serving, a.renewAt = serving, now.Add(certificateLifetime*2/3)
	return serving, nil
}

func (a *Authority) issue(now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot make a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("cannot make a serial number: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: a.host},
		NotBefore: now.Add(-clockTolerance), NotAfter: now.Add(certificateLifetime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if address := net.ParseIP(a.host); address != nil {
		template.IPAddresses = []net.IP{address}
	} else {
		template.DNSNames = []string{a.host}
	}
	encoded, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("cannot issue a certificate: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{encoded, a.certificate.Raw}, PrivateKey: key}, nil
}
