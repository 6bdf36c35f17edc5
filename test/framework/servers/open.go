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
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// OpenEnvironment returns an environment that another process started in opts.Dir, with the named targets, for clients of
// its servers. Only the process that started a server can pause, kill, stop and start it; elsewhere these methods return an
// error.
func OpenEnvironment(opts Options, targets ...string) (*Environment, error) {
	kcp, err := openKCP(opts)
	if err != nil {
		return nil, err
	}
	w := &Environment{KCP: kcp, Targets: map[string]*Target{}}
	for _, name := range targets {
		if w.Targets[name], err = openTarget(opts, name); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func openKCP(opts Options) (*KCP, error) {
	dir, err := opts.dataDir("kcp")
	if err != nil {
		return nil, err
	}
	k := newKCP(dir)
	k.Server = &Server{name: "kcp", external: true}
	if k.HubConfig, err = readKubeconfig(k.HubKubeconfig); err != nil {
		return nil, err
	}
	if k.Config, err = readKubeconfig(k.Kubeconfig); err != nil {
		return nil, err
	}
	k.Config.Host = k.HubConfig.Host // without a workspace
	master, err := readKubeconfig(k.masterKubeconfig())
	if err != nil {
		return nil, err
	}
	k.ca, k.admin, k.master = k.Config.CAData, user{name: "admin", token: k.Config.BearerToken}, user{name: "master", token: master.BearerToken}
	return k, nil
}

func openTarget(opts Options, name string) (*Target, error) {
	dir, err := opts.dataDir(name)
	if err != nil {
		return nil, err
	}
	t := newTarget(dir, name)
	t.Server = &Server{name: name, external: true}
	if t.Config, err = readKubeconfig(t.Kubeconfig); err != nil {
		return nil, err
	}
	t.pki.ca = t.Config.CAData
	return t, nil
}

// readKubeconfig is the reverse of writeKubeconfig.
func readKubeconfig(path string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig %s: %w", path, err)
	}
	return restConfig(config.Host, config.CAData, config.BearerToken), nil
}
