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
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// Prometheus is a Prometheus server that scrapes a hub every 5 seconds, with the labels that the chart's monitors give it.
type Prometheus struct {
	*Server
	URL string
}

// StartPrometheus starts a Prometheus for the hub that serves metrics at an address.
func StartPrometheus(ctx context.Context, opts Options, metrics string) (*Prometheus, error) {
	dir, err := opts.dataDir("prometheus")
	if err != nil {
		return nil, err
	}
	config, err := yaml.Marshal(map[string]any{
		"global": map[string]any{"scrape_interval": "5s", "scrape_timeout": "5s"},
		"scrape_configs": []any{map[string]any{
			"job_name": "synchub-metrics",
			"static_configs": []any{map[string]any{
				"targets": []string{metrics}, "labels": map[string]string{"namespace": "synchub", "instance": "synchub-0"},
			}},
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("write the configuration of prometheus: %w", err)
	}
	file := filepath.Join(dir, "prometheus.yaml")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return nil, fmt.Errorf("write the configuration of prometheus: %w", err)
	}
	p := &Prometheus{}
	p.Server, err = startServer(ctx, opts, "prometheus", 1, func(ports []int) (launch, error) {
		p.URL = "http://" + address(ports[0])
		ready, err := all(probe{&rest.Config{Host: p.URL}, "/-/ready"})
		return launch{program: "prometheus", ready: ready, args: []string{
			"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + address(ports[0]),
		}}, err
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}
