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

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is the kind of the file.
const Kind = "HubConfiguration"

// GroupVersion is the group and version of the kind in this package.
var GroupVersion = schema.GroupVersion{Group: "config.synchub.dev", Version: "v1alpha1"}

// HubConfiguration has the settings of `synchub run`. Each has the same meaning as its flag, which wins over the file. A
// field that the file leaves out has the default of its flag. Relative paths begin at the directory of the file.
type HubConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// Namespace is the hub's namespace in the hosting cluster, which contains the ConfigMaps with schemas. Empty means the
	// Pod's namespace, or the namespace default outside a cluster.
	Namespace string `json:"namespace"`
	// MemoryLimit is the memory that the hub may take, in bytes. Zero means no limit.
	MemoryLimit int64 `json:"memoryLimit"`
	// Coordination is the way in which the replicas divide the work: leader or sharded.
	Coordination CoordinationMode `json:"coordination"`

	KCP            KCPConfiguration            `json:"kcp"`
	Hosting        HostingConfiguration        `json:"hosting"`
	LeaderElection LeaderElectionConfiguration `json:"leaderElection"`
	Metrics        MetricsConfiguration        `json:"metrics"`
	Health         HealthConfiguration         `json:"health"`
	Profiling      ProfilingConfiguration      `json:"profiling"`
	Tunnel         TunnelConfiguration         `json:"tunnel"`
	Mailboxes      MailboxesConfiguration      `json:"mailboxes"`
	Placement      PlacementConfiguration      `json:"placement"`
	Targets        TargetsConfiguration        `json:"targets"`
	Log            LogConfiguration            `json:"log"`
	Tracing        TracingConfiguration        `json:"tracing"`
}

// CoordinationMode is the way in which the replicas of the hub divide the work.
type CoordinationMode string

const (
	// CoordinationLeader: the leader does all of it.
	CoordinationLeader CoordinationMode = "leader"
	// CoordinationSharded: the replicas shard the SyncTargets. The leader also does the work that is there once.
	CoordinationSharded CoordinationMode = "sharded"
)

// KCPConfiguration configures the connection to kcp.
type KCPConfiguration struct {
	// Kubeconfig is the path of the kubeconfig of the hub's kcp user. The hub reads it again when it changes.
	Kubeconfig string `json:"kubeconfig"`
	// ProviderWorkspace is the path of the provider workspace.
	ProviderWorkspace string `json:"providerWorkspace"`
	// QPS is the number of requests per second to each kcp endpoint, and Burst the number of requests at once.
	QPS   float32 `json:"qps"`
	Burst int     `json:"burst"`
}

// HostingConfiguration configures the connection to the hosting cluster.
type HostingConfiguration struct {
	// Kubeconfig is the path of a kubeconfig. Empty means the cluster in which the hub runs.
	Kubeconfig string `json:"kubeconfig"`
}

// LeaderElectionConfiguration configures how the replicas of the hub elect their leader.
type LeaderElectionConfiguration struct {
	// LeaderElect is false for a hub that works without a Lease.
	LeaderElect bool `json:"leaderElect"`
	// Namespace is the namespace of the Lease. Empty means the namespace of the hub.
	Namespace string `json:"namespace"`
	// LeaseDuration is how long the other replicas wait for a lost leader.
	LeaseDuration metav1.Duration `json:"leaseDuration"`
	// RenewDeadline is how long the leader tries to renew the Lease before it gives up.
	RenewDeadline metav1.Duration `json:"renewDeadline"`
	// RetryPeriod is how often the leader renews the Lease. The other replicas watch it.
	RetryPeriod metav1.Duration `json:"retryPeriod"`
	// Standby is the mode of a replica that does not lead: warm or cold.
	Standby StandbyMode `json:"standby"`
}

// StandbyMode is the mode of a replica that does not lead.
type StandbyMode string

const (
	// StandbyWarm: the replica watches everything that the leader watches, and writes nothing. It can take over at once.
	StandbyWarm StandbyMode = "warm"
	// StandbyCold: the replica only waits for the Lease.
	StandbyCold StandbyMode = "cold"
)

// MetricsConfiguration configures the endpoint /metrics.
type MetricsConfiguration struct {
	// BindAddress is the address of /metrics. "0" turns it off.
	BindAddress string `json:"bindAddress"`
	// Secure turns on TLS, and restricts /metrics to users whom the hosting cluster authenticates and authorizes.
	Secure bool `json:"secure"`
	// CertDir is a directory with the certificate in tls.crt and its key in tls.key. Empty means a self-signed certificate.
	CertDir string `json:"certDir"`
	// PerResource labels the metrics of each SyncTarget by resource. False adds them up.
	PerResource bool `json:"perResource"`
}

// HealthConfiguration configures the endpoints /healthz and /readyz.
type HealthConfiguration struct {
	// BindAddress is the address of /healthz and /readyz. "0" turns them off.
	BindAddress string `json:"bindAddress"`
}

// ProfilingConfiguration configures the endpoint for profiles.
type ProfilingConfiguration struct {
	// BindAddress is the loopback address of /debug/pprof/. Empty turns it off.
	BindAddress string `json:"bindAddress"`
}

// TunnelConfiguration configures the port where the hub accepts the tunnels of clusters that it cannot dial.
type TunnelConfiguration struct {
	// BindAddress is the address of the port, such as ":8443". "0" turns it off.
	BindAddress string `json:"bindAddress"`
	// URL is the URL that clusters use to reach the port, such as https://synchub.example.com:8443. The manifests for
	// clusters contain it.
	URL string `json:"url"`
	// CertDir is a directory with the certificate of the port in tls.crt, its key in tls.key, and its authority in ca.crt, unless
	// that is public. Empty means certificates of an authority that the hub makes.
	CertDir string `json:"certDir"`
}

// MailboxesConfiguration bounds the mailboxes, and the time until the hub treats their objects as gone.
type MailboxesConfiguration struct {
	// MaxObjects and MaxBytes bound the objects of one mailbox that the hub holds.
	MaxObjects int64 `json:"maxObjects"`
	MaxBytes   int64 `json:"maxBytes"`
	// TotalBytes bounds the objects of all mailboxes together. Zero means a share of the hub's memory.
	TotalBytes int64 `json:"totalBytes"`
	// MaxPerInventory is the number of mailboxes that the SyncTargets of one inventory workspace get.
	MaxPerInventory int `json:"maxPerInventory"`
	// BindingSettlePeriod is how long the binding of a mailbox must be unchanged before the hub concludes that an object is
	// gone.
	BindingSettlePeriod metav1.Duration `json:"bindingSettlePeriod"`
	// MassDeletionDelay is how long the hub waits before it verifies a second time that many objects of a mailbox are gone.
	MassDeletionDelay metav1.Duration `json:"massDeletionDelay"`
}

// PlacementConfiguration bounds the placements, and the time until copies leave a cluster.
type PlacementConfiguration struct {
	// MaxObjects is the number of pairs of an object and a destination that the placements of one workload workspace may have.
	MaxObjects int `json:"maxObjects"`
	// MaxUpsyncedObjects is the number of objects of clusters that the placements of one workload workspace may bring into it.
	MaxUpsyncedObjects int `json:"maxUpsyncedObjects"`
	// WithdrawalGrace is how long the hub waits before it withdraws more than a few copies because an inventory changed. Zero
	// withdraws them at once.
	WithdrawalGrace metav1.Duration `json:"withdrawalGrace"`
}

// TargetsConfiguration bounds the requests to targets and the caches of their objects.
type TargetsConfiguration struct {
	// QPS is the number of requests per second to each target, and Burst the number of requests at once.
	QPS   float32 `json:"qps"`
	Burst int     `json:"burst"`
	// CacheObjects and CacheBytes bound the cache of one target.
	CacheObjects int64 `json:"cacheObjects"`
	CacheBytes   int64 `json:"cacheBytes"`
	// TotalBytes bounds the caches of all targets together. Zero means a share of the hub's memory.
	TotalBytes int64 `json:"totalBytes"`
	// DeniedNetworks are networks, such as 10.96.0.0/12, that must not contain the address of a target.
	DeniedNetworks []string `json:"deniedNetworks"`
	// ProtectedNamespaces are namespaces that the hub does not sync to or from unless a SyncTarget or PublishedResource
	// allows it. A name that ends in * matches every name with that prefix.
	ProtectedNamespaces []string `json:"protectedNamespaces"`
}

// LogConfiguration sets the level and the format of the log.
type LogConfiguration struct {
	// Level is error, info, debug or trace.
	Level string `json:"level"`
	// Format is json or console.
	Format string `json:"format"`
}

// TracingConfiguration sets the collector of traces and the sampling rate.
type TracingConfiguration struct {
	// Endpoint is the URL of a collector that accepts OTLP over gRPC. Empty means no traces.
	Endpoint string `json:"endpoint"`
	// SamplingRatePerMillion is how many of a million changes of objects are traced.
	SamplingRatePerMillion int `json:"samplingRatePerMillion"`
}
