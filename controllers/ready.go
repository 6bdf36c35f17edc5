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
	"errors"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// cachesReadyCheck is a readiness check that fails while the caches of the mailboxes are not synced. It passes on a cold standby,
// which has no caches. Targets never count: one broken cluster does not make the hub unready.
type cachesReadyCheck struct {
	sync          interface{ HasPublished() bool }
	mailboxes     interface{ HasSynced() bool }
	role          interface{ Leads() bool }
	isColdStandby bool
}

// Register adds the check to the manager of the hosting cluster.
func (c cachesReadyCheck) Register(hosting manager.Manager) error {
	return hosting.AddReadyzCheck("kcp-caches", c.check)
}

func (c cachesReadyCheck) check(*http.Request) error {
	if c.isColdStandby && !c.role.Leads() || haveCachesSynced(c.sync, c.mailboxes) {
		return nil
	}
	return errors.New("the caches of the mailboxes are being filled")
}

// haveCachesSynced reports whether the caches of all published resources have synced. Before the resources are known there are only the
// caches of bindings and configs, which sync sooner.
func haveCachesSynced(sync interface{ HasPublished() bool }, mailboxes interface{ HasSynced() bool }) bool {
	return sync.HasPublished() && mailboxes.HasSynced()
}
