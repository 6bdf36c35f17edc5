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
	"cmp"
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

// TargetOptions configure a target.
type TargetOptions struct {
	// Controllers adds the controller manager, the scheduler and a fake node, so that workloads become Available.
	Controllers bool
	// APIServer is the program of the API server; "kube-apiserver" if it is empty.
	APIServer string
	// Etcd holds the target's data. It may be shared and is not stopped with the target. With nil the target has its own.
	Etcd *Etcd
}

// Target is a Kubernetes cluster. The embedded Server is its API server. Pausing, killing, stopping and starting it
// simulates a cluster in trouble, while the other servers of the cluster wait. Target.Stop stops all of them.
type Target struct {
	*Server
	Name string
	// Kubeconfig is the path of the admin's kubeconfig, which refers to no other file.
	Kubeconfig string
	// Config is the admin's client config.
	Config *rest.Config

	dir         string
	admin       user
	pki         pki
	ownEtcd     *Etcd
	controllers []*Server
}

// StartTarget starts a Kubernetes cluster with RBAC. It returns when the API server is ready and, with Controllers, pods
// can run.
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
	if err := t.startAPIServer(ctx, opts, etcd, options); err != nil {
		return err
	}
	if options.Controllers {
		return t.startControllers(ctx, opts)
	}
	return nil
}

func (t *Target) startAPIServer(ctx context.Context, opts Options, etcd *Etcd, options TargetOptions) error {
	tokens := filepath.Join(t.dir, "tokens.csv")
	if err := writeTokenFile(tokens, t.admin); err != nil {
		return err
	}
	server, err := startServer(ctx, opts, t.Name+"-kube-apiserver", 1, func(ports []int) (launch, error) {
		t.Config = restConfig("https://"+address(ports[0]), t.pki.ca, t.admin.token)
		if err := writeKubeconfig(t.Kubeconfig, t.Name, t.Config.Host, t.pki.ca, t.admin); err != nil {
			return launch{}, err
		}
		// The namespace "default" exists a moment after the server reports ready.
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
			// Tests of ordinary use create hundreds of Services.
			"--service-cluster-ip-range=10.0.0.0/16",
			"--endpoint-reconciler-type=none", // nothing routes to the service "kubernetes"
		}
		if !options.Controllers {
			// No controller creates the ServiceAccount "default" of a namespace, without which this plugin refuses every
			// pod.
			args = append(args, "--disable-admission-plugins=ServiceAccount")
		}
		return launch{program: cmp.Or(options.APIServer, "kube-apiserver"), args: args, ready: ready}, err
	})
	t.Server = server
	return err
}

// Stop stops all servers of the target. Calling it twice is harmless.
func (t *Target) Stop() error {
	var errs []error
	for _, s := range t.allServers() {
		errs = append(errs, s.Stop())
	}
	return errors.Join(errs...)
}

// allServers returns the servers of the target in the order in which they are stopped.
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

// SetReadOnly makes the target's own etcd refuse all writes, or accept them again.
func (t *Target) SetReadOnly(ctx context.Context, readOnly bool) error {
	return t.ownEtcd.SetFull(ctx, readOnly)
}

// ServiceAccountKubeconfig returns the content of a kubeconfig for a ServiceAccount, with a token that is valid for one
// hour.
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
	return Kubeconfig(t.Name, t.Config.Host, t.pki.ca, serviceAccount, answer.Status.Token)
}

// ShortLivedKubeconfig returns a kubeconfig like [Target.ServiceAccountKubeconfig] whose token expires after life, which
// may be seconds. API servers issue no token for less than ten minutes, so this one is signed with the API server's key.
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
	return Kubeconfig(t.Name, t.Config.Host, t.pki.ca, serviceAccount, token)
}
