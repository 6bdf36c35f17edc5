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
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"synchub.dev/hack/plots/results"
)

func main() {
	from := flag.String("from", "../../RESULTS.md", "the file with the table of results")
	out := flag.String("out", "../../docs/images", "the directory for the charts")
	flag.Parse()
	if err := run(*from, *out); err != nil {
		fmt.Fprintln(os.Stderr, "plots:", err)
		os.Exit(1)
	}
}

func run(from, out string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("read the results: %w", err)
	}
	rows, err := results.Parse(string(text))
	if err != nil {
		return fmt.Errorf("read %s: %w", from, err)
	}
	images, err := drawAll(rows)
	if err != nil {
		return fmt.Errorf("draw %s: %w", from, err)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("create the directory for charts: %w", err)
	}
	for name, image := range images {
		if err := os.WriteFile(filepath.Join(out, name), image, 0o644); err != nil {
			return fmt.Errorf("write a chart: %w", err)
		}
	}
	return nil
}
