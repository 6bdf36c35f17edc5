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
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"text/template"
)

const (
	valuesFile   = "charts/synchub/values.yaml"
	templatesDir = "hack/chartreference/pages"
)

// pages are the files to write, each with its template.
var pages = map[string]string{
	"charts/synchub/README.md": "readme.md.tmpl",
	"docs/reference/values.md": "values.md.tmpl",
}

func main() {
	if err := generate(); err != nil {
		fmt.Fprintln(os.Stderr, "chartreference:", err)
		os.Exit(1)
	}
}

func generate() error {
	content, err := os.ReadFile(valuesFile)
	if err != nil {
		return fmt.Errorf("run this in the root of the repository: %w", err)
	}
	values, err := parse(content)
	if err != nil {
		return fmt.Errorf("%s: %w", valuesFile, err)
	}
	var errs []error
	for file, name := range pages {
		errs = append(errs, write(file, filepath.Join(templatesDir, name), tables(values)))
	}
	return errors.Join(errs...)
}

func write(file, templateFile string, tables string) error {
	page, err := template.ParseFiles(templateFile)
	if err != nil {
		return fmt.Errorf("read the template of %s: %w", file, err)
	}
	var content bytes.Buffer
	if err := page.Execute(&content, tables); err != nil {
		return fmt.Errorf("fill the template of %s: %w", file, err)
	}
	return os.WriteFile(file, content.Bytes(), 0o644)
}
