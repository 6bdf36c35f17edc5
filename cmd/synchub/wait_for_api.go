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
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/provider/kcp"
)

const (
	// apiPollInterval is how often wait-for-api polls: no event announces which APIs a cluster serves.
	apiPollInterval = 500 * time.Millisecond
	// apiRequestTimeout bounds one request of the poll.
	apiRequestTimeout = 10 * time.Second
)

func newWaitForAPICommand() *cobra.Command {
	var kubeconfig string
	var timeout time.Duration
	command := &cobra.Command{
		Use:   "wait-for-api RESOURCE.GROUP",
		Short: "Wait until the hosting cluster serves an API",
		Long: "Wait until the hosting cluster serves an API. The Helm chart runs this after it has created the definition of PublishedResources\n" +
			"and before it creates the first of them. The command needs no more rights than every user has.",
		Example: "  synchub wait-for-api publishedresources.synchub.dev",
		Args: func(command *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] != "" {
				return nil
			}
			return withAdvice(command, errors.New("give one API, such as publishedresources.synchub.dev"))
		},
		RunE: func(command *cobra.Command, args []string) error {
			config, err := hostingConfig(kubeconfig, kcp.Limits{QPS: 5, Burst: 10})
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(command.Context(), timeout)
			defer cancel()
			return waitForAPI(ctx, config, schema.ParseGroupResource(args[0]), command.OutOrStdout())
		},
	}
	flags := command.Flags()
	flags.StringVar(&kubeconfig, "hosting-kubeconfig", "", "kubeconfig of the hosting cluster (default: in-cluster)")
	flags.DurationVar(&timeout, "timeout", 2*time.Minute, "how long to wait")
	return command
}

// waitForAPI waits until a cluster serves a resource in some version.
func waitForAPI(ctx context.Context, config *rest.Config, resource schema.GroupResource, out io.Writer) error {
	config = rest.CopyConfig(config)
	config.Timeout = apiRequestTimeout
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	var last error
	err = wait.PollUntilContextCancel(ctx, apiPollInterval, true, func(context.Context) (bool, error) {
		var served bool
		served, last = isServed(client, resource)
		return served, nil
	})
	if err != nil {
		return errors.Join(fmt.Errorf("the cluster %s does not serve %s: %w", config.Host, resource, err), last)
	}
	_, err = fmt.Fprintf(out, "the cluster serves %s\n", resource)
	return err
}

// isServed reports whether a cluster serves a resource in some version.
func isServed(client discovery.DiscoveryInterface, resource schema.GroupResource) (bool, error) {
	groups, err := client.ServerGroups()
	if err != nil {
		return false, err
	}
	for _, group := range groups.Groups {
		if group.Name != resource.Group {
			continue
		}
		for _, version := range group.Versions {
			list, err := client.ServerResourcesForGroupVersion(version.GroupVersion)
			if err != nil {
				return false, err
			}
			if slices.ContainsFunc(list.APIResources, func(api metav1.APIResource) bool { return api.Name == resource.Resource }) {
				return true, nil
			}
		}
	}
	return false, nil
}
