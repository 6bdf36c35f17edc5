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

package kcp

import (
	"errors"
	"time"

	kcpcoreclient "github.com/kcp-dev/client-go/kubernetes/typed/core/v1"
	kcprbacclient "github.com/kcp-dev/client-go/kubernetes/typed/rbac/v1"
	kcpapisclient "github.com/kcp-dev/sdk/client/clientset/versioned/cluster/typed/apis/v1alpha2"

	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

// WorkspaceClients are clients for the kinds that every workspace has, with the hub's own rights and not through an export.
type WorkspaceClients struct {
	Core kcpcoreclient.CoreV1ClusterScoper
	RBAC kcprbacclient.RbacV1ClusterScoper
	APIs kcpapisclient.ApisV1alpha2ClusterScoper
}

// WorkspaceClients returns clients whose requests end after the timeout. All workspaces share the connections. The client of a
// workspace is made at its first use, with its own rate limit, and is kept.
func (a *ConfigProvider) WorkspaceClients(timeout time.Duration) (WorkspaceClients, error) {
	config := a.ConfigFor(a.host, requestmetrics.Control)
	config.Timeout = timeout
	core, coreErr := kcpcoreclient.NewForConfig(config)
	rbac, rbacErr := kcprbacclient.NewForConfig(config)
	apis, apisErr := kcpapisclient.NewForConfig(config)
	return WorkspaceClients{core, rbac, apis}, errors.Join(coreErr, rbacErr, apisErr)
}
