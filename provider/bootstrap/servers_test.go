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

package bootstrap_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/synchub-dev/synchub/provider/bootstrap"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// provider is a provider workspace.
type provider struct {
	*servers.KCP
	path, hubUser string
	// workloadGroups are the groups that may bind the workload export.
	workloadGroups []string
	dryRun         bool
}

// newProvider returns a provider workspace that does not exist yet. Each test has its own.
func newProvider(t *testing.T, name string) provider {
	t.Helper()
	return provider{KCP: suite.KCP(t), path: "root:" + name, hubUser: servers.HubUser}
}

// create creates the workspace, empty.
func (p provider) create(t *testing.T) provider {
	t.Helper()
	colon := strings.LastIndex(p.path, ":")
	if _, err := framework.CreateWorkspace(t.Context(), p.Config, p.path[:colon], p.path[colon+1:], ""); err != nil {
		t.Fatal(err)
	}
	return p
}

// bootstrapped calls Run as the administrator.
func (p provider) bootstrapped(t *testing.T, groups ...string) provider {
	t.Helper()
	if _, err := p.run(t, p.Config, groups...); err != nil {
		t.Fatal(err)
	}
	return p
}

// run calls Run as a user and returns the reported results by object.
func (p provider) run(t *testing.T, user *rest.Config, groups ...string) (report map[string]string, err error) {
	t.Helper()
	report = map[string]string{}
	err = bootstrap.Run(t.Context(), bootstrap.Options{
		Config:          func(workspace string) *rest.Config { return framework.InWorkspace(user, workspace) },
		Workspace:       p.path,
		HubUser:         p.hubUser,
		InventoryGroups: groups,
		WorkloadGroups:  p.workloadGroups,
		DryRun:          p.dryRun,
		Manifest: func(object client.Object) {
			if secret, ok := object.(*corev1.Secret); ok && len(secret.Data) > 0 {
				t.Error("the key is shown")
			}
		},
		Report: func(object, result string) {
			if before, ok := report[object]; ok {
				result = before + ", " + result
			}
			report[object] = result
		},
	})
	return report, err
}

// admin returns the administrator's client for the workspace.
func (p provider) admin(t *testing.T) client.Client {
	t.Helper()
	return p.client(t, p.Config, p.path)
}

// hub returns a client of the hub's user for the workspace.
func (p provider) hub(t *testing.T) client.Client {
	t.Helper()
	return p.client(t, p.HubConfig, p.path)
}

func (p provider) client(t *testing.T, user *rest.Config, workspace string) client.Client {
	t.Helper()
	made, err := client.New(framework.InWorkspace(user, workspace), client.Options{Scheme: bootstrap.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return made
}
