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
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// HostingFlags select the cluster that hosts the hub and its PublishedResources.
type HostingFlags struct{ Kubeconfig, Context string }

// AddFlags adds the flags to a command. usage describes the kubeconfig.
func (f *HostingFlags) AddFlags(command *cobra.Command, usage string) {
	flags := command.Flags()
	flags.StringVar(&f.Kubeconfig, "hosting-kubeconfig", "", usage)
	flags.StringVar(&f.Context, "hosting-context", "", "context of the hosting cluster in --hosting-kubeconfig; without that, in the kubeconfig that kubectl uses")
}

// IsSet reports whether the user named the hosting cluster.
func (f *HostingFlags) IsSet() bool { return f.Kubeconfig != "" || f.Context != "" }

// Config returns the client configuration for the hosting cluster. Without a kubeconfig flag it uses the kubeconfig of the command.
func (f *HostingFlags) Config(inUse *genericclioptions.ConfigFlags) (*rest.Config, error) {
	flags := NewClusterFlags(false)
	flags.KubeConfig = inUse.KubeConfig
	if f.Kubeconfig != "" {
		flags.KubeConfig = &f.Kubeconfig
	}
	flags.Context = &f.Context
	return flags.ToRESTConfig()
}

// Client returns a client for the hosting cluster.
func (f *HostingFlags) Client(inUse *genericclioptions.ConfigFlags) (client.WithWatch, error) {
	config, err := f.Config(inUse)
	if err == nil {
		var hosting client.WithWatch
		if hosting, err = ClientOf(config); err == nil {
			return hosting, nil
		}
	}
	return nil, fmt.Errorf("cannot reach the hosting cluster: %w", err)
}
