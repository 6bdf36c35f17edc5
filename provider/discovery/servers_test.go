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

package discovery_test

import (
	"context"
	"os"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/provider/discovery"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/servers"
)

// eventuallyTimeout is the timeout of waits, enough for a busy machine.
const eventuallyTimeout = 3 * time.Minute

// The servers of this package, each started by the first test that needs it.
var (
	shared        = &framework.PackageServers{}
	sharedCluster = framework.ServerOnce(shared, func(ctx context.Context, options servers.Options) (*servers.Target, error) {
		return servers.StartTarget(ctx, options, "cluster", servers.TargetOptions{})
	})
	sharedKCP = framework.ServerOnce(shared, func(ctx context.Context, options servers.Options) (*servers.KCP, error) {
		return servers.StartKCP(ctx, options)
	})
)

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

// cluster returns the administrator's config for the cluster, without a rate limit.
func cluster(t *testing.T) *rest.Config {
	t.Helper()
	return unlimited(sharedCluster(t).Config)
}

// kcp returns the administrator's config for a workspace.
func kcp(t *testing.T, workspace string) *rest.Config {
	t.Helper()
	return unlimited(sharedKCP(t).Config)
}

// withoutWarnings returns a config whose clients do not log that an API is deprecated.
func withoutWarnings(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{}
	return config
}

// discoveryClient returns a client of a server.
func discoveryClient(t *testing.T, config *rest.Config) *discovery.Client {
	t.Helper()
	client, err := discovery.NewClient(config, nil)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func dynamicClient(t *testing.T, config *rest.Config) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// apply creates or updates the objects of a manifest.
func apply(t *testing.T, config *rest.Config, manifest string) {
	t.Helper()
	if err := framework.Apply(t.Context(), config, manifest); err != nil {
		t.Fatal(err)
	}
}

// eventually waits for at most eventuallyTimeout.
func eventually(t *testing.T, what func(g Gomega)) {
	t.Helper()
	NewWithT(t).Eventually(what).WithContext(t.Context()).Should(Succeed())
}
