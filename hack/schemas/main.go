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

// Command schemas writes the schemas that the hub has for APIs of Kubernetes, as a kube-apiserver of the pinned
// version describes them. `make schemas` runs it from the root of the repository; it needs bin/kube-apiserver and
// bin/etcd.
package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"

	"github.com/synchub-dev/synchub/hack/schemas/shipped"
	"github.com/synchub-dev/synchub/test/framework/servers"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := generate(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "schemas:", err)
		os.Exit(1)
	}
}

func generate(ctx context.Context) (err error) {
	data, err := os.MkdirTemp("", "synchub-schemas-")
	if err != nil {
		return fmt.Errorf("making a directory for a cluster: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(data)) }()
	cluster, err := servers.StartTarget(ctx, servers.Options{Dir: data, Bin: "bin"}, "cluster", servers.TargetOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	files, err := shipped.Files(ctx, cluster.Config)
	if err != nil {
		return err
	}
	return replace(files)
}

// replace writes the files, and removes files that are no longer generated.
func replace(files map[string][]byte) error {
	present, err := filepath.Glob(filepath.Join(shipped.Directory, shipped.Pattern))
	if err != nil {
		return fmt.Errorf("listing the schemas that there are: %w", err)
	}
	for _, path := range present {
		if _, wanted := files[filepath.Base(path)]; !wanted {
			err = errors.Join(err, os.Remove(path))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		err = errors.Join(err, os.WriteFile(filepath.Join(shipped.Directory, name), files[name], 0o644))
	}
	return err
}
