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
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// Clients of tests and of the demo are never throttled; client-go's default is five requests per second.
const (
	clientQPS   = 2000
	clientBurst = 4000
)

// user is a line of a static token file.
type user struct {
	name, token string
	groups      []string
}

func newUser(name string, groups ...string) user {
	return user{name: name, token: rand.Text(), groups: groups}
}

// pki holds the paths of a server's certificate and keys, and the CA bundle for its clients.
type pki struct {
	certFile, keyFile string
	// saKeyFile is the key that signs ServiceAccount tokens.
	saKeyFile string
	ca        []byte
}

// newPKI writes a self-signed serving certificate for the loopback address and a signing key into dir.
func newPKI(dir string) (pki, error) {
	p := pki{
		certFile:  filepath.Join(dir, "serving.crt"),
		keyFile:   filepath.Join(dir, "serving.key"),
		saKeyFile: filepath.Join(dir, "service-accounts.key"),
	}
	bundle, key, err := cert.GenerateSelfSignedCertKey(loopback, []net.IP{net.ParseIP(loopback)}, []string{"localhost"})
	if err != nil {
		return pki{}, fmt.Errorf("make a serving certificate: %w", err)
	}
	p.ca = bundle
	signing, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return pki{}, fmt.Errorf("make a key for service account tokens: %w", err)
	}
	for path, content := range map[string][]byte{p.certFile: bundle, p.keyFile: key, p.saKeyFile: signing} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return pki{}, fmt.Errorf("write a credential: %w", err)
		}
	}
	return p, nil
}

// writeTokenFile writes the users in the format of --token-auth-file.
func writeTokenFile(path string, users ...user) error {
	var lines strings.Builder
	for _, u := range users {
		fmt.Fprintf(&lines, "%s,%s,%s,%q\n", u.token, u.name, u.name, strings.Join(u.groups, ","))
	}
	if err := os.WriteFile(path, []byte(lines.String()), 0o600); err != nil {
		return fmt.Errorf("write the token file: %w", err)
	}
	return nil
}

func restConfig(host string, ca []byte, token string) *rest.Config {
	return &rest.Config{
		Host:            host,
		BearerToken:     token,
		TLSClientConfig: rest.TLSClientConfig{CAData: ca},
		QPS:             clientQPS,
		Burst:           clientBurst,
	}
}

// Kubeconfig returns a kubeconfig that refers to no other file.
func Kubeconfig(cluster, host string, ca []byte, userName, token string) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters[cluster] = &clientcmdapi.Cluster{Server: host, CertificateAuthorityData: ca}
	config.AuthInfos[userName] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: userName}
	config.CurrentContext = cluster
	content, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("write the kubeconfig of %s for %s: %w", cluster, userName, err)
	}
	return content, nil
}

// SplitKubeconfig writes the certificate authority and the token of a kubeconfig to files in the directory. Without an authority, it
// returns no name of a file for that.
func SplitKubeconfig(directory string, kubeconfig []byte) (host, authorityFile, tokenFile string, err error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return "", "", "", fmt.Errorf("read a kubeconfig: %w", err)
	}
	authorityFile, tokenFile = filepath.Join(directory, "server-ca.crt"), filepath.Join(directory, "server-token")
	for name, content := range map[string][]byte{authorityFile: config.CAData, tokenFile: []byte(config.BearerToken)} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			return "", "", "", fmt.Errorf("write a part of a kubeconfig: %w", err)
		}
	}
	if len(config.CAData) == 0 {
		authorityFile = ""
	}
	return config.Host, authorityFile, tokenFile, nil
}

func writeKubeconfig(path, cluster, host string, ca []byte, u user) error {
	content, err := Kubeconfig(cluster, host, ca, u.name, u.token)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return fmt.Errorf("write a kubeconfig: %w", err)
	}
	return nil
}

// p256 is the size in bytes of each half of a signature with a ServiceAccount key.
const p256 = 32

// leeway is how long API servers accept an expired token.
const leeway = time.Minute

// signTokenUntil returns a ServiceAccount token that API servers accept until end. It was issued an hour ago, and is signed
// with the key in the file.
func signTokenUntil(token string, end time.Time, keyFile string) (string, error) {
	header, rest, _ := strings.Cut(token, ".")
	payload, _, _ := strings.Cut(rest, ".")
	content, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	claims := map[string]any{}
	if err := json.Unmarshal(content, &claims); err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	issued := end.Add(-time.Hour).Unix()
	claims["iat"], claims["nbf"], claims["exp"] = issued, issued, end.Add(-leeway).Unix()
	if content, err = json.Marshal(claims); err != nil {
		return "", fmt.Errorf("write the token: %w", err)
	}
	key, err := keyutil.PrivateKeyFromFile(keyFile)
	if err != nil {
		return "", err
	}
	signing, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return "", fmt.Errorf("%s holds a %T", keyFile, key)
	}
	signed := header + "." + base64.RawURLEncoding.EncodeToString(content)
	sum := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, signing, sum[:])
	if err != nil {
		return "", fmt.Errorf("sign the token: %w", err)
	}
	signature := make([]byte, 2*p256)
	r.FillBytes(signature[:p256])
	s.FillBytes(signature[p256:])
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}
