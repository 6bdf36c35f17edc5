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
	"os"
	"path/filepath"
	"strconv"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// RootShard is the name of the shard that has the workspace "root".
const RootShard = "root"

// ShardedKCP is a kcp of several shards. Its KCP is the front proxy, which knows where each workspace is.
type ShardedKCP struct {
	*KCP
	// Shards are the shards by name. Each has its etcd, and the virtual workspaces of its own workspaces.
	Shards map[string]*Server

	cache *Server
}

// Stop stops all servers.
func (k *ShardedKCP) Stop() error {
	var errs []error
	if k.KCP != nil && k.Server != nil {
		errs = append(errs, k.Server.Stop())
	}
	for _, shard := range k.Shards {
		errs = append(errs, shard.Stop())
	}
	if k.cache != nil {
		errs = append(errs, k.cache.Stop())
	}
	return errors.Join(errs...)
}

// StartShardedKCP starts a kcp of the root shard and of those with the given names, with a cache server and a front proxy. It takes a
// minute or two. After an error nothing runs.
func StartShardedKCP(ctx context.Context, opts Options, more ...string) (*ShardedKCP, error) {
	k := &ShardedKCP{Shards: map[string]*Server{}}
	if err := k.start(ctx, opts, more); err != nil {
		return nil, errors.Join(err, k.Stop())
	}
	return k, nil
}

// shardSetup is what the servers of one kcp share.
type shardSetup struct {
	Options
	dir string
	pki pki
	// clients signs the client certificates that the servers use between each other.
	clients authority
	tokens  string
	// peers is the user of the shards among themselves.
	peers user
	// clusterAdmin and externalAdmin create logical clusters: at a shard, and through the front proxy.
	clusterAdmin, externalAdmin user
	proxyURL                    string
}

func (k *ShardedKCP) start(ctx context.Context, opts Options, more []string) error {
	setup, err := k.prepare(opts)
	if err != nil {
		return fmt.Errorf("prepare kcp: %w", err)
	}
	if k.cache, err = setup.startCache(ctx); err != nil {
		return err
	}
	for _, name := range append([]string{RootShard}, more...) {
		shard, err := setup.startShard(ctx, name, k.Shards[RootShard])
		if err != nil {
			return err
		}
		k.Shards[name] = shard
	}
	k.Server, err = setup.startProxy(ctx, k.KCP, shardURL(k.Shards[RootShard].ports))
	return err
}

// prepare writes all credentials.
func (k *ShardedKCP) prepare(opts Options) (*shardSetup, error) {
	dir, err := opts.dataDir("kcp")
	if err != nil {
		return nil, err
	}
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	s := &shardSetup{
		Options: opts, dir: dir, tokens: filepath.Join(dir, "tokens.csv"), proxyURL: "https://" + address(port),
		peers:         newUser("shard", "system:masters"),
		clusterAdmin:  newUser("logical-cluster-admin", "system:kcp:logical-cluster-admin"),
		externalAdmin: newUser("external-logical-cluster-admin", "system:kcp:external-logical-cluster-admin"),
	}
	if s.pki, err = newPKI(dir); err != nil {
		return nil, err
	}
	if s.clients, err = newAuthority(filepath.Join(dir, "clients-ca.crt")); err != nil {
		return nil, err
	}
	hub := newUser(HubUser, HubGroup)
	k.KCP = newKCP(dir)
	k.admin, k.master, k.ca = newAdmin(), newMaster(), s.pki.ca
	k.Config, k.HubConfig = restConfig(s.proxyURL, s.pki.ca, k.admin.token), restConfig(s.proxyURL, s.pki.ca, hub.token)
	return s, errors.Join(
		writeTokenFile(s.tokens, k.admin, k.master, hub, s.peers, s.clusterAdmin, s.externalAdmin),
		k.writeKubeconfigs([]user{hub}),
		writeKubeconfig(s.path("external-logical-cluster-admin.kubeconfig"), "base", s.proxyURL, s.pki.ca, s.externalAdmin),
		// The front proxy fills in the address of each shard.
		writeKubeconfig(s.path("shards.kubeconfig"), "base", "", s.pki.ca, s.peers),
	)
}

func (s *shardSetup) path(name string) string { return filepath.Join(s.dir, name) }

func shardURL(ports []int) string { return "https://" + address(ports[0]) }

// startCache starts the cache server, which replicates objects between the shards.
func (s *shardSetup) startCache(ctx context.Context) (*Server, error) {
	return startServer(ctx, s.Options, "kcp-cache", 3, func(ports []int) (launch, error) {
		config, err := s.clients.config(shardURL(ports), s.pki.ca, "cache-client", "system:masters")
		if err != nil {
			return launch{}, err
		}
		ready, err := all(probe{config, "/readyz"})
		if err != nil {
			return launch{}, err
		}
		return launch{program: "cache-server", ready: ready, env: testKCPEnv(), args: []string{
			"--root-directory=" + s.path("cache"),
			"--embedded-etcd-client-port=" + strconv.Itoa(ports[1]),
			"--embedded-etcd-peer-port=" + strconv.Itoa(ports[2]),
			"--bind-address=" + loopback,
			"--secure-port=" + strconv.Itoa(ports[0]),
			"--tls-cert-file=" + s.pki.certFile,
			"--tls-private-key-file=" + s.pki.keyFile,
			"--client-ca-file=" + s.clients.file,
		}}, writeClientKubeconfig(s.path("cache.kubeconfig"), "cache", config)
	})
}

// startShard starts a shard. The root shard comes first, and root is nil for it.
func (s *shardSetup) startShard(ctx context.Context, name string, root *Server) (*Server, error) {
	certificate, key, err := s.clients.writeClient(s.path("shard-"+name), "kcp-shard-"+name, "system:masters")
	if err != nil {
		return nil, err
	}
	return startServer(ctx, s.Options, "kcp-"+name, 3, func(ports []int) (launch, error) {
		url := shardURL(ports)
		args := []string{
			"start",
			"--root-directory=" + s.path(name),
			"--embedded-etcd-directory=" + filepath.Join(s.path(name), "etcd"),
			"--embedded-etcd-client-port=" + strconv.Itoa(ports[1]),
			"--embedded-etcd-peer-port=" + strconv.Itoa(ports[2]),
			"--bind-address=" + loopback,
			"--secure-port=" + strconv.Itoa(ports[0]),
			"--tls-cert-file=" + s.pki.certFile,
			"--tls-private-key-file=" + s.pki.keyFile,
			"--token-auth-file=" + s.tokens,
			"--client-ca-file=" + s.clients.file,
			"--requestheader-client-ca-file=" + s.clients.file,
			"--requestheader-allowed-names=" + proxyName,
			"--requestheader-username-headers=X-Remote-User",
			"--requestheader-group-headers=X-Remote-Group",
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--service-account-key-file=" + s.pki.saKeyFile,
			"--service-account-private-key-file=" + s.pki.saKeyFile,
			"--service-account-signing-key-file=" + s.pki.saKeyFile,
			"--shard-base-url=" + url,
			"--shard-external-url=" + s.proxyURL,
			"--shard-client-cert-file=" + certificate,
			"--shard-client-key-file=" + key,
			"--shard-virtual-workspace-ca-file=" + s.pki.certFile,
			"--logical-cluster-admin-kubeconfig=" + s.path("logical-cluster-admin.kubeconfig"),
			"--external-logical-cluster-admin-kubeconfig=" + s.path("external-logical-cluster-admin.kubeconfig"),
			"--cache-kubeconfig=" + s.path("cache.kubeconfig"),
		}
		var err error
		if root == nil {
			err = errors.Join(
				writeKubeconfig(s.path("root-shard.kubeconfig"), "shard-base", url, s.pki.ca, s.peers),
				writeKubeconfig(s.path("logical-cluster-admin.kubeconfig"), "base", url, s.pki.ca, s.clusterAdmin))
		} else {
			args = append(args, "--shard-name="+name, "--root-shard-kubeconfig-file="+s.path("root-shard.kubeconfig"))
		}
		ready, readyErr := all(probe{restConfig(url, s.pki.ca, s.peers.token), "/readyz"})
		return launch{program: "kcp", ready: ready, env: testKCPEnv(), args: args}, errors.Join(err, readyErr)
	})
}

// proxyName is the name of the front proxy in its client certificate. Shards accept the user names that it sends.
const proxyName = "kcp-front-proxy"

// startProxy starts the front proxy, through which the users of k find all workspaces.
func (s *shardSetup) startProxy(ctx context.Context, k *KCP, rootURL string) (*Server, error) {
	certificate, key, err := s.clients.writeClient(s.path("front-proxy"), proxyName)
	if err != nil {
		return nil, err
	}
	// The proxy itself finds the shard of a workspace; the address here is not used.
	mapping := map[string]string{"path": "/clusters/", "backend": rootURL, "backend_server_ca": s.pki.certFile, "proxy_client_cert": certificate, "proxy_client_key": key}
	content, err := yaml.Marshal([]map[string]string{mapping})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(s.path("mapping.yaml"), content, 0o600); err != nil {
		return nil, err
	}
	return startServer(ctx, s.Options, "kcp-front-proxy", 0, func([]int) (launch, error) {
		ready, err := all(
			probe{k.Config, "/readyz"},
			probe{k.Workspace("root"), "/apis/tenancy.kcp.io/v1alpha1/workspacetypes/universal"},
		)
		return launch{program: proxyName, ready: ready, args: []string{
			"--root-directory=" + s.path("proxy"),
			"--bind-address=" + loopback,
			"--secure-port=" + portOf(k.Config),
			"--tls-cert-file=" + s.pki.certFile,
			"--tls-private-key-file=" + s.pki.keyFile,
			"--token-auth-file=" + s.tokens,
			"--client-ca-file=" + s.clients.file,
			"--mapping-file=" + s.path("mapping.yaml"),
			"--root-kubeconfig=" + s.path("root-shard.kubeconfig"),
			"--shards-kubeconfig=" + s.path("shards.kubeconfig"),
		}}, err
	})
}

// portOf returns the port of a server on the loopback address.
func portOf(config *rest.Config) string {
	return config.Host[len("https://"+loopback+":"):]
}
