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

package targets

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Fields of a kubeconfig that several checks speak of.
const (
	fieldSyntax      = "its syntax"
	fieldServer      = "clusters.cluster.server"
	fieldCA          = "clusters.cluster.certificate-authority-data"
	fieldCertificate = "users.user.client-certificate-data"
	fieldKey         = "users.user.client-key-data"
	fieldToken       = "users.user.token"
	fieldPassword    = "users.user.password"
)

// Bounds of single values. What is longer is a mistake, or an attempt to make each request a burden.
const (
	maxServer      = 2 << 10
	maxServerName  = 253
	maxToken       = 16 << 10
	maxPassword    = 4 << 10
	maxCertificate = 32 << 10
	maxCA          = 64 << 10
)

// RefusedError says which part of a kubeconfig is not accepted. It never quotes a value.
type RefusedError struct {
	// Field is the offending field, as written in a kubeconfig.
	Field string
	// Why says what is wrong, and what to do instead.
	Why string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the kubeconfig is refused because of %s: %s", e.Field, e.Why)
}

// errMalformed replaces parser errors, which may quote the content.
var errMalformed = errors.New("it is not a well-formed kubeconfig")

// ParseKubeconfig returns how to reach the cluster of the kubeconfig's current context. It refuses whatever would make
// the hub run a program, open a file, use a proxy, act as somebody else, or talk to a server it cannot verify. What other
// contexts name, and extensions, are not looked at.
func ParseKubeconfig(kubeconfig []byte) (*rest.Config, error) {
	if err := checkDocument(kubeconfig); err != nil {
		return nil, err
	}
	parsed, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, &RefusedError{Field: fieldSyntax, Why: errMalformed.Error()}
	}
	context, ok := parsed.Contexts[parsed.CurrentContext]
	if !ok || context == nil {
		return nil, &RefusedError{Field: "current-context", Why: "it names no context of this kubeconfig"}
	}
	cluster, ok := parsed.Clusters[context.Cluster]
	if !ok || cluster == nil {
		return nil, &RefusedError{Field: "contexts.context.cluster", Why: "it names no cluster of this kubeconfig"}
	}
	user, ok := parsed.AuthInfos[context.AuthInfo]
	if !ok || user == nil {
		return nil, &RefusedError{Field: "contexts.context.user", Why: "it names no user of this kubeconfig"}
	}
	for _, check := range []func() error{
		func() error { return checkCluster(cluster) },
		func() error { return checkUser(user) },
		func() error { return checkSense(user) },
		func() error { return checkSizes(cluster, user) },
		func() error { return checkCertificates(cluster, user) },
	} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	return &rest.Config{
		Host:        cluster.Server,
		BearerToken: user.Token,
		Username:    user.Username,
		Password:    user.Password,
		TLSClientConfig: rest.TLSClientConfig{
			ServerName: cluster.TLSServerName,
			CAData:     cluster.CertificateAuthorityData,
			CertData:   user.ClientCertificateData,
			KeyData:    user.ClientKeyData,
		},
		Proxy: func(*http.Request) (*url.URL, error) { return nil, nil },
	}, nil
}

func checkCluster(cluster *clientcmdapi.Cluster) error {
	server, err := url.Parse(cluster.Server)
	switch {
	case err != nil || server.Scheme != "https" || server.Hostname() == "" || server.User != nil:
		return &RefusedError{Field: fieldServer, Why: "it must be an https URL without credentials"}
	case cluster.InsecureSkipTLSVerify:
		return &RefusedError{Field: "clusters.cluster.insecure-skip-tls-verify", Why: "give certificate-authority-data instead"}
	case cluster.CertificateAuthority != "":
		return &RefusedError{Field: "clusters.cluster.certificate-authority", Why: "it is a file; give certificate-authority-data instead"}
	case cluster.ProxyURL != "":
		return &RefusedError{Field: "clusters.cluster.proxy-url", Why: "the hub connects directly"}
	}
	if why := improperServer(server); why != "" {
		return &RefusedError{Field: fieldServer, Why: why}
	}
	if name := cluster.TLSServerName; name != "" && len(name) <= maxServerName && improperHost(name) != "" {
		return &RefusedError{Field: "clusters.cluster.tls-server-name", Why: "it " + improperHost(name)}
	}
	return Networks{}.check(server)
}

func checkUser(user *clientcmdapi.AuthInfo) error {
	switch {
	case user.Exec != nil:
		return &RefusedError{Field: "users.user.exec", Why: "no program is run; give a token or client-certificate-data instead"}
	case user.AuthProvider != nil:
		return &RefusedError{Field: "users.user.auth-provider", Why: "give a token or client-certificate-data instead"}
	case user.Impersonate != "" || user.ImpersonateUID != "" || len(user.ImpersonateGroups) > 0 || len(user.ImpersonateUserExtra) > 0:
		return &RefusedError{Field: "users.user.as", Why: "the hub acts as the user itself only"}
	case user.TokenFile != "":
		return &RefusedError{Field: "users.user.tokenFile", Why: "it is a file; give a token instead"}
	case user.ClientCertificate != "":
		return &RefusedError{Field: "users.user.client-certificate", Why: "it is a file; give client-certificate-data instead"}
	case user.ClientKey != "":
		return &RefusedError{Field: "users.user.client-key", Why: "it is a file; give client-key-data instead"}
	}
	return nil
}

// checkSense refuses what a request could not carry.
func checkSense(user *clientcmdapi.AuthInfo) error {
	switch {
	case len(user.ClientCertificateData) > 0 && len(user.ClientKeyData) == 0:
		return &RefusedError{Field: fieldCertificate, Why: "it is of no use without client-key-data"}
	case len(user.ClientKeyData) > 0 && len(user.ClientCertificateData) == 0:
		return &RefusedError{Field: fieldKey, Why: "it is of no use without client-certificate-data"}
	case user.Token != "" && (user.Username != "" || user.Password != ""):
		return &RefusedError{Field: fieldPassword, Why: "a request carries a token or a name with a password, never both; keep one of them"}
	}
	return nil
}

func checkSizes(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) error {
	for _, value := range []struct {
		field     string
		size, max int
	}{
		{fieldServer, len(cluster.Server), maxServer},
		{"clusters.cluster.tls-server-name", len(cluster.TLSServerName), maxServerName},
		{fieldCA, len(cluster.CertificateAuthorityData), maxCA},
		{fieldToken, len(user.Token), maxToken},
		{"users.user.username", len(user.Username), maxPassword},
		{fieldPassword, len(user.Password), maxPassword},
		{fieldCertificate, len(user.ClientCertificateData), maxCertificate},
		{fieldKey, len(user.ClientKeyData), maxCertificate},
	} {
		if value.size > value.max {
			return &RefusedError{Field: value.field, Why: fmt.Sprintf("it has %d bytes, at most %d are taken", value.size, value.max)}
		}
	}
	return nil
}

// checkCertificates reads them as a connection would, which could not say what is wrong without quoting it.
func checkCertificates(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) error {
	if authority := cluster.CertificateAuthorityData; len(authority) > 0 && !x509.NewCertPool().AppendCertsFromPEM(authority) {
		return &RefusedError{Field: fieldCA, Why: "it holds no certificate in PEM form"}
	}
	if len(user.ClientCertificateData) > 0 {
		if _, err := tls.X509KeyPair(user.ClientCertificateData, user.ClientKeyData); err != nil {
			return &RefusedError{Field: fieldCertificate, Why: "it and client-key-data are no pair of a certificate and its key in PEM form"}
		}
	}
	return nil
}
