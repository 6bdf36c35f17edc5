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

// Fields of a kubeconfig that several checks name.
const (
	fieldSyntax      = "its syntax"
	fieldServer      = "clusters.cluster.server"
	fieldCA          = "clusters.cluster.certificate-authority-data"
	fieldCertificate = "users.user.client-certificate-data"
	fieldKey         = "users.user.client-key-data"
	fieldToken       = "users.user.token"
	fieldPassword    = "users.user.password"
)

// Bounds of single values, in bytes. A longer value is a mistake, or an attempt to make each request expensive.
const (
	maxServer      = 2 << 10
	maxServerName  = 253
	maxToken       = 16 << 10
	maxPassword    = 4 << 10
	maxCertificate = 32 << 10
	maxCA          = 64 << 10
)

// InvalidError is why a kubeconfig is refused. It never quotes a value.
type InvalidError struct {
	// Field is the offending field, as written in a kubeconfig.
	Field string
	// Reason is the problem and its remedy.
	Reason string
}

func (e *InvalidError) Error() string {
	return fmt.Sprintf("the kubeconfig is refused because of %s: %s", e.Field, e.Reason)
}

// errMalformed replaces parser errors, which may quote the content.
var errMalformed = errors.New("it is not a well-formed kubeconfig")

// Parse returns the config of the kubeconfig's current context. It refuses a kubeconfig that would make the hub run a program,
// open a file, use a proxy, act as somebody else, or trust a server it cannot verify. It ignores other contexts and
// extensions. The error is an [*InvalidError].
func Parse(kubeconfig []byte) (*rest.Config, error) {
	if err := checkYAML(kubeconfig); err != nil {
		return nil, err
	}
	parsed, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, &InvalidError{Field: fieldSyntax, Reason: errMalformed.Error()}
	}
	context, ok := parsed.Contexts[parsed.CurrentContext]
	if !ok || context == nil {
		return nil, &InvalidError{Field: "current-context", Reason: "it names no context of this kubeconfig"}
	}
	cluster, ok := parsed.Clusters[context.Cluster]
	if !ok || cluster == nil {
		return nil, &InvalidError{Field: "contexts.context.cluster", Reason: "it names no cluster of this kubeconfig"}
	}
	user, ok := parsed.AuthInfos[context.AuthInfo]
	if !ok || user == nil {
		return nil, &InvalidError{Field: "contexts.context.user", Reason: "it names no user of this kubeconfig"}
	}
	for _, check := range []func() error{
		func() error { return checkCluster(cluster) },
		func() error { return checkUser(user) },
		func() error { return checkAuthCombination(user) },
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
		return &InvalidError{Field: fieldServer, Reason: "it must be an https URL without credentials"}
	case cluster.InsecureSkipTLSVerify:
		return &InvalidError{Field: "clusters.cluster.insecure-skip-tls-verify", Reason: "give certificate-authority-data instead"}
	case cluster.CertificateAuthority != "":
		return &InvalidError{Field: "clusters.cluster.certificate-authority", Reason: "it is a file; give certificate-authority-data instead"}
	case cluster.ProxyURL != "":
		return &InvalidError{Field: "clusters.cluster.proxy-url", Reason: "the hub connects directly"}
	}
	if problem := serverURLProblem(server); problem != "" {
		return &InvalidError{Field: fieldServer, Reason: problem}
	}
	if name := cluster.TLSServerName; name != "" && len(name) <= maxServerName && hostProblem(name) != "" {
		return &InvalidError{Field: "clusters.cluster.tls-server-name", Reason: "it " + hostProblem(name)}
	}
	return DeniedNetworks{}.checkAddress(server.Hostname())
}

func checkUser(user *clientcmdapi.AuthInfo) error {
	switch {
	case user.Exec != nil:
		return &InvalidError{Field: "users.user.exec", Reason: "no program is run; give a token or client-certificate-data instead"}
	case user.AuthProvider != nil:
		return &InvalidError{Field: "users.user.auth-provider", Reason: "give a token or client-certificate-data instead"}
	case user.Impersonate != "" || user.ImpersonateUID != "" || len(user.ImpersonateGroups) > 0 || len(user.ImpersonateUserExtra) > 0:
		return &InvalidError{Field: "users.user.as", Reason: "the hub acts as the user itself only"}
	case user.TokenFile != "":
		return &InvalidError{Field: "users.user.tokenFile", Reason: "it is a file; give a token instead"}
	case user.ClientCertificate != "":
		return &InvalidError{Field: "users.user.client-certificate", Reason: "it is a file; give client-certificate-data instead"}
	case user.ClientKey != "":
		return &InvalidError{Field: "users.user.client-key", Reason: "it is a file; give client-key-data instead"}
	}
	return nil
}

// checkAuthCombination refuses credentials that one request could not carry.
func checkAuthCombination(user *clientcmdapi.AuthInfo) error {
	switch {
	case len(user.ClientCertificateData) > 0 && len(user.ClientKeyData) == 0:
		return &InvalidError{Field: fieldCertificate, Reason: "it is of no use without client-key-data"}
	case len(user.ClientKeyData) > 0 && len(user.ClientCertificateData) == 0:
		return &InvalidError{Field: fieldKey, Reason: "it is of no use without client-certificate-data"}
	case user.Token != "" && (user.Username != "" || user.Password != ""):
		return &InvalidError{Field: fieldPassword, Reason: "a request carries a token or a name with a password, never both; keep one of them"}
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
			return &InvalidError{Field: value.field, Reason: fmt.Sprintf("it has %d bytes, at most %d are taken", value.size, value.max)}
		}
	}
	return nil
}

// checkCertificates parses the certificates before a connection does, because its error would quote them.
func checkCertificates(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) error {
	if authority := cluster.CertificateAuthorityData; len(authority) > 0 && !x509.NewCertPool().AppendCertsFromPEM(authority) {
		return &InvalidError{Field: fieldCA, Reason: "it holds no certificate in PEM form"}
	}
	if len(user.ClientCertificateData) > 0 {
		if _, err := tls.X509KeyPair(user.ClientCertificateData, user.ClientKeyData); err != nil {
			return &InvalidError{Field: fieldCertificate, Reason: "it and client-key-data are no pair of a certificate and its key in PEM form"}
		}
	}
	return nil
}
