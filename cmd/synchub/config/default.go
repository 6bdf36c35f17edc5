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

package config

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/synchub-dev/synchub/apis/config/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/placement"
	"github.com/synchub-dev/synchub/controllers/placement/withdrawal"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/provider/mailboxes/absence"
)

// Defaults returns the settings of a hub that has neither flags nor a file.
func Defaults() *v1alpha1.HubConfiguration {
	return &v1alpha1.HubConfiguration{
		TypeMeta:     metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.Kind},
		Coordination: v1alpha1.CoordinationLeader,
		KCP:          v1alpha1.KCPConfiguration{ProviderWorkspace: "root:synchub", QPS: 2000, Burst: 4000},
		LeaderElection: v1alpha1.LeaderElectionConfiguration{
			LeaderElect:   true,
			LeaseDuration: metav1.Duration{Duration: 15 * time.Second},
			RenewDeadline: metav1.Duration{Duration: 10 * time.Second},
			RetryPeriod:   metav1.Duration{Duration: 2 * time.Second},
			Standby:       v1alpha1.StandbyWarm,
		},
		Metrics: v1alpha1.MetricsConfiguration{BindAddress: ":8080", PerResource: true},
		Health:  v1alpha1.HealthConfiguration{BindAddress: ":8081"},
		Tunnel:  v1alpha1.TunnelConfiguration{BindAddress: "0"},
		Mailboxes: v1alpha1.MailboxesConfiguration{
			MaxObjects: 20_000, MaxBytes: 64 << 20, MaxPerInventory: 1000,
			BindingSettlePeriod: metav1.Duration{Duration: absence.DefaultDelays.BindingSettle},
			MassDeletionDelay:   metav1.Duration{Duration: absence.DefaultDelays.MassDeletion},
		},
		Placement: v1alpha1.PlacementConfiguration{MaxObjects: placement.DefaultMaxPairs, MaxUpsyncedObjects: placement.DefaultMaxReflections, WithdrawalGrace: metav1.Duration{Duration: withdrawal.DefaultGrace}},
		Targets: v1alpha1.TargetsConfiguration{
			QPS: 1000, Burst: 2000, CacheObjects: 100_000, CacheBytes: 128 << 20,
			// A copy: a list in the file is decoded into the memory of the default.
			ProtectedNamespaces: slices.Clone(policy.DefaultProtectedNamespaces),
		},
		Log:     v1alpha1.LogConfiguration{Level: "info", Format: "json"},
		Tracing: v1alpha1.TracingConfiguration{SamplingRatePerMillion: 10_000},
	}
}
