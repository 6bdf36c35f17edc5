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
	fieldServerName  = "clusters.cluster.tls-server-name"
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

// InvalidError is returned for a refused kubeconfig. It never quotes a value.
type InvalidError struct {
	// Field is the offending field, as written in a kubeconfig, or a property of the whole text.
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
	for _, check := range []func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo) error{checkCluster, checkUser, checkSizes, checkCertificates} {
		if err := check(cluster, user); err != nil {
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

// refusal is a cause to refuse a kubeconfig.
type refusal struct {
	applies       bool
	field, reason string
}

// refuse returns an error for the first refusal that applies.
func refuse(refusals ...refusal) error {
	for _, one := range refusals {
		if one.applies {
			return &InvalidError{Field: one.field, Reason: one.reason}
		}
	}
	return nil
}

func checkCluster(cluster *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) error {
	server, err := url.Parse(cluster.Server)
	if err != nil {
		server = &url.URL{}
	}
	serverProblem, nameProblem := serverURLProblem(server), ""
	if name := cluster.TLSServerName; name != "" && len(name) <= maxServerName {
		nameProblem = hostProblem(name)
	}
	if err := refuse(
		refusal{server.Scheme != "https" || server.Hostname() == "" || server.User != nil, fieldServer, "it must be an https URL without credentials"},
		refusal{cluster.InsecureSkipTLSVerify, "clusters.cluster.insecure-skip-tls-verify", "give certificate-authority-data instead"},
		refusal{cluster.CertificateAuthority != "", "clusters.cluster.certificate-authority", "it is a file; give certificate-authority-data instead"},
		refusal{cluster.ProxyURL != "", "clusters.cluster.proxy-url", "the hub connects directly"},
		refusal{serverProblem != "", fieldServer, serverProblem},
		refusal{nameProblem != "", fieldServerName, "it " + nameProblem},
	); err != nil {
		return err
	}
	return DeniedNetworks{}.checkAddress(server.Hostname())
}

// checkUser refuses users that need more than data, and credentials that one request could not carry.
func checkUser(_ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) error {
	hasCertificate, hasKey := len(user.ClientCertificateData) > 0, len(user.ClientKeyData) > 0
	impersonates := user.Impersonate != "" || user.ImpersonateUID != "" || len(user.ImpersonateGroups) > 0 || len(user.ImpersonateUserExtra) > 0
	return refuse(
		refusal{user.Exec != nil, "users.user.exec", "no program is run; give a token or client-certificate-data instead"},
		refusal{user.AuthProvider != nil, "users.user.auth-provider", "give a token or client-certificate-data instead"},
		refusal{impersonates, "users.user.as", "the hub acts as the user itself only"},
		refusal{user.TokenFile != "", "users.user.tokenFile", "it is a file; give a token instead"},
		refusal{user.ClientCertificate != "", "users.user.client-certificate", "it is a file; give client-certificate-data instead"},
		refusal{user.ClientKey != "", "users.user.client-key", "it is a file; give client-key-data instead"},
		refusal{hasCertificate && !hasKey, fieldCertificate, "it is of no use without client-key-data"},
		refusal{hasKey && !hasCertificate, fieldKey, "it is of no use without client-certificate-data"},
		refusal{user.Token != "" && (user.Username != "" || user.Password != ""), fieldPassword, "a request carries a token or a name with a password, never both; keep one of them"},
	)
}

func checkSizes(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) error {
	tooLong := func(field string, size, limit int) refusal {
		return refusal{size > limit, field, fmt.Sprintf("it has %d bytes, but at most %d are accepted", size, limit)}
	}
	return refuse(
		tooLong(fieldServer, len(cluster.Server), maxServer),
		tooLong(fieldServerName, len(cluster.TLSServerName), maxServerName),
		tooLong(fieldCA, len(cluster.CertificateAuthorityData), maxCA),
		tooLong(fieldToken, len(user.Token), maxToken),
		tooLong("users.user.username", len(user.Username), maxPassword),
		tooLong(fieldPassword, len(user.Password), maxPassword),
		tooLong(fieldCertificate, len(user.ClientCertificateData), maxCertificate),
		tooLong(fieldKey, len(user.ClientKeyData), maxCertificate),
	)
}

// checkCertificates parses the certificates before a connection does, because its error would quote them.
func checkCertificates(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) error {
	authority, isPair := cluster.CertificateAuthorityData, true
	if len(user.ClientCertificateData) > 0 {
		_, err := tls.X509KeyPair(user.ClientCertificateData, user.ClientKeyData)
		isPair = err == nil
	}
	return refuse(
		refusal{len(authority) > 0 && !x509.NewCertPool().AppendCertsFromPEM(authority), fieldCA, "it holds no certificate in PEM form"},
		refusal{!isPair, fieldCertificate, "it and client-key-data are no pair of a certificate and its key in PEM form"},
	)
}
