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

package cli

import (
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
)

// Limits for the requests of one command to one server. kubectl has the same for its discovery: a workspace may have hundreds of
// APIs, and client-go's default of 5 requests a second takes a minute to list the objects of each.
const (
	ClientQPS   = 50
	ClientBurst = 300
)

// NewClusterFlags returns kubectl's flags that select a cluster or workspace. Their client config has the plugin's limits. All
// commands make their flags by this function.
func NewClusterFlags(usePersistentConfig bool) *genericclioptions.ConfigFlags {
	flags := genericclioptions.NewConfigFlags(usePersistentConfig).WithWrapConfigFn(withRequestLimits)
	// The plugin caches no discovery.
	flags.CacheDir = nil
	return flags
}

// withRequestLimits sets the plugin's limits in a client config, and returns it.
func withRequestLimits(config *rest.Config) *rest.Config {
	config.QPS, config.Burst = ClientQPS, ClientBurst
	return config
}
