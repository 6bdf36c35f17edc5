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

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/synchub-dev/synchub/controllers"
	"github.com/synchub-dev/synchub/controllers/mailbox"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/policy"
	"github.com/synchub-dev/synchub/controllers/placement"
	"github.com/synchub-dev/synchub/controllers/synctarget"
	"github.com/synchub-dev/synchub/provider/inventories"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/mailboxes/absence"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
)

const (
	// leaseName is the Lease that the leader holds.
	leaseName = "synchub"
	// startTimeout bounds the first requests, so that a wrong configuration fails early.
	startTimeout = 30 * time.Second
	// drainTimeout is the time that running reconciles have after SIGTERM.
	drainTimeout = 20 * time.Second
)

// runOptions are the flags of `synchub run`.
type runOptions struct {
	// hub holds the options of the controllers. Zero MailboxesBytes and TargetsBytes mean a share of the memory.
	hub controllers.Options

	kcpKubeconfig     string
	hostingKubeconfig string
	kcpLimits         kcp.Limits

	leaderElect    bool
	leaseNamespace string
	leaseDuration  time.Duration
	renewDeadline  time.Duration
	retryPeriod    time.Duration

	metricsAddress string
	// metricsSecure turns on TLS, authentication and authorization for /metrics.
	metricsSecure bool
	// metricsCertDir is empty for a self-signed certificate.
	metricsCertDir string
	healthAddress  string
	// profilingAddress is empty unless the hub serves profiles.
	profilingAddress string

	// memoryLimit is in bytes. Zero means no limit.
	memoryLimit int64

	// protectedNamespaces and deniedNetworks are the flags, from which validate sets those of hub.
	protectedNamespaces, deniedNetworks []string

	logs logOptions
}

func newRunCommand() *cobra.Command {
	options := &runOptions{}
	command := &cobra.Command{
		Use:   "run",
		Short: "Run the hub",
		Example: "  # In the hosting cluster, as the Helm chart does\n" +
			"  synchub run --kcp-kubeconfig /etc/synchub/kubeconfig\n\n" +
			"  # Outside, with a kubeconfig for each side\n" +
			"  synchub run --kcp-kubeconfig kcp.kubeconfig --hosting-kubeconfig hosting.kubeconfig",
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := options.validate(); err != nil {
				return err
			}
			return options.run(command.Context())
		},
	}
	options.addFlags(command.Flags())
	return command
}

func (o *runOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.kcpKubeconfig, "kcp-kubeconfig", "", "kubeconfig of the hub's kcp user; re-read when it changes (required)")
	flags.StringVar(&o.hostingKubeconfig, "hosting-kubeconfig", "", "kubeconfig of the hosting cluster (default: in-cluster)")
	flags.StringVar(&o.hub.Workspace, "provider-workspace", "root:synchub", "path of the provider workspace")
	flags.StringVar(&o.hub.Namespace, "namespace", "", "namespace of the hub in the hosting cluster, with the ConfigMaps that hold schemas (default: the Pod's, else default)")
	flags.BoolVar(&o.leaderElect, "leader-elect", true, "work only while holding the Lease")
	flags.StringVar(&o.leaseNamespace, "leader-election-namespace", "", "namespace of the Lease (default: --namespace)")
	flags.DurationVar(&o.leaseDuration, "leader-election-lease-duration", 15*time.Second, "how long a lost leader is waited for")
	flags.DurationVar(&o.renewDeadline, "leader-election-renew-deadline", 10*time.Second, "how long the leader tries to renew before it gives up")
	flags.DurationVar(&o.retryPeriod, "leader-election-retry-period", 2*time.Second, "how often the Lease is tried for and renewed")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", ":8080", `address of /metrics; "0" turns it off`)
	flags.BoolVar(&o.metricsSecure, "metrics-secure", false, "serve /metrics over TLS, and only to those whose token the hosting cluster authenticates and who may get the URL /metrics there")
	flags.StringVar(&o.metricsCertDir, "metrics-cert-dir", "", "directory with the certificate for --metrics-secure in tls.crt and its key in tls.key; re-read when they change (default: a self-signed certificate, made at the start)")
	flags.StringVar(&o.healthAddress, "health-probe-bind-address", ":8081", `address of /healthz and /readyz; "0" turns them off`)
	flags.StringVar(&o.profilingAddress, "profiling", "", "serve profiles for `go tool pprof` below /debug/pprof/ at this loopback address")
	flags.Lookup("profiling").NoOptDefVal = "127.0.0.1:6060"
	flags.Float32Var(&o.kcpLimits.QPS, "kcp-qps", 2000, "requests per second to each kcp endpoint")
	flags.IntVar(&o.kcpLimits.Burst, "kcp-burst", 4000, "requests to each kcp endpoint at once")
	flags.Float32Var(&o.hub.TargetLimits.QPS, "target-qps", 1000, "requests per second to each target")
	flags.IntVar(&o.hub.TargetLimits.Burst, "target-burst", 2000, "requests to each target at once")
	flags.Int64Var(&o.hub.MailboxLimits.Objects, "mailbox-max-objects", 20_000, "objects of one mailbox that the hub holds, the oldest first; those beyond are not synced. A SyncTarget may set fewer")
	flags.Int64Var(&o.hub.MailboxLimits.Bytes, "mailbox-max-bytes", 64<<20, "bytes of memory that the objects of one mailbox may take, the oldest first; those beyond are not synced. A SyncTarget may set fewer")
	flags.Int64Var(&o.hub.MailboxesBytes, "mailboxes-max-bytes", 0, "bytes of memory that the objects of all mailboxes may take together; beyond that the largest mailboxes are cut first (default: a fifth of the memory that Go may take by --memory-limit or GOMEMLIMIT, else 184 MiB)")
	flags.IntVar(&o.hub.MaxMailboxes, "inventory-max-mailboxes", 1000, "mailboxes that the SyncTargets of one inventory workspace get; those beyond say TooManyMailboxes, and those that have one keep it")
	flags.IntVar(&o.hub.MaxPlacedObjects, "max-placed-objects", placement.DefaultMaxPairs, "pairs of an object and a destination that the placements of one workload workspace may have; a placement beyond them says LimitExceeded, and nothing of it is placed")
	flags.DurationVar(&o.hub.AbsenceDelays.BindingSettle, "binding-settle-period", absence.DefaultDelays.BindingSettle, "how long the binding of a mailbox must be unchanged before the hub believes that an object is gone; kcp takes long to show the objects of many mailboxes again after a claim was rejected and accepted")
	flags.DurationVar(&o.hub.AbsenceDelays.MassDeletion, "mass-deletion-delay", absence.DefaultDelays.MassDeletion, "how long the hub waits before it verifies a second time that many objects of one mailbox are gone, and deletes their copies")
	flags.Int64Var(&o.hub.TargetCacheLimits.Objects, "target-cache-objects", 100_000, "objects that the hub caches of one target; beyond the limit the hub leaves the target alone")
	flags.Int64Var(&o.hub.TargetCacheLimits.Bytes, "target-cache-bytes", 128<<20, "bytes of memory that these objects may take")
	flags.Int64Var(&o.hub.TargetsBytes, "targets-max-bytes", 0, "bytes of memory that the caches of all targets may take together; near the limit the hub leaves the targets alone that take most and grow (default: a quarter of the memory that Go may take by --memory-limit or GOMEMLIMIT, else 230 MiB)")
	flags.Int64Var(&o.memoryLimit, "memory-limit", 0, "bytes of memory that the hub may take, by which garbage is collected more often when it takes much (default: no limit)")
	flags.StringSliceVar(&o.protectedNamespaces, "protected-namespaces", policy.DefaultProtectedNamespaces, "namespaces that nothing goes to or comes from unless a SyncTarget or PublishedResource allows it, beside the hub's own; a name that ends in * stands for all that begin so")
	flags.StringSliceVar(&o.deniedNetworks, "denied-networks", nil, "networks, such as 10.96.0.0/12, that no target's address may be in, beside link-local, multicast and metadata addresses, which never may")
	o.logs.addFlags(flags)
}

func (o *runOptions) validate() error {
	switch {
	case o.kcpKubeconfig == "":
		return errors.New("set --kcp-kubeconfig to the kubeconfig of the hub's kcp user")
	case o.hub.Workspace == "":
		return errors.New("set --provider-workspace to the path of the provider workspace")
	case o.profilingAddress != "" && !isLoopback(o.profilingAddress):
		return errors.New("set --profiling to a loopback address such as 127.0.0.1:6060: profiles tell too much to be shown to others")
	case o.renewDeadline >= o.leaseDuration || o.retryPeriod <= 0 || o.renewDeadline <= time.Duration(leaderelection.JitterFactor*float64(o.retryPeriod)):
		return fmt.Errorf("set --leader-election-retry-period below --leader-election-renew-deadline by a factor of more than %v, and that below --leader-election-lease-duration",
			leaderelection.JitterFactor)
	}
	if err := o.validateLimits(); err != nil {
		return err
	}
	if err := o.validateMetrics(); err != nil {
		return err
	}
	var err error
	if o.hub.DeniedNetworks, err = kubeconfig.ParseDeniedNetworks(o.deniedNetworks); err != nil {
		return fmt.Errorf("set --denied-networks to networks: %w", err)
	}
	if o.hub.Namespace == "" {
		o.hub.Namespace = podNamespace()
	}
	if o.hub.ProtectedNamespaces, err = policy.ParseNamespacePatterns(o.protectedNamespaces); err != nil {
		return fmt.Errorf("set --protected-namespaces to names of namespaces: %w", err)
	}
	// Outside a cluster the namespace is "default", which is not the hub's own.
	if o.hub.Namespace != corev1.NamespaceDefault {
		o.hub.ProtectedNamespaces = append(slices.Clone(o.hub.ProtectedNamespaces), o.hub.Namespace)
	}
	if o.leaseNamespace == "" {
		o.leaseNamespace = o.hub.Namespace
	}
	return o.logs.validate()
}

func (o *runOptions) validateLimits() error {
	switch {
	case !isPositive(o.kcpLimits) || !isPositive(o.hub.TargetLimits):
		return errors.New("set --kcp-qps, --kcp-burst, --target-qps and --target-burst to positive numbers")
	case o.hub.TargetCacheLimits.Objects <= 0 || o.hub.TargetCacheLimits.Bytes <= 0:
		return errors.New("set --target-cache-objects and --target-cache-bytes to positive numbers")
	case o.hub.MailboxLimits.Objects <= 0 || o.hub.MailboxLimits.Bytes <= 0:
		return errors.New("set --mailbox-max-objects and --mailbox-max-bytes to positive numbers")
	case o.hub.MaxMailboxes <= 0:
		return errors.New("set --inventory-max-mailboxes to a positive number")
	case o.hub.MaxPlacedObjects <= 0:
		return errors.New("set --max-placed-objects to a positive number")
	case o.hub.AbsenceDelays.BindingSettle < time.Second || o.hub.AbsenceDelays.MassDeletion < time.Second:
		return errors.New("set --binding-settle-period and --mass-deletion-delay to 1s or more")
	case o.hub.MailboxesBytes < 0:
		return errors.New("set --mailboxes-max-bytes to a number of bytes, or to 0 for the share of the hub's memory")
	case o.hub.TargetsBytes < 0:
		return errors.New("set --targets-max-bytes to a number of bytes, or to 0 for the share of the hub's memory")
	case o.memoryLimit < 0:
		return errors.New("set --memory-limit to a number of bytes, or to 0 for no limit")
	default:
		return nil
	}
}

func isLoopback(address string) bool {
	parsed, err := netip.ParseAddrPort(address)
	return err == nil && parsed.Addr().IsLoopback()
}

// isPositive reports whether both limits are positive. NaN is not.
func isPositive(limits kcp.Limits) bool { return limits.QPS > 0 && limits.Burst > 0 }

// podNamespace returns the namespace of the hub's Pod, or "default" outside a cluster.
func podNamespace() string {
	content, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil || len(content) == 0 {
		return corev1.NamespaceDefault
	}
	return string(content)
}

func (o *runOptions) run(ctx context.Context) error {
	log := o.logs.logger(os.Stderr)
	ctrl.SetLogger(log)
	klog.SetLogger(log.WithName("client-go"))
	redirectStandardLog(log)
	configureGC(o.memoryLimit)
	if o.hub.MailboxesBytes == 0 {
		o.hub.MailboxesBytes = defaultMailboxesBytes()
	}
	if o.hub.TargetsBytes == 0 {
		o.hub.TargetsBytes = defaultTargetsBytes()
	}
	if o.profilingAddress != "" {
		enableContentionProfiles()
	}

	access, err := kcp.Load(o.kcpKubeconfig, o.kcpLimits)
	if err != nil {
		return err
	}
	// client-go's default of 5 requests per second is meant for interactive clients.
	hostingConfig, err := hostingConfig(o.hostingKubeconfig, o.kcpLimits)
	if err != nil {
		return err
	}
	boundClientMetrics(hostingConfig.Host, access.Host())
	ctrlmetrics.Registry.MustRegister(collectors()...)
	hosting, err := ctrl.NewManager(hostingConfig, o.managerOptions(log))
	var listen *net.OpError
	if errors.As(err, &listen) && listen.Op == "listen" {
		return fmt.Errorf("set --health-probe-bind-address to an address that is free: %w", err)
	}
	if err != nil {
		return fmt.Errorf("cannot reach the hosting cluster; check --hosting-kubeconfig: %w", err)
	}
	if err := hosting.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	o.hub.Access, o.hub.Log = access, log
	if o.leaderElect {
		o.hub.Lease = types.NamespacedName{Namespace: o.leaseNamespace, Name: leaseName}
	}
	hub, err := controllers.Setup(starting, hosting, o.hub)
	if err != nil {
		return err
	}
	log.Info("starting", "version", version, "commit", commit, "kcp", access.Host(), "providerWorkspace", o.hub.Workspace)
	return hub.Start(ctx)
}

// managerOptions returns the options of the manager of the hosting cluster.
func (o *runOptions) managerOptions(log logr.Logger) manager.Options {
	return manager.Options{
		Scheme:                        controllers.Scheme(),
		Logger:                        log,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              leaseName,
		LeaderElectionNamespace:       o.leaseNamespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &o.leaseDuration,
		RenewDeadline:                 &o.renewDeadline,
		RetryPeriod:                   &o.retryPeriod,
		GracefulShutdownTimeout:       new(drainTimeout),
		Metrics:                       o.metricsServer(),
		HealthProbeBindAddress:        o.healthAddress,
		PprofBindAddress:              o.profilingAddress,
		// The priority queue may block forever during shutdown (kubernetes-sigs/controller-runtime issue 3538).
		Controller: config.Controller{UsePriorityQueue: new(false)},
		// The hub may read ConfigMaps only in its own namespace.
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{o.hub.Namespace: {}}},
		}},
	}
}

// hostingConfig returns the client configuration of a kubeconfig for the hosting cluster, or without one that of the Pod.
func hostingConfig(kubeconfig string, limits kcp.Limits) (*rest.Config, error) {
	var config *rest.Config
	var err error
	if kubeconfig == "" {
		if config, err = rest.InClusterConfig(); err != nil {
			return nil, fmt.Errorf("set --hosting-kubeconfig, since this does not run in a cluster: %w", err)
		}
	} else if config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return nil, fmt.Errorf("cannot use the hosting kubeconfig %s: %w", kubeconfig, err)
	}
	config.QPS, config.Burst = limits.QPS, limits.Burst
	return config, nil
}

// newBuildInfo returns the metric that says which version runs.
func newBuildInfo() prometheus.Collector {
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "synchub_build_info", Help: "1, with the version of the hub."}, []string{"version", "commit", "go_version"})
	info.WithLabelValues(version, commit, runtime.Version()).Set(1)
	return info
}

// collectors returns the collectors of the hub's own metrics.
func collectors() []prometheus.Collector {
	return slices.Concat([]prometheus.Collector{newBuildInfo()}, requestmetrics.Collectors(), inventories.Collectors(), mailbox.Collectors(), mailboxes.Collectors(), targets.Collectors(), synctarget.Collectors(), objectsync.Collectors(), placement.Collectors())
}
