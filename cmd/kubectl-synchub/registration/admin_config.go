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

package registration

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/kcp-dev/sdk/apis/core"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
)

// AdminConfig is an administrator's access to a target.
type AdminConfig struct {
	// Config has the administrator's credentials.
	Config *rest.Config

	cluster *clientcmdapi.Cluster
}

// LoadAdminConfig reads an administrator's kubeconfig. It uses the given context, or the current one if context is empty.
// The operator runs the plugin, so it uses programs and files that the kubeconfig names, as kubectl does. It returns an
// error if the hub would refuse its own kubeconfig of this cluster.
func LoadAdminConfig(file, context string) (*AdminConfig, error) {
	loaded, err := clientcmd.LoadFromFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the target's kubeconfig: %w", err)
	}
	if err := clientcmd.ResolveLocalPaths(loaded); err != nil {
		return nil, fmt.Errorf("cannot resolve the files that the target's kubeconfig %s names: %w", file, err)
	}
	if context != "" {
		loaded.CurrentContext = context
	}
	if err := clientcmdapi.MinifyConfig(loaded); err != nil {
		return nil, fmt.Errorf("cannot use the target's kubeconfig %s: %w", file, err)
	}
	used := loaded.Contexts[loaded.CurrentContext]
	config, err := clientcmd.NewDefaultClientConfig(*loaded, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot use the target's kubeconfig %s: %w", file, err)
	}
	// kubectl uses the same limits. client-go's defaults would slow down discovery.
	config.QPS, config.Burst = 50, 300
	only := &clientcmdapi.Config{Clusters: map[string]*clientcmdapi.Cluster{used.Cluster: loaded.Clusters[used.Cluster]}, Contexts: loaded.Contexts, CurrentContext: loaded.CurrentContext}
	if err := clientcmdapi.FlattenConfig(only); err != nil {
		return nil, fmt.Errorf("cannot read a file that the target's kubeconfig %s names: %w", file, err)
	}
	admin := &AdminConfig{Config: config, cluster: only.Clusters[used.Cluster]}
	if _, err := admin.kubeconfig("none yet"); err != nil {
		return nil, fmt.Errorf("the hub could not use the cluster of %s: %w", file, err)
	}
	return admin, nil
}

// kubeconfig returns a kubeconfig of the cluster with the token, and without references to files.
func (a *AdminConfig) kubeconfig(token string) ([]byte, error) {
	const name = "target"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{
		Server: a.cluster.Server, TLSServerName: a.cluster.TLSServerName, CertificateAuthorityData: a.cluster.CertificateAuthorityData,
		InsecureSkipTLSVerify: a.cluster.InsecureSkipTLSVerify, ProxyURL: a.cluster.ProxyURL,
	}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	written, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("cannot write a kubeconfig: %w", err)
	}
	if _, err := kubeconfig.Parse(written); err != nil {
		return nil, err
	}
	return written, nil
}

// isKubeconfigCurrent reports whether a kubeconfig is still usable. It must have the URL and the authority of the cluster,
// and a token of the ServiceAccount with more than half of its lifetime left. The token is not verified, since the result
// only decides whether to renew it.
func (a *AdminConfig) isKubeconfigCurrent(content []byte, account *corev1.ServiceAccount, now time.Time) bool {
	config, err := kubeconfig.Parse(content)
	if err != nil || config.Host != a.cluster.Server || config.ServerName != a.cluster.TLSServerName || string(config.CAData) != string(a.cluster.CertificateAuthorityData) {
		return false
	}
	token, ok := kubeconfig.ParseToken(config.BearerToken)
	if !ok || token.Namespace != account.Namespace || token.ServiceAccount != account.Name || token.UID != account.UID {
		return false
	}
	return now.Before(token.IssuedAt.Add(token.Lifetime() / 2))
}

// checkNotKCP returns an error if the kubeconfig leads to kcp. kcp serves Secrets, roles and other resources that the hub would get
// rights for, but runs no workloads.
func (a *AdminConfig) checkNotKCP() error {
	if isWorkspaceURL(a.Config.Host) {
		return notACluster(a.Config.Host)
	}
	apis, err := discovery.NewDiscoveryClientForConfig(a.Config)
	if err != nil {
		return describeTargetError(err)
	}
	groups, err := apis.ServerGroups()
	if err != nil {
		return describeTargetError(err)
	}
	if slices.ContainsFunc(groups.Groups, func(group metav1.APIGroup) bool { return group.Name == core.GroupName }) {
		return notACluster(a.Config.Host)
	}
	return nil
}

// isWorkspaceURL reports whether a URL leads to a workspace of kcp.
func isWorkspaceURL(server string) bool {
	parsed, err := url.Parse(server)
	return err == nil && strings.Contains(parsed.Path, "/clusters/")
}

func notACluster(server string) error {
	return fmt.Errorf("%s is kcp, which runs no workloads: give the kubeconfig of a Kubernetes cluster", server)
}
