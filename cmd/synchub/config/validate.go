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
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/leaderelection"

	"github.com/synchub-dev/synchub/apis/config/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
	"github.com/synchub-dev/synchub/provider/tracing/otlp"
)

// Levels and Formats are the values of log.level and log.format.
var (
	Levels  = []string{"error", "info", "debug", "trace"}
	Formats = []string{"json", "console"}
)

// minDelay is the shortest delay before the hub concludes that an object is gone.
const minDelay = time.Second

// Validate returns the problems of the settings, each with the path of its field. It reads no files.
func Validate(s *v1alpha1.HubConfiguration) field.ErrorList {
	var problems field.ErrorList
	kcp, metrics, log := field.NewPath("kcp"), field.NewPath("metrics"), field.NewPath("log")
	if s.KCP.Kubeconfig == "" {
		problems = append(problems, field.Required(kcp.Child("kubeconfig"), "the path of the kubeconfig of the hub's kcp user"))
	}
	if s.KCP.ProviderWorkspace == "" {
		problems = append(problems, field.Required(kcp.Child("providerWorkspace"), "the path of the provider workspace"))
	}
	problems = append(problems, validateRate(kcp, s.KCP.QPS, s.KCP.Burst)...)
	problems = append(problems, notNegative(field.NewPath("memoryLimit"), s.MemoryLimit, "no limit")...)
	problems = append(problems, validateLeaderElection(field.NewPath("leaderElection"), &s.LeaderElection)...)
	problems = append(problems, validateCoordination(s)...)
	if s.Metrics.CertDir != "" && !s.Metrics.Secure {
		problems = append(problems, field.Required(metrics.Child("secure"), "only then the hub uses the certificate in "+metrics.Child("certDir").String()))
	}
	if address := s.Profiling.BindAddress; address != "" && !isLoopback(address) {
		problems = append(problems, field.Invalid(field.NewPath("profiling", "bindAddress"), address,
			"must be a loopback address such as 127.0.0.1:6060: profiles contain data that only operators may read"))
	}
	problems = append(problems, validateMailboxes(field.NewPath("mailboxes"), &s.Mailboxes)...)
	problems = append(problems, validatePlacement(field.NewPath("placement"), &s.Placement)...)
	problems = append(problems, validateTargets(field.NewPath("targets"), &s.Targets)...)
	problems = append(problems, validateTunnel(field.NewPath("tunnel"), &s.Tunnel)...)
	problems = append(problems, validateTracing(field.NewPath("tracing"), &s.Tracing)...)
	problems = append(problems, oneOf(log.Child("level"), s.Log.Level, Levels)...)
	return append(problems, oneOf(log.Child("format"), s.Log.Format, Formats)...)
}

func validateLeaderElection(path *field.Path, s *v1alpha1.LeaderElectionConfiguration) (problems field.ErrorList) {
	lease, renew, retry := s.LeaseDuration.Duration, s.RenewDeadline.Duration, s.RetryPeriod.Duration
	if lease <= renew {
		problems = append(problems, field.Invalid(path.Child("leaseDuration"), lease.String(), fmt.Sprintf("must be longer than the renew deadline, %s", renew)))
	}
	if retry <= 0 {
		problems = append(problems, field.Invalid(path.Child("retryPeriod"), retry.String(), "must be more than 0s"))
	} else if limit := time.Duration(leaderelection.JitterFactor * float64(retry)); renew <= limit {
		problems = append(problems, field.Invalid(path.Child("renewDeadline"), renew.String(), fmt.Sprintf("must be longer than %s, which is the retry period times %v", limit, leaderelection.JitterFactor)))
	}
	return append(problems, oneOf(path.Child("standby"), s.Standby, []v1alpha1.StandbyMode{v1alpha1.StandbyWarm, v1alpha1.StandbyCold})...)
}

// validateCoordination verifies that leader election is set up for what sharded replicas need: each must be able to hold a
// Lease, and must watch everything that the leader watches.
func validateCoordination(s *v1alpha1.HubConfiguration) field.ErrorList {
	path, election := field.NewPath("coordination"), field.NewPath("leaderElection")
	problems := oneOf(path, s.Coordination, []v1alpha1.CoordinationMode{v1alpha1.CoordinationLeader, v1alpha1.CoordinationSharded})
	if s.Coordination != v1alpha1.CoordinationSharded {
		return problems
	}
	if !s.LeaderElection.LeaderElect {
		problems = append(problems, field.Invalid(path, s.Coordination, fmt.Sprintf("needs %s: true, since replicas shard the SyncTargets by Leases", election.Child("leaderElect"))))
	}
	if s.LeaderElection.Standby == v1alpha1.StandbyCold {
		problems = append(problems, field.Invalid(path, s.Coordination, fmt.Sprintf("cannot be used with %s: %s, since each replica works", election.Child("standby"), v1alpha1.StandbyCold)))
	}
	return problems
}

// validateTunnel requires the URL of the port, since manifests of clusters need it.
func validateTunnel(path *field.Path, s *v1alpha1.TunnelConfiguration) (problems field.ErrorList) {
	if s.BindAddress == "0" {
		for name, value := range map[string]string{"url": s.URL, "certDir": s.CertDir} {
			if value != "" {
				problems = append(problems, field.Required(path.Child("bindAddress"), "without it the hub does not use "+path.Child(name).String()))
			}
		}
		return problems
	}
	if hub, err := url.Parse(s.URL); err != nil || hub.Scheme != "https" || hub.Hostname() == "" || hub.User != nil || hub.RawQuery != "" || hub.Fragment != "" {
		problems = append(problems, field.Invalid(path.Child("url"), s.URL, "must be the https URL that clusters use to reach the port, such as https://synchub.example.com:8443"))
	}
	return problems
}

func validateMailboxes(path *field.Path, s *v1alpha1.MailboxesConfiguration) (problems field.ErrorList) {
	problems = append(problems, positive(path.Child("maxObjects"), s.MaxObjects)...)
	problems = append(problems, positive(path.Child("maxBytes"), s.MaxBytes)...)
	problems = append(problems, notNegative(path.Child("totalBytes"), s.TotalBytes, "a share of the hub's memory")...)
	problems = append(problems, positive(path.Child("maxPerInventory"), int64(s.MaxPerInventory))...)
	problems = append(problems, validateDelay(path.Child("bindingSettlePeriod"), s.BindingSettlePeriod)...)
	return append(problems, validateDelay(path.Child("massDeletionDelay"), s.MassDeletionDelay)...)
}

func validateDelay(path *field.Path, delay metav1.Duration) field.ErrorList {
	if delay.Duration >= minDelay {
		return nil
	}
	return field.ErrorList{field.Invalid(path, delay.Duration.String(), fmt.Sprintf("must be %s or more", minDelay))}
}

func validatePlacement(path *field.Path, s *v1alpha1.PlacementConfiguration) (problems field.ErrorList) {
	problems = append(positive(path.Child("maxObjects"), int64(s.MaxObjects)), positive(path.Child("maxUpsyncedObjects"), int64(s.MaxUpsyncedObjects))...)
	if grace := s.WithdrawalGrace; grace.Duration < 0 {
		problems = append(problems, field.Invalid(path.Child("withdrawalGrace"), grace.Duration.String(), "must not be negative; 0s means no wait"))
	}
	return problems
}

func validateTargets(path *field.Path, s *v1alpha1.TargetsConfiguration) field.ErrorList {
	problems := validateRate(path, s.QPS, s.Burst)
	problems = append(problems, positive(path.Child("cacheObjects"), s.CacheObjects)...)
	problems = append(problems, positive(path.Child("cacheBytes"), s.CacheBytes)...)
	problems = append(problems, notNegative(path.Child("totalBytes"), s.TotalBytes, "a share of the hub's memory")...)
	for i, network := range s.DeniedNetworks {
		if _, err := kubeconfig.ParseDeniedNetworks([]string{network}); err != nil {
			problems = append(problems, field.Invalid(path.Child("deniedNetworks").Index(i), network, err.Error()))
		}
	}
	for i, pattern := range s.ProtectedNamespaces {
		if _, err := policy.ParseNamespacePatterns([]string{pattern}); err != nil {
			problems = append(problems, field.Invalid(path.Child("protectedNamespaces").Index(i), pattern, err.Error()))
		}
	}
	return problems
}

func validateTracing(path *field.Path, s *v1alpha1.TracingConfiguration) (problems field.ErrorList) {
	if s.Endpoint != "" {
		if err := otlp.ValidateEndpoint(s.Endpoint); err != nil {
			problems = append(problems, field.Invalid(path.Child("endpoint"), s.Endpoint, "must be a URL such as http://collector.observability:4317: "+err.Error()))
		}
	}
	if rate := s.SamplingRatePerMillion; rate < 0 || rate > otlp.SamplesAll {
		problems = append(problems, field.Invalid(path.Child("samplingRatePerMillion"), rate, fmt.Sprintf("must be from 0 to %d", otlp.SamplesAll)))
	}
	return problems
}

func validateRate(path *field.Path, qps float32, burst int) (problems field.ErrorList) {
	// NaN is not positive either.
	if !(qps > 0) {
		problems = append(problems, field.Invalid(path.Child("qps"), qps, "must be more than 0"))
	}
	return append(problems, positive(path.Child("burst"), int64(burst))...)
}

func positive(path *field.Path, value int64) field.ErrorList {
	if value > 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, "must be more than 0")}
}

func notNegative(path *field.Path, value int64, zero string) field.ErrorList {
	if value >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, "must not be negative; 0 means "+zero)}
}

func oneOf[T ~string](path *field.Path, value T, values []T) field.ErrorList {
	if slices.Contains(values, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, values)}
}

func isLoopback(address string) bool {
	parsed, err := netip.ParseAddrPort(address)
	return err == nil && parsed.Addr().IsLoopback()
}

// Explain returns the problems as one error, in one line. It names each setting as the user does: by its flag if the flag was
// given or there is no file, else by its field in the file.
func Explain(problems field.ErrorList, file string, flags *pflag.FlagSet) error {
	return joinProblems(problems, func(problem *field.Error) string {
		path, _, _ := strings.Cut(problem.Field, "[")
		if flag := flagOf(path); file == "" || flags.Changed(flag) {
			return "--" + flag + ": " + problem.ErrorBody()
		}
		return file + ": " + problem.Error()
	})
}

// flagOf returns the flag of a field.
func flagOf(path string) string {
	for flag, of := range fieldOf {
		if of == path {
			return flag
		}
	}
	return ""
}

// joinProblems returns nil if there are no problems.
func joinProblems(problems field.ErrorList, text func(*field.Error) string) error {
	if len(problems) == 0 {
		return nil
	}
	texts := make([]string, 0, len(problems))
	for _, problem := range problems {
		texts = append(texts, text(problem))
	}
	return errors.New(strings.Join(texts, "; "))
}
