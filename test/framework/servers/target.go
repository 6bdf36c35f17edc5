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
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// TargetOptions say what a target consists of besides its API server.
type TargetOptions struct {
	// Controllers adds the controllers, the scheduler and a fake node, so that workloads become Available.
	Controllers bool
	// Etcd holds the target's data; it may be shared and is not stopped with the target. Nil gives the target its own.
	Etcd *Etcd
}

// Target is a Kubernetes cluster. The embedded Server is its API server: pausing, killing, stopping and starting that
// one is what a client sees of a cluster's trouble, while the rest of the cluster waits. Target.Stop ends everything.
type Target struct {
	*Server
	Name string
	// Kubeconfig is the path of the admin's kubeconfig; it contains a token and the certificates, and names no file.
	Kubeconfig string
	// Config is the admin's.
	Config *rest.Config

	dir         string
	admin       user
	pki         pki
	ownEtcd     *Etcd
	controllers []*Server
}

// StartTarget starts a Kubernetes cluster with RBAC and returns when it serves and, with Controllers, can run pods.
func StartTarget(ctx context.Context, opts Options, name string, options TargetOptions) (*Target, error) {
	dir, err := opts.dataDir(name)
	if err != nil {
		return nil, err
	}
	t := newTarget(dir, name)
	if err := t.start(ctx, opts, options); err != nil {
		return nil, errors.Join(fmt.Errorf("start target %s: %w", name, err), t.Stop())
	}
	return t, nil
}

func newTarget(dir, name string) *Target {
	return &Target{Name: name, Kubeconfig: filepath.Join(dir, name+".kubeconfig"), dir: dir}
}

func (t *Target) start(ctx context.Context, opts Options, options TargetOptions) error {
	var err error
	t.admin = newUser("admin", "system:masters")
	if t.pki, err = newPKI(t.dir); err != nil {
		return err
	}
	etcd := options.Etcd
	if etcd == nil {
		if etcd, err = StartEtcd(ctx, opts, t.Name+"-etcd"); err != nil {
			return err
		}
		t.ownEtcd = etcd
	}
	if err := t.startAPIServer(ctx, opts, etcd, options.Controllers); err != nil {
		return err
	}
	if options.Controllers {
		return t.startControllers(ctx, opts)
	}
	return nil
}

func (t *Target) startAPIServer(ctx context.Context, opts Options, etcd *Etcd, controllers bool) error {
	tokens := filepath.Join(t.dir, "tokens.csv")
	if err := writeTokenFile(tokens, t.admin); err != nil {
		return err
	}
	server, err := startServer(ctx, opts, t.Name+"-kube-apiserver", 1, func(ports []int) (launch, error) {
		t.Config = restConfig("https://"+address(ports[0]), t.pki.ca, t.admin.token)
		if err := writeKubeconfig(t.Kubeconfig, t.Name, t.Config.Host, t.pki.ca, t.admin); err != nil {
			return launch{}, err
		}
		// The namespace "default" is made a moment after the server says that it is ready.
		ready, err := all(probe{t.Config, "/readyz"}, probe{t.Config, "/api/v1/namespaces/default"})
		args := []string{
			"--etcd-servers=" + etcd.url,
			"--etcd-prefix=/" + t.Name,
			"--bind-address=" + loopback,
			"--secure-port=" + strconv.Itoa(ports[0]),
			"--cert-dir=" + t.dir,
			"--tls-cert-file=" + t.pki.certFile,
			"--tls-private-key-file=" + t.pki.keyFile,
			"--service-account-issuer=" + t.Config.Host,
			"--service-account-key-file=" + t.pki.saKeyFile,
			"--service-account-signing-key-file=" + t.pki.saKeyFile,
			"--authorization-mode=RBAC",
			"--token-auth-file=" + tokens,
			"--service-cluster-ip-range=10.0.0.0/24",
			"--endpoint-reconciler-type=none", // nothing routes to the service "kubernetes"
		}
		if !controllers {
			// Nobody makes the account "default" of a namespace, without which this plugin refuses every pod.
			args = append(args, "--disable-admission-plugins=ServiceAccount")
		}
		return launch{program: "kube-apiserver", args: args, ready: ready}, err
	})
	t.Server = server
	return err
}

// Stop ends all servers of the target. Stopping twice does no harm.
func (t *Target) Stop() error {
	var errs []error
	for _, s := range t.allServers() {
		errs = append(errs, s.Stop())
	}
	return errors.Join(errs...)
}

// allServers lists the servers of the target in the order in which they are stopped.
func (t *Target) allServers() []*Server {
	all := append([]*Server{}, t.controllers...)
	if t.Server != nil {
		all = append(all, t.Server)
	}
	if t.ownEtcd != nil {
		all = append(all, t.ownEtcd.Server)
	}
	return all
}

// SetReadOnly has the etcd that the target has for itself refuse all writes, or take them again.
func (t *Target) SetReadOnly(ctx context.Context, readOnly bool) error {
	return t.ownEtcd.SetFull(ctx, readOnly)
}

// ServiceAccountKubeconfig returns the content of a kubeconfig for a service account, with a token good for one hour.
func (t *Target) ServiceAccountKubeconfig(ctx context.Context, namespace, serviceAccount string) ([]byte, error) {
	client, err := kubernetes.NewForConfig(t.Config)
	if err != nil {
		return nil, fmt.Errorf("make a client for %s: %w", t.Name, err)
	}
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(3600))},
	}
	answer, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, serviceAccount, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("request a token for service account %s/%s of %s: %w", namespace, serviceAccount, t.Name, err)
	}
	return kubeconfig(t.Name, t.Config.Host, t.pki.ca, serviceAccount, answer.Status.Token)
}

// ShortLivedKubeconfig returns a kubeconfig like [Target.ServiceAccountKubeconfig] whose token is not accepted any more after its
// life, which may be seconds. No API server issues one for less than ten minutes, so it is signed with the API server's key.
func (t *Target) ShortLivedKubeconfig(ctx context.Context, namespace, serviceAccount string, life time.Duration) ([]byte, error) {
	issued, err := t.ServiceAccountKubeconfig(ctx, namespace, serviceAccount)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(issued)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of %s/%s of %s: %w", namespace, serviceAccount, t.Name, err)
	}
	token, err := signTokenUntil(config.BearerToken, time.Now().Add(life), t.pki.saKeyFile)
	if err != nil {
		return nil, fmt.Errorf("sign a token for service account %s/%s of %s: %w", namespace, serviceAccount, t.Name, err)
	}
	return kubeconfig(t.Name, t.Config.Host, t.pki.ca, serviceAccount, token)
}
