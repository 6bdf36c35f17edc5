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
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	out := flag.String("out", "dist/site", "directory for the site")
	flag.Parse()
	if err := build(".", *out); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
	fmt.Printf("The site is in %s; open %s\n", *out, filepath.Join(*out, "index.html"))
}

// build writes the site of a repository. It writes nothing if a link is broken.
func build(root, out string) error {
	site, err := load(os.DirFS(root))
	if err != nil {
		return err
	}
	files, err := site.files()
	if err != nil {
		return err
	}
	if err := checkLinks(files); err != nil {
		return err
	}
	if err := os.RemoveAll(out); err != nil {
		return fmt.Errorf("remove the former site: %w", err)
	}
	var errs []error
	for name, content := range files {
		errs = append(errs, write(filepath.Join(out, filepath.FromSlash(name)), content))
	}
	return errors.Join(errs...)
}

func write(file string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("make a directory of the site: %w", err)
	}
	if err := os.WriteFile(file, content, 0o644); err != nil {
		return fmt.Errorf("write a page: %w", err)
	}
	return nil
}
