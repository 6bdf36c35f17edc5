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

// Command dashboards writes the dashboards for Grafana, as JSON files, into the chart. `make generate` runs it from the root of the
// repository. A panel's query is written once, here; Grafana's own fields are derived.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

const directory = "charts/synchub/files/dashboards"

func main() {
	for _, one := range []dashboard{fleet(), target(), hub()} {
		if err := write(one); err != nil {
			fmt.Fprintln(os.Stderr, "dashboards:", err)
			os.Exit(1)
		}
	}
}

func write(one dashboard) error {
	var content bytes.Buffer
	encoder := json.NewEncoder(&content)
	// Queries have < and >.
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(one.render()); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(directory, one.uid+".json"), content.Bytes(), 0o644)
}
