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

package servers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// validity is how long certificates of clients are valid.
const validity = 24 * time.Hour

// authority signs certificates of clients. file has its own certificate.
type authority struct {
	file        string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(file string) (authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority{}, fmt.Errorf("make the key of an authority: %w", err)
	}
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "clients"}, key)
	if err != nil {
		return authority{}, fmt.Errorf("make the certificate of an authority: %w", err)
	}
	return authority{file, certificate, key}, os.WriteFile(file, encodeCertificate(certificate.Raw), 0o600)
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der})
}

// sign returns a certificate for a user with groups, and its key.
func (a authority) sign(name string, groups ...string) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make the key of %s: %w", name, err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name, Organization: groups}, SerialNumber: serial,
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(validity),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, private.Public(), a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("sign the certificate of %s: %w", name, err)
	}
	key, err = keyutil.MarshalPrivateKeyToPEM(private)
	return encodeCertificate(der), key, err
}

// writeClient writes a certificate and its key into files that begin with the path.
func (a authority) writeClient(path, name string, groups ...string) (certificateFile, keyFile string, err error) {
	certificate, key, err := a.sign(name, groups...)
	if err != nil {
		return "", "", err
	}
	certificateFile, keyFile = path+".crt", path+".key"
	if err := os.WriteFile(certificateFile, certificate, 0o600); err != nil {
		return "", "", err
	}
	return certificateFile, keyFile, os.WriteFile(keyFile, key, 0o600)
}

// config returns the configuration of a client that has a certificate.
func (a authority) config(host string, ca []byte, name string, groups ...string) (*rest.Config, error) {
	certificate, key, err := a.sign(name, groups...)
	if err != nil {
		return nil, err
	}
	return &rest.Config{Host: host, TLSClientConfig: rest.TLSClientConfig{CAData: ca, CertData: certificate, KeyData: key}}, nil
}

// writeClientKubeconfig writes a kubeconfig with the certificate of a client.
func writeClientKubeconfig(path, cluster string, client *rest.Config) error {
	config := clientcmdapi.NewConfig()
	config.Clusters[cluster] = &clientcmdapi.Cluster{Server: client.Host, CertificateAuthorityData: client.CAData}
	config.AuthInfos[cluster] = &clientcmdapi.AuthInfo{ClientCertificateData: client.CertData, ClientKeyData: client.KeyData}
	config.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: cluster}
	config.CurrentContext = cluster
	return clientcmd.WriteToFile(*config, path)
}
