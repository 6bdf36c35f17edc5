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

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// probe is a GET request that succeeds once a server is ready.
type probe struct {
	config *rest.Config
	path   string
}

// all returns a function that runs the probes in order and returns the first failure.
func all(probes ...probe) (func(context.Context) error, error) {
	clients := make([]rest.Interface, len(probes))
	for i, p := range probes {
		client, err := discovery.NewDiscoveryClientForConfig(p.config)
		if err != nil {
			return nil, fmt.Errorf("make a client for %s: %w", p.config.Host, err)
		}
		clients[i] = client.RESTClient()
	}
	return func(ctx context.Context) error {
		for i, p := range probes {
			if err := clients[i].Get().AbsPath(p.path).Do(ctx).Error(); err != nil {
				return fmt.Errorf("GET %s%s: %w", p.config.Host, p.path, err)
			}
		}
		return nil
	}, nil
}
