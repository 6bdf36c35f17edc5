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

package controllers

import (
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
)

// newConnections returns the connections to targets.
func newConnections(r *replica) (*targets.Registry, error) {
	settings := r.settings.Targets
	denied, err := kubeconfig.ParseDeniedNetworks(settings.DeniedNetworks)
	if err != nil {
		return nil, err
	}
	return targets.NewRegistry(targets.Options{
		FieldManager: ownership.FieldManager(r.owner.UID), Fence: r.role.Fence, Tunnels: tunnelOptions(r), LeaderOnly: r.isColdStandby,
		Limits: kcp.Limits{QPS: settings.QPS, Burst: settings.Burst}, DeniedNetworks: denied,
		CacheLimits: targets.CacheLimits{Objects: settings.CacheObjects, Bytes: settings.CacheBytes}, TotalBytes: settings.TotalBytes,
		AggregateMetrics: !r.settings.Metrics.PerResource, Clock: r.clock, Log: r.Log.WithName("targets"),
	}), nil
}
