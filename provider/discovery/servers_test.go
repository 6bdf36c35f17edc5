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
	"testing"

	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/provider/discovery"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// cluster returns the administrator's config for the cluster.
func cluster(t testing.TB) *rest.Config {
	t.Helper()
	return withoutWarnings(suite.Target(t).Config)
}

// kcp returns the administrator's config for a workspace.
func kcp(t *testing.T, workspace string) *rest.Config {
	t.Helper()
	return withoutWarnings(suite.KCP(t).Workspace(workspace))
}

// discoveryClient returns a client of a server.
func discoveryClient(t testing.TB, config *rest.Config) *discovery.Client {
	t.Helper()
	client, err := discovery.NewClient(config, nil)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// withoutWarnings returns a config whose clients do not log that an API is deprecated.
func withoutWarnings(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{}
	return config
}
