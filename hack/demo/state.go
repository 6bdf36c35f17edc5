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

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"

	"github.com/synchub-dev/synchub/test/framework"
)

const (
	stateDir      = ".demo"
	logDir        = "logs"
	kubeconfigDir = "kubeconfigs"
	// kubeconfigFile has a context for each workspace and cluster, and a shell reads environmentFile to use it.
	kubeconfigFile, environmentFile = "kubeconfig", "env"
	lockFile                        = "lock"
	// ownLog contains the log output of the libraries in this program.
	ownLog = "demo.log"
)

// state is the directory of a run.
type state struct {
	// root is the root of the repository. dir is the directory of the demo in it.
	root, dir string
	lock, log *os.File

	mu       sync.Mutex
	contexts *clientcmdapi.Config
}

// openState locks the demo's directory for this run and removes the files of an earlier run.
func openState() (*state, error) {
	root, err := framework.RepositoryRoot()
	if err != nil {
		return nil, err
	}
	s := &state{root: root, dir: filepath.Join(root, stateDir), contexts: clientcmdapi.NewConfig()}
	if err := s.open(); err != nil {
		s.close()
		return nil, fmt.Errorf("prepare %s: %w", s.dir, err)
	}
	return s, nil
}

func (s *state) open() error {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	if err := s.takeLock(); err != nil {
		return err
	}
	if err := s.clear(); err != nil {
		return err
	}
	for _, dir := range []string{logDir, kubeconfigDir} {
		if err := os.Mkdir(filepath.Join(s.dir, dir), 0o755); err != nil {
			return err
		}
	}
	var err error
	if s.log, err = os.Create(filepath.Join(s.dir, logDir, ownLog)); err != nil {
		return err
	}
	klog.LogToStderr(false)
	klog.SetOutput(s.log)
	return s.writeEnvironment()
}

// takeLock returns an error while another run uses the directory. The kernel releases the lock whenever this program
// ends, even by a crash.
func (s *state) takeLock() (err error) {
	if s.lock, err = os.OpenFile(filepath.Join(s.dir, lockFile), os.O_CREATE|os.O_RDWR, 0o644); err != nil {
		return err
	}
	err = syscall.Flock(int(s.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errors.New("another demo runs from here, stop that one first")
	}
	return err
}

// clear removes everything except the lock and the named files.
func (s *state) clear(keep ...string) error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == lockFile || slices.Contains(keep, entry.Name()) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(s.dir, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// keepLogs removes the files that are useless once the servers are stopped.
func (s *state) keepLogs() error {
	if err := s.clear(logDir); err != nil {
		return fmt.Errorf("remove the data of the servers: %w", err)
	}
	return nil
}

func (s *state) close() {
	klog.Flush()
	for _, file := range []*os.File{s.log, s.lock} {
		if file != nil {
			_ = file.Close() // a failure would not matter to anybody
		}
	}
}

// kubeconfig is the path of the kubeconfig with a context for each workspace and cluster.
func (s *state) kubeconfig() string { return filepath.Join(s.dir, kubeconfigFile) }

// kubeconfigOf is the path of the kubeconfig of one workspace or cluster.
func (s *state) kubeconfigOf(name string) string {
	return filepath.Join(s.dir, kubeconfigDir, name+".kubeconfig")
}

// addContext adds the current context of a kubeconfig under another name, also as a file of its own.
func (s *state) addContext(name, from string) error {
	config, err := clientcmd.LoadFromFile(from)
	if err != nil {
		return fmt.Errorf("read the kubeconfig of %s: %w", name, err)
	}
	current, ok := config.Contexts[config.CurrentContext]
	if !ok {
		return fmt.Errorf("the kubeconfig %s has no current context", from)
	}
	own := clientcmdapi.NewConfig()
	own.CurrentContext = name
	own.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	own.Clusters[name] = config.Clusters[current.Cluster]
	own.AuthInfos[name] = config.AuthInfos[current.AuthInfo]
	if err := clientcmd.WriteToFile(*own, s.kubeconfigOf(name)); err != nil {
		return fmt.Errorf("write the kubeconfig of %s: %w", name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.contexts.Contexts[name], s.contexts.Clusters[name], s.contexts.AuthInfos[name] = own.Contexts[name], own.Clusters[name], own.AuthInfos[name]
	if err := clientcmd.WriteToFile(*s.contexts, s.kubeconfig()); err != nil {
		return fmt.Errorf("write the kubeconfig of the demo: %w", err)
	}
	return nil
}

// writeEnvironment writes a file that a shell reads, so that kubectl and its plugin work there by contexts.
func (s *state) writeEnvironment() error {
	content := fmt.Sprintf("export PATH='%s':\"$PATH\"\nexport KUBECONFIG='%s'\n", filepath.Join(s.root, "bin"), s.kubeconfig())
	if err := os.WriteFile(filepath.Join(s.dir, environmentFile), []byte(content), 0o600); err != nil {
		return fmt.Errorf("write the environment of the demo: %w", err)
	}
	return nil
}

// relative returns the path relative to the root of the repository.
func (s *state) relative(path string) string {
	relative, err := filepath.Rel(s.root, path)
	if err != nil {
		return path
	}
	return relative
}
