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
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
)

// The kcp user of a hub. It has no rights yet.
const (
	HubUser  = "synchub-hub"
	HubGroup = "synchub:hub"
)

// newAdmin returns a user with all rights in every workspace. kcp's own admin gets a new token at each start; ours keeps
// its token across a restart.
func newAdmin() user { return newUser("admin", "system:kcp:admin") }

// newMaster returns a user with all rights and without kcp's limit on concurrent requests. kcp omits several steps for
// workspaces that such a user creates.
func newMaster() user { return newUser("master", "system:kcp:admin", "system:masters") }

// installedKCPEnv returns kcp's environment as installed. Two kcps must fit on the machine beside what they are for, so garbage is collected
// more often when one of them takes two fifths of the memory.
func installedKCPEnv() []string {
	return []string{"GOGC=200", fmt.Sprintf("GOMEMLIMIT=%d", 2*machineMemory()/5)}
}

// testKCPEnv returns kcp's environment in tests, where its etcd does not call fsync either.
func testKCPEnv() []string {
	return []string{fmt.Sprintf("GOMEMLIMIT=%d", kcpMemoryLimit(machineMemory())), "UNSAFE_E2E_HACK_DISABLE_ETCD_FSYNC=true"}
}

const (
	minKCPMemory = 3 << 30
	maxKCPMemory = 6 << 30
)

// kcpMemoryLimit returns the memory limit in bytes of a kcp in tests: a quarter of the machine's memory. Near the limit kcp
// collects garbage again and again: with 3 GiB that was an eighth of its CPU time in the end-to-end specs, after which 1.5 GiB
// are in use.
func kcpMemoryLimit(machine uint64) uint64 {
	return min(max(machine/4, minKCPMemory), maxKCPMemory)
}

// KCP is a kcp server with its embedded etcd.
type KCP struct {
	*Server
	// Kubeconfig is the path of the admin's kubeconfig, for the workspace "root".
	Kubeconfig string
	// HubKubeconfig is the path of the kubeconfig of HubUser. Its server has no workspace in it.
	HubKubeconfig string
	// Config is the admin's client config, and HubConfig HubUser's. The Host of both has no workspace in it.
	Config    *rest.Config
	HubConfig *rest.Config

	dir           string
	admin, master user
	ca            []byte
}

// StartKCP starts a kcp and returns when it can create workspaces, which takes 10 to 90 seconds. moreHubUsers are names of
// users like HubUser, for hubs that share nothing.
func StartKCP(ctx context.Context, opts Options, moreHubUsers ...string) (*KCP, error) {
	hubs := []user{newUser(HubUser, HubGroup)}
	for _, name := range moreHubUsers {
		hubs = append(hubs, newUser(name, HubGroup))
	}
	return startKCP(ctx, opts, "kcp", newAdmin(), hubs...)
}

// StartKCPs starts a kcp for each of the names, in parallel. All know the same users by the same tokens, as the shards of
// one kcp would. They share nothing else; each has its own serving certificate. After an error nothing runs.
func StartKCPs(ctx context.Context, opts Options, names ...string) (KCPs, error) {
	admin, hub := newAdmin(), newUser(HubUser, HubGroup)
	all := make(KCPs, len(names))
	group, ctx := errgroup.WithContext(ctx)
	for i, name := range names {
		group.Go(func() (err error) {
			all[i], err = startKCP(ctx, opts, name, admin, hub)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, errors.Join(err, all.Stop())
	}
	return all, nil
}

// KCPs are kcp servers that know the same users.
type KCPs []*KCP

// Stop stops all of them.
func (all KCPs) Stop() error {
	var errs []error
	for _, k := range all {
		if k != nil {
			errs = append(errs, k.Stop())
		}
	}
	return errors.Join(errs...)
}

func startKCP(ctx context.Context, opts Options, name string, admin user, hubs ...user) (*KCP, error) {
	dir, err := opts.dataDir(name)
	if err != nil {
		return nil, err
	}
	pki, err := newPKI(dir)
	if err != nil {
		return nil, fmt.Errorf("prepare kcp: %w", err)
	}
	k := newKCP(dir)
	k.admin, k.master, k.ca = admin, newMaster(), pki.ca
	tokens := filepath.Join(dir, "tokens.csv")
	if err := writeTokenFile(tokens, append([]user{k.admin, k.master}, hubs...)...); err != nil {
		return nil, fmt.Errorf("prepare kcp: %w", err)
	}
	env := testKCPEnv()
	if opts.AsInstalled {
		env = installedKCPEnv()
	}
	k.Server, err = startServer(ctx, opts, name, 3, func(ports []int) (launch, error) {
		k.Config = restConfig("https://"+address(ports[0]), pki.ca, k.admin.token)
		k.HubConfig = restConfig(k.Config.Host, pki.ca, hubs[0].token)
		if err := k.writeKubeconfigs(hubs); err != nil {
			return launch{}, err
		}
		// kcp reports ready a moment before the root workspace is complete.
		ready, err := all(
			probe{k.Config, "/readyz"},
			probe{k.Workspace("root"), "/apis/tenancy.kcp.io/v1alpha1/workspacetypes/universal"},
		)
		return launch{program: "kcp", ready: ready, env: env, args: []string{
			"start",
			"--root-directory=" + dir,
			"--embedded-etcd-directory=" + k.etcdDir(),
			"--embedded-etcd-client-port=" + strconv.Itoa(ports[1]),
			"--embedded-etcd-peer-port=" + strconv.Itoa(ports[2]),
			"--bind-address=" + loopback,
			"--secure-port=" + strconv.Itoa(ports[0]),
			"--tls-cert-file=" + pki.certFile,
			"--tls-private-key-file=" + pki.keyFile,
			"--token-auth-file=" + tokens,
		}}, err
	})
	if err != nil {
		return nil, err
	}
	return k, nil
}

func newKCP(dir string) *KCP {
	k := &KCP{Kubeconfig: filepath.Join(dir, "kcp-admin.kubeconfig"), dir: dir}
	k.HubKubeconfig = k.HubKubeconfigOf(HubUser)
	return k
}

func (k *KCP) writeKubeconfigs(hubs []user) error {
	if err := writeKubeconfig(k.Kubeconfig, "root", k.Workspace("root").Host, k.ca, k.admin); err != nil {
		return err
	}
	if err := writeKubeconfig(k.masterKubeconfig(), "kcp", k.Config.Host, k.ca, k.master); err != nil {
		return err
	}
	for _, hub := range hubs {
		if err := writeKubeconfig(k.HubKubeconfigOf(hub.name), "kcp", k.Config.Host, k.ca, hub); err != nil {
			return err
		}
	}
	return nil
}

// etcdDir returns the data directory of the embedded etcd.
func (k *KCP) etcdDir() string { return filepath.Join(k.dir, "etcd") }

func (k *KCP) masterKubeconfig() string { return filepath.Join(k.dir, "kcp-master.kubeconfig") }

// MasterToken returns the token of newMaster's user. Use it for workspaces of a kcp that stands for many clusters, each of
// which would have its own limit of concurrent requests.
func (k *KCP) MasterToken() string { return k.master.token }

// HubKubeconfigOf returns the path of the kubeconfig of HubUser or of another hub's user.
func (k *KCP) HubKubeconfigOf(user string) string { return filepath.Join(k.dir, user+".kubeconfig") }

// Workspace returns the admin's client config for a workspace, given by path ("root:org") or by logical cluster name.
func (k *KCP) Workspace(path string) *rest.Config {
	config := rest.CopyConfig(k.Config)
	config.Host += "/clusters/" + path
	return config
}

// WorkspaceKubeconfig writes the admin's kubeconfig for one workspace and returns its path.
func (k *KCP) WorkspaceKubeconfig(path string) (file string, err error) {
	name := strings.ReplaceAll(path, ":", "-")
	file = filepath.Join(k.dir, "kcp-"+name+".kubeconfig")
	return file, writeKubeconfig(file, name, k.Workspace(path).Host, k.ca, k.admin)
}
