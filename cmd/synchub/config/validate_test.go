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
	"math"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/synchub-dev/synchub/apis/config/v1alpha1"
)

// valid returns the defaults, with the required settings that have no default.
func valid() *v1alpha1.HubConfiguration {
	settings := Defaults()
	settings.KCP.Kubeconfig = "kcp.kubeconfig"
	return settings
}

func TestValidateNamesFields(t *testing.T) {
	NewWithT(t).Expect(Validate(valid())).To(BeEmpty())
	for path, change := range map[string]func(*v1alpha1.HubConfiguration){
		"kcp.kubeconfig":                 func(s *v1alpha1.HubConfiguration) { s.KCP.Kubeconfig = "" },
		"kcp.providerWorkspace":          func(s *v1alpha1.HubConfiguration) { s.KCP.ProviderWorkspace = "" },
		"kcp.qps":                        func(s *v1alpha1.HubConfiguration) { s.KCP.QPS = float32(math.NaN()) },
		"kcp.burst":                      func(s *v1alpha1.HubConfiguration) { s.KCP.Burst = 0 },
		"memoryLimit":                    func(s *v1alpha1.HubConfiguration) { s.MemoryLimit = -1 },
		"coordination":                   func(s *v1alpha1.HubConfiguration) { s.Coordination = "shared" },
		"leaderElection.leaseDuration":   func(s *v1alpha1.HubConfiguration) { s.LeaderElection.LeaseDuration = s.LeaderElection.RenewDeadline },
		"leaderElection.renewDeadline":   func(s *v1alpha1.HubConfiguration) { s.LeaderElection.RenewDeadline = s.LeaderElection.RetryPeriod },
		"leaderElection.retryPeriod":     func(s *v1alpha1.HubConfiguration) { s.LeaderElection.RetryPeriod.Duration = 0 },
		"leaderElection.standby":         func(s *v1alpha1.HubConfiguration) { s.LeaderElection.Standby = "hot" },
		"metrics.secure":                 func(s *v1alpha1.HubConfiguration) { s.Metrics.CertDir = "certificates" },
		"profiling.bindAddress":          func(s *v1alpha1.HubConfiguration) { s.Profiling.BindAddress = ":6060" },
		"mailboxes.maxObjects":           func(s *v1alpha1.HubConfiguration) { s.Mailboxes.MaxObjects = 0 },
		"mailboxes.maxBytes":             func(s *v1alpha1.HubConfiguration) { s.Mailboxes.MaxBytes = 0 },
		"mailboxes.totalBytes":           func(s *v1alpha1.HubConfiguration) { s.Mailboxes.TotalBytes = -1 },
		"mailboxes.maxPerInventory":      func(s *v1alpha1.HubConfiguration) { s.Mailboxes.MaxPerInventory = 0 },
		"mailboxes.bindingSettlePeriod":  func(s *v1alpha1.HubConfiguration) { s.Mailboxes.BindingSettlePeriod.Duration = time.Millisecond },
		"mailboxes.massDeletionDelay":    func(s *v1alpha1.HubConfiguration) { s.Mailboxes.MassDeletionDelay.Duration = 0 },
		"placement.maxObjects":           func(s *v1alpha1.HubConfiguration) { s.Placement.MaxObjects = 0 },
		"placement.maxUpsyncedObjects":   func(s *v1alpha1.HubConfiguration) { s.Placement.MaxUpsyncedObjects = 0 },
		"placement.withdrawalGrace":      func(s *v1alpha1.HubConfiguration) { s.Placement.WithdrawalGrace.Duration = -1 },
		"targets.qps":                    func(s *v1alpha1.HubConfiguration) { s.Targets.QPS = 0 },
		"targets.burst":                  func(s *v1alpha1.HubConfiguration) { s.Targets.Burst = -1 },
		"targets.cacheObjects":           func(s *v1alpha1.HubConfiguration) { s.Targets.CacheObjects = 0 },
		"targets.cacheBytes":             func(s *v1alpha1.HubConfiguration) { s.Targets.CacheBytes = 0 },
		"targets.totalBytes":             func(s *v1alpha1.HubConfiguration) { s.Targets.TotalBytes = -1 },
		"targets.deniedNetworks[1]":      func(s *v1alpha1.HubConfiguration) { s.Targets.DeniedNetworks = []string{"10.0.0.0/8", "10.0.0.1"} },
		"targets.protectedNamespaces[0]": func(s *v1alpha1.HubConfiguration) { s.Targets.ProtectedNamespaces = []string{"*-system"} },
		"tracing.endpoint":               func(s *v1alpha1.HubConfiguration) { s.Tracing.Endpoint = "collector:4317" },
		"tracing.samplingRatePerMillion": func(s *v1alpha1.HubConfiguration) { s.Tracing.SamplingRatePerMillion = 1_000_001 },
		"log.level":                      func(s *v1alpha1.HubConfiguration) { s.Log.Level = "" },
		"log.format":                     func(s *v1alpha1.HubConfiguration) { s.Log.Format = "xml" },
	} {
		t.Run(path, func(t *testing.T) {
			settings := valid()
			change(settings)
			problems := Validate(settings)
			if len(problems) != 1 || problems[0].Field != path {
				t.Errorf("got %v", problems)
			}
		})
	}
}

func TestValidateCoordination(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*v1alpha1.LeaderElectionConfiguration)
		want   string
	}{
		"valid": {change: func(*v1alpha1.LeaderElectionConfiguration) {}},
		"no leader election": {
			change: func(s *v1alpha1.LeaderElectionConfiguration) { s.LeaderElect = false },
			want:   `--coordination: Invalid value: "sharded": needs leaderElection.leaderElect: true, since replicas shard the SyncTargets by Leases`,
		},
		"a cold standby": {
			change: func(s *v1alpha1.LeaderElectionConfiguration) { s.Standby = v1alpha1.StandbyCold },
			want:   `--coordination: Invalid value: "sharded": cannot be used with leaderElection.standby: cold, since each replica works`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			settings := valid()
			test.change(&settings.LeaderElection)
			g.Expect(Validate(settings)).To(BeEmpty(), "the leader alone does not need it")
			settings.Coordination = v1alpha1.CoordinationSharded
			err := Explain(Validate(settings), "", newFlags(Defaults()))
			if test.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(test.want))
			}
		})
	}
}

// A problem is named where its cause is.
func TestExplainNamesTheUsersSettings(t *testing.T) {
	problems := field.ErrorList{
		field.Invalid(field.NewPath("kcp", "qps"), 0, "must be more than 0"),
		field.Invalid(field.NewPath("targets", "deniedNetworks").Index(1), "x", "is no network"),
	}
	for name, test := range map[string]struct {
		file string
		args []string
		want string
	}{
		"flags alone":    {want: `--kcp-qps: Invalid value: 0: must be more than 0; --denied-networks: Invalid value: "x": is no network`},
		"a file":         {file: "hub.yaml", want: `hub.yaml: kcp.qps: Invalid value: 0: must be more than 0; hub.yaml: targets.deniedNetworks[1]: Invalid value: "x": is no network`},
		"a file, a flag": {file: "hub.yaml", args: []string{"--kcp-qps=0"}, want: `--kcp-qps: Invalid value: 0: must be more than 0; hub.yaml: targets.deniedNetworks[1]: Invalid value: "x": is no network`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			flags := newFlags(Defaults())
			g.Expect(flags.Parse(test.args)).To(Succeed())
			g.Expect(Explain(problems, test.file, flags)).To(MatchError(test.want))
			g.Expect(Explain(nil, test.file, flags)).To(Succeed())
		})
	}
}
