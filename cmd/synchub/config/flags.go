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

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/synchub-dev/synchub/apis/config/v1alpha1"
)

// Flag is the flag that names the file. It is the only one without a field.
const Flag = "config"

// fieldOf maps each flag to its field. Error messages and tests use it to translate between flags and fields.
var fieldOf = map[string]string{
	"binding-settle-period":             "mailboxes.bindingSettlePeriod",
	"coordination":                      "coordination",
	"denied-networks":                   "targets.deniedNetworks",
	"health-probe-bind-address":         "health.bindAddress",
	"hosting-kubeconfig":                "hosting.kubeconfig",
	"inventory-max-mailboxes":           "mailboxes.maxPerInventory",
	"kcp-burst":                         "kcp.burst",
	"kcp-kubeconfig":                    "kcp.kubeconfig",
	"kcp-qps":                           "kcp.qps",
	"standby":                           "leaderElection.standby",
	"leader-elect":                      "leaderElection.leaderElect",
	"leader-election-lease-duration":    "leaderElection.leaseDuration",
	"leader-election-namespace":         "leaderElection.namespace",
	"leader-election-renew-deadline":    "leaderElection.renewDeadline",
	"leader-election-retry-period":      "leaderElection.retryPeriod",
	"log-format":                        "log.format",
	"log-level":                         "log.level",
	"mailbox-max-bytes":                 "mailboxes.maxBytes",
	"mailbox-max-objects":               "mailboxes.maxObjects",
	"mailboxes-max-bytes":               "mailboxes.totalBytes",
	"mass-deletion-delay":               "mailboxes.massDeletionDelay",
	"max-placed-objects":                "placement.maxObjects",
	"max-upsynced-objects":              "placement.maxUpsyncedObjects",
	"memory-limit":                      "memoryLimit",
	"metrics-bind-address":              "metrics.bindAddress",
	"metrics-cert-dir":                  "metrics.certDir",
	"metrics-per-resource":              "metrics.perResource",
	"metrics-secure":                    "metrics.secure",
	"namespace":                         "namespace",
	"profiling":                         "profiling.bindAddress",
	"protected-namespaces":              "targets.protectedNamespaces",
	"provider-workspace":                "kcp.providerWorkspace",
	"target-burst":                      "targets.burst",
	"target-cache-bytes":                "targets.cacheBytes",
	"target-cache-objects":              "targets.cacheObjects",
	"target-qps":                        "targets.qps",
	"targets-max-bytes":                 "targets.totalBytes",
	"tracing-endpoint":                  "tracing.endpoint",
	"tracing-sampling-rate-per-million": "tracing.samplingRatePerMillion",
	"tunnel-bind-address":               "tunnel.bindAddress",
	"tunnel-cert-dir":                   "tunnel.certDir",
	"tunnel-url":                        "tunnel.url",
	"withdrawal-grace":                  "placement.withdrawalGrace",
}

// AddFlags adds a flag for each setting, in groups. A flag that is not given keeps the value of the settings.
func AddFlags(groups *cliflag.NamedFlagSets, s *v1alpha1.HubConfiguration) {
	general := groups.FlagSet("general")
	general.StringVar(&s.KCP.Kubeconfig, "kcp-kubeconfig", s.KCP.Kubeconfig, "kubeconfig of the hub's kcp user; re-read when it changes (required)")
	general.StringVar(&s.Hosting.Kubeconfig, "hosting-kubeconfig", s.Hosting.Kubeconfig, "kubeconfig of the hosting cluster (default: in-cluster)")
	general.StringVar(&s.KCP.ProviderWorkspace, "provider-workspace", s.KCP.ProviderWorkspace, "path of the provider workspace")
	general.StringVar(&s.Namespace, "namespace", s.Namespace, "namespace of the hub in the hosting cluster, with the ConfigMaps that hold schemas (default: the Pod's, else default)")
	general.Int64Var(&s.MemoryLimit, "memory-limit", s.MemoryLimit, "bytes of memory that the hub may use; near this limit the hub collects garbage more often (default: no limit)")

	leaderElection := groups.FlagSet("leader election")
	leaderElection.StringVar((*string)(&s.Coordination), "coordination", string(s.Coordination), "how replicas divide the work: with leader, the leader does all of it; with sharded, the replicas shard the SyncTargets")
	addLeaderElectionFlags(leaderElection, &s.LeaderElection)
	addServingFlags(groups.FlagSet("serving"), s)

	tunnel := groups.FlagSet("tunnel")
	tunnel.StringVar(&s.Tunnel.BindAddress, "tunnel-bind-address", s.Tunnel.BindAddress, `address of the port for the tunnels of clusters that the hub cannot dial, such as :8443; "0" turns it off`)
	tunnel.StringVar(&s.Tunnel.URL, "tunnel-url", s.Tunnel.URL, "URL that clusters use to reach that port, such as https://synchub.example.com:8443")
	tunnel.StringVar(&s.Tunnel.CertDir, "tunnel-cert-dir", s.Tunnel.CertDir, "directory with tls.crt, tls.key and, unless its authority is public, ca.crt of that port (default: certificates of an authority that the hub makes and keeps in a Secret of its namespace)")

	rates := groups.FlagSet("rate limit")
	rates.Float32Var(&s.KCP.QPS, "kcp-qps", s.KCP.QPS, "requests per second to each kcp endpoint")
	rates.IntVar(&s.KCP.Burst, "kcp-burst", s.KCP.Burst, "requests to each kcp endpoint at once")
	rates.Float32Var(&s.Targets.QPS, "target-qps", s.Targets.QPS, "requests per second to each target")
	rates.IntVar(&s.Targets.Burst, "target-burst", s.Targets.Burst, "requests to each target at once")

	addMailboxFlags(groups.FlagSet("mailbox"), &s.Mailboxes)
	placements := groups.FlagSet("placement")
	placements.DurationVar(&s.Placement.WithdrawalGrace.Duration, "withdrawal-grace", s.Placement.WithdrawalGrace.Duration, "how long the hub waits before it withdraws more than a few copies because a Location, or a label of a SyncTarget, changed; 0 withdraws them at once")
	placements.IntVar(&s.Placement.MaxObjects, "max-placed-objects", s.Placement.MaxObjects, "pairs of an object and a destination that the placements of one workload workspace may have; a placement with more gets the reason LimitExceeded, and the hub places none of its new objects")
	placements.IntVar(&s.Placement.MaxUpsyncedObjects, "max-upsynced-objects", s.Placement.MaxUpsyncedObjects, "objects of clusters that the placements of one workload workspace may bring into it by spec.upsync; those beyond get the reason LimitExceeded")
	addTargetFlags(groups.FlagSet("target"), &s.Targets)

	log := groups.FlagSet("log")
	log.StringVar(&s.Log.Level, "log-level", s.Log.Level, "error, info, debug or trace")
	log.StringVar(&s.Log.Format, "log-format", s.Log.Format, "json or console")

	tracing := groups.FlagSet("tracing")
	tracing.StringVar(&s.Tracing.Endpoint, "tracing-endpoint", s.Tracing.Endpoint, "URL of a collector that takes traces by OTLP over gRPC, such as http://collector.observability:4317; https for TLS (default: no traces). The variables OTEL_EXPORTER_OTLP_CERTIFICATE and OTEL_EXPORTER_OTLP_HEADERS count")
	tracing.IntVar(&s.Tracing.SamplingRatePerMillion, "tracing-sampling-rate-per-million", s.Tracing.SamplingRatePerMillion, "how many of a million changes of objects are traced; 1000000 traces all")
}

func addLeaderElectionFlags(flags *pflag.FlagSet, s *v1alpha1.LeaderElectionConfiguration) {
	flags.BoolVar(&s.LeaderElect, "leader-elect", s.LeaderElect, "work only while holding the Lease")
	flags.StringVar(&s.Namespace, "leader-election-namespace", s.Namespace, "namespace of the Lease (default: --namespace)")
	flags.DurationVar(&s.LeaseDuration.Duration, "leader-election-lease-duration", s.LeaseDuration.Duration, "how long the other replicas wait before they replace a lost leader")
	flags.DurationVar(&s.RenewDeadline.Duration, "leader-election-renew-deadline", s.RenewDeadline.Duration, "how long the leader tries to renew before it gives up")
	flags.DurationVar(&s.RetryPeriod.Duration, "leader-election-retry-period", s.RetryPeriod.Duration, "how often the leader renews the Lease; the other replicas watch the Lease")
	flags.StringVar((*string)(&s.Standby), "standby", string(s.Standby), "mode of a replica that does not lead, with --coordination=leader: a warm replica watches everything that the leader watches and takes over at once, a cold one only waits")
}

func addServingFlags(flags *pflag.FlagSet, s *v1alpha1.HubConfiguration) {
	flags.StringVar(&s.Metrics.BindAddress, "metrics-bind-address", s.Metrics.BindAddress, `address of /metrics; "0" turns it off`)
	flags.BoolVar(&s.Metrics.Secure, "metrics-secure", s.Metrics.Secure, "serve /metrics over TLS, and only to those whose token the hosting cluster authenticates and who may get the URL /metrics there")
	flags.StringVar(&s.Metrics.CertDir, "metrics-cert-dir", s.Metrics.CertDir, "directory with the certificate for --metrics-secure in tls.crt and its key in tls.key; re-read when they change (default: a self-signed certificate, made at the start)")
	flags.BoolVar(&s.Metrics.PerResource, "metrics-per-resource", s.Metrics.PerResource, "label the metrics of each SyncTarget by resource; false adds them up, which makes a tenth of the series for ten resources")
	flags.StringVar(&s.Health.BindAddress, "health-probe-bind-address", s.Health.BindAddress, `address of /healthz and /readyz; "0" turns them off`)
	flags.StringVar(&s.Profiling.BindAddress, "profiling", s.Profiling.BindAddress, "serve profiles for go tool pprof below /debug/pprof/ at this loopback address")
	flags.Lookup("profiling").NoOptDefVal = "127.0.0.1:6060"
}

func addMailboxFlags(flags *pflag.FlagSet, s *v1alpha1.MailboxesConfiguration) {
	flags.Int64Var(&s.MaxObjects, "mailbox-max-objects", s.MaxObjects, "objects of one mailbox that the hub holds, the oldest first; those beyond are not synced. A SyncTarget may set fewer")
	flags.Int64Var(&s.MaxBytes, "mailbox-max-bytes", s.MaxBytes, "bytes of memory that the objects of one mailbox may take, the oldest first; those beyond are not synced. A SyncTarget may set fewer")
	flags.Int64Var(&s.TotalBytes, "mailboxes-max-bytes", s.TotalBytes, "bytes of memory that the objects of all mailboxes may take together; beyond that the largest mailboxes are cut first (default: a fifth of the memory that Go may take by --memory-limit or GOMEMLIMIT, else 184 MiB)")
	flags.IntVar(&s.MaxPerInventory, "inventory-max-mailboxes", s.MaxPerInventory, "mailboxes that the SyncTargets of one inventory workspace get; further SyncTargets get the reason TooManyMailboxes, and existing mailboxes stay")
	flags.DurationVar(&s.BindingSettlePeriod.Duration, "binding-settle-period", s.BindingSettlePeriod.Duration, "how long the binding of a mailbox must be unchanged before the hub treats an object as deleted; kcp takes long to show the objects of many mailboxes again after a claim was rejected and accepted")
	flags.DurationVar(&s.MassDeletionDelay.Duration, "mass-deletion-delay", s.MassDeletionDelay.Duration, "how long the hub waits before it verifies a second time that many objects of one mailbox are gone, and deletes their copies")
}

func addTargetFlags(flags *pflag.FlagSet, s *v1alpha1.TargetsConfiguration) {
	flags.Int64Var(&s.CacheObjects, "target-cache-objects", s.CacheObjects, "objects that the hub caches of one target; beyond the limit the hub leaves the target alone")
	flags.Int64Var(&s.CacheBytes, "target-cache-bytes", s.CacheBytes, "bytes of memory that these objects may take")
	flags.Int64Var(&s.TotalBytes, "targets-max-bytes", s.TotalBytes, "bytes of memory that the caches of all targets may take together; near the limit the hub leaves the targets alone that take most and grow (default: a quarter of the memory that Go may take by --memory-limit or GOMEMLIMIT, else 230 MiB)")
	flags.StringSliceVar(&s.ProtectedNamespaces, "protected-namespaces", s.ProtectedNamespaces, "namespaces that are not synced unless a SyncTarget or PublishedResource allows it, in addition to the hub's own namespace; a name that ends in * is a prefix")
	flags.StringSliceVar(&s.DeniedNetworks, "denied-networks", s.DeniedNetworks, "networks, such as 10.96.0.0/12, that the hub does not connect to, in addition to link-local, multicast and metadata addresses")
}

// Override replaces the settings by the settings of a file, except those whose flags are given. flags must come from AddFlags
// for the same settings.
func Override(settings *v1alpha1.HubConfiguration, file *v1alpha1.HubConfiguration, flags *pflag.FlagSet) error {
	var restore []func() error
	flags.Visit(func(flag *pflag.Flag) {
		if fieldOf[flag.Name] == "" {
			return
		}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			given := slices.Clone(list.GetSlice())
			restore = append(restore, func() error { return list.Replace(given) })
			return
		}
		given := flag.Value.String()
		restore = append(restore, func() error { return flag.Value.Set(given) })
	})
	*settings = *file
	for _, set := range restore {
		if err := set(); err != nil {
			return err
		}
	}
	return nil
}
