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

// Command generate generates files from the Go types in apis/: deep copy functions, CustomResourceDefinitions, the
// reference of the APIs and, for the kinds that kcp workspaces bind, APIResourceSchemas. `make generate` runs it from
// the root of the repository; it needs bin/controller-gen and bin/crd-ref-docs. It does not write files whose content
// is unchanged.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	apischemas "github.com/synchub-dev/synchub/apis/schemas"

	"github.com/synchub-dev/synchub/provider/schemas"
)

const (
	controllerGen = "bin/controller-gen"
	typesPath     = "./apis/..."
	schemasPath   = "apis/schemas"
	headerFile    = "hack/boilerplate.go.txt"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := generate(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func generate(ctx context.Context) error {
	if err := runControllerGen(ctx, "object:headerFile="+headerFile); err != nil {
		return err
	}
	crds, err := generateCRDs(ctx)
	if err != nil {
		return err
	}
	apiResourceSchemas, err := convertEdgeKinds(crds)
	if err != nil {
		return err
	}
	reference, err := generateReference(ctx)
	if err != nil {
		return err
	}
	return errors.Join(
		writeReference(reference),
		replaceFiles(filepath.Join(schemasPath, apischemas.CRDDirectory), crds),
		replaceFiles(filepath.Join(schemasPath, apischemas.APIResourceSchemaDirectory), apiResourceSchemas),
	)
}

func runControllerGen(ctx context.Context, generator ...string) error {
	command := exec.CommandContext(ctx, controllerGen, append(generator, "paths="+typesPath)...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("running %s %v (make builds it): %w", controllerGen, generator, err)
	}
	return nil
}

func generateCRDs(ctx context.Context) (map[string][]byte, error) {
	crds, err := collect(func(directory string) error {
		return runControllerGen(ctx, "crd", "output:crd:dir="+directory)
	})
	if err != nil {
		return nil, err
	}
	for name, content := range crds {
		if crds[name], err = restrictSelectors(content); err != nil {
			return nil, fmt.Errorf("restricting the selectors of the generated %s: %w", name, err)
		}
	}
	return crds, nil
}

// collect returns the files by name that the function puts into the directory, which is a temporary one, so that a
// failure leaves the repository unchanged.
func collect(generateInto func(directory string) error) (files map[string][]byte, err error) {
	directory, err := os.MkdirTemp("", "synchub-generated-")
	if err != nil {
		return nil, fmt.Errorf("making a directory for generated files: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()

	if err := generateInto(directory); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil, fmt.Errorf("listing generated files: %w", err)
	}
	files = make(map[string][]byte, len(entries))
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(directory, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading a generated file: %w", err)
		}
		files[entry.Name()] = content
	}
	return files, nil
}

func convertEdgeKinds(crds map[string][]byte) (map[string][]byte, error) {
	files := map[string][]byte{}
	for file, content := range crds {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(content, &crd); err != nil {
			return nil, fmt.Errorf("decoding the generated %s: %w", file, err)
		}
		if crd.Spec.Group != apischemas.EdgeGroup {
			continue
		}
		schema, err := schemas.FromCRD(&crd)
		if err != nil {
			return nil, err
		}
		converted, err := yaml.Marshal(schema)
		if err != nil {
			return nil, fmt.Errorf("encoding the APIResourceSchema of %s: %w", crd.Name, err)
		}
		files[file] = append([]byte("---\n"), converted...)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no kind of the group %s was found in %s", apischemas.EdgeGroup, typesPath)
	}
	return files, nil
}

// replaceFiles makes the directory contain exactly these files.
func replaceFiles(directory string, files map[string][]byte) error {
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return fmt.Errorf("making %s: %w", directory, err)
	}
	entries, err := os.ReadDir(directory)
	if err != nil {
		return fmt.Errorf("listing %s: %w", directory, err)
	}
	for _, entry := range entries {
		if _, wanted := files[entry.Name()]; wanted {
			continue
		}
		if err := os.Remove(filepath.Join(directory, entry.Name())); err != nil {
			return fmt.Errorf("removing an outdated file: %w", err)
		}
	}
	for name, content := range files {
		if err := writeIfChanged(filepath.Join(directory, name), content); err != nil {
			return err
		}
	}
	return nil
}

func writeIfChanged(file string, content []byte) error {
	present, err := os.ReadFile(file)
	switch {
	case err == nil && bytes.Equal(present, content):
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("reading %s: %w", file, err)
	}
	if err := os.WriteFile(file, content, 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	return nil
}
