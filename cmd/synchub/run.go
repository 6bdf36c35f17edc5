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
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/synchub-dev/synchub/apis/config/v1alpha1"
	hubconfig "github.com/synchub-dev/synchub/cmd/synchub/config"
	"github.com/synchub-dev/synchub/controllers"
	"github.com/synchub-dev/synchub/controllers/mailbox"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/placement"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/controllers/synctarget"
	"github.com/synchub-dev/synchub/provider/fence"
	"github.com/synchub-dev/synchub/provider/inventories"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/leases"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/mailboxes/absence"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
	"github.com/synchub-dev/synchub/provider/shards"
	"github.com/synchub-dev/synchub/provider/storehistory"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
	"github.com/synchub-dev/synchub/provider/tracing/otlp"
)

const (
	// leaseName is the Lease that the leader holds.
	leaseName = "synchub"
	// startTimeout bounds the first requests, so that a wrong configuration fails early.
	startTimeout = 30 * time.Second
	// drainTimeout is the time that running reconciles have after SIGTERM.
	drainTimeout = 20 * time.Second
)

// runOptions are the options of `synchub run`.
type runOptions struct {
	// configFile is empty if there are only flags.
	configFile string
	// settings are the settings from the flags and the file.
	settings *v1alpha1.HubConfiguration
	// hub has the options of the controllers. The method complete derives them from the settings.
	hub controllers.Options
}

func newRunCommand() *cobra.Command {
	options := &runOptions{settings: hubconfig.Defaults()}
	command := &cobra.Command{
		Use:   "run",
		Short: "Run the hub",
		Long: "Run the hub. Settings come from flags, and from the file that --config names,\n" +
			"a HubConfiguration as in docs/operations.md. Flags win over the file.",
		Example: "  # In the hosting cluster, as the Helm chart does\n" +
			"  synchub run --kcp-kubeconfig /etc/synchub/kubeconfig\n\n" +
			"  # Outside, with a kubeconfig for each side\n" +
			"  synchub run --kcp-kubeconfig kcp.kubeconfig \\\n" +
			"    --hosting-kubeconfig hosting.kubeconfig\n\n" +
			"  # With the settings of a file, and another log level\n" +
			"  synchub run --config hub.yaml --log-level=debug",
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := options.complete(command.Flags()); err != nil {
				return err
			}
			return options.run(command.Context())
		},
	}
	addFlagGroups(command, options.flags())
	_ = command.RegisterFlagCompletionFunc("coordination",
		cobra.FixedCompletions([]string{string(v1alpha1.CoordinationLeader), string(v1alpha1.CoordinationSharded)}, cobra.ShellCompDirectiveNoFileComp))
	return command
}

// flags returns the flags in groups.
func (o *runOptions) flags() *cliflag.NamedFlagSets {
	groups := &cliflag.NamedFlagSets{}
	groups.FlagSet("general").StringVar(&o.configFile, hubconfig.Flag, "", "file with a HubConfiguration; flags win over it")
	hubconfig.AddFlags(groups, o.settings)
	return groups
}

// complete reads the file, validates the settings, and derives the options of the controllers from them.
func (o *runOptions) complete(flags *pflag.FlagSet) error {
	if o.configFile != "" {
		file, err := hubconfig.Load(o.configFile)
		if err != nil {
			return err
		}
		if err := hubconfig.Override(o.settings, file, flags); err != nil {
			return err
		}
	}
	problems := append(hubconfig.Validate(o.settings), validateMetricsCertificate(&o.settings.Metrics)...)
	if err := hubconfig.Explain(problems, o.configFile, flags); err != nil {
		return err
	}
	return o.completeHub()
}

func (o *runOptions) completeHub() error {
	s := o.settings
	if s.Namespace == "" {
		s.Namespace = podNamespace()
	}
	if s.LeaderElection.Namespace == "" {
		s.LeaderElection.Namespace = s.Namespace
	}
	denied, err := kubeconfig.ParseDeniedNetworks(s.Targets.DeniedNetworks)
	if err != nil {
		return err
	}
	protected, err := policy.ParseNamespacePatterns(s.Targets.ProtectedNamespaces)
	if err != nil {
		return err
	}
	// Outside a cluster the namespace is "default", which is not the hub's own.
	if s.Namespace != corev1.NamespaceDefault {
		protected = append(slices.Clone(protected), s.Namespace)
	}
	o.hub = controllers.Options{
		Workspace:           s.KCP.ProviderWorkspace,
		Namespace:           s.Namespace,
		TargetLimits:        kcp.Limits{QPS: s.Targets.QPS, Burst: s.Targets.Burst},
		MailboxLimits:       mailboxes.Limits{Objects: s.Mailboxes.MaxObjects, Bytes: s.Mailboxes.MaxBytes},
		MailboxesBytes:      s.Mailboxes.TotalBytes,
		AbsenceDelays:       absence.Delays{BindingSettle: s.Mailboxes.BindingSettlePeriod.Duration, MassDeletion: s.Mailboxes.MassDeletionDelay.Duration},
		TargetCacheLimits:   targets.CacheLimits{Objects: s.Targets.CacheObjects, Bytes: s.Targets.CacheBytes},
		TargetsBytes:        s.Targets.TotalBytes,
		MaxMailboxes:        s.Mailboxes.MaxPerInventory,
		MaxPlacedObjects:    s.Placement.MaxObjects,
		DeniedNetworks:      denied,
		ProtectedNamespaces: protected,
		AggregateMetrics:    !s.Metrics.PerResource,
		Sharded:             s.Coordination == v1alpha1.CoordinationSharded,
		Ready:               &atomic.Bool{},
		Tunnel:              s.Tunnel,
		ColdStandby:         s.LeaderElection.Standby == v1alpha1.StandbyCold,
	}
	if s.LeaderElection.LeaderElect {
		o.hub.Lease = types.NamespacedName{Namespace: s.LeaderElection.Namespace, Name: leaseName}
		o.hub.LeaseDuration, o.hub.RenewDeadline = s.LeaderElection.LeaseDuration.Duration, s.LeaderElection.RenewDeadline.Duration
		o.hub.RenewPeriod = s.LeaderElection.RetryPeriod.Duration
	}
	return nil
}

// completeBytes sets the bounds of the caches that follow from the memory that Go may take.
func (o *runOptions) completeBytes() {
	o.hub.MailboxesBytes = cmp.Or(o.hub.MailboxesBytes, defaultMailboxesBytes())
	o.hub.TargetsBytes = cmp.Or(o.hub.TargetsBytes, defaultTargetsBytes())
}

// podNamespace returns the namespace of the hub's Pod, or "default" outside a cluster.
func podNamespace() string {
	content, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil || len(content) == 0 {
		return corev1.NamespaceDefault
	}
	return string(content)
}

func (o *runOptions) run(ctx context.Context) error {
	s := o.settings
	log := newLogger(s.Log, os.Stderr)
	ctrl.SetLogger(log)
	klog.SetLogger(log.WithName("client-go"))
	redirectStandardLog(log)
	configureGC(s.MemoryLimit)
	o.completeBytes()
	if s.Profiling.BindAddress != "" {
		enableContentionProfiles()
	}

	kcpLimits := kcp.Limits{QPS: s.KCP.QPS, Burst: s.KCP.Burst}
	access, err := kcp.Load(s.KCP.Kubeconfig, kcpLimits)
	if err != nil {
		return err
	}
	// client-go's default of 5 requests per second is meant for interactive clients.
	hostingConfig, err := hostingConfig(s.Hosting.Kubeconfig, kcpLimits)
	if err != nil {
		return err
	}
	boundClientMetrics(hostingConfig.Host, access.Host())
	ctrlmetrics.Registry.MustRegister(collectors()...)
	managerOptions := o.managerOptions(log)
	o.hub.History = storehistory.New(storehistory.Options{Clock: clock.RealClock{}, Log: log.WithName("history"), RestartWatches: access.Watches.Restart})
	if s.LeaderElection.LeaderElect {
		o.hub.Fence = fence.New(clock.RealClock{})
		if o.hub.Leases, err = newLeaseWatcher(hostingConfig, s.LeaderElection, o.hub.Sharded, log); err != nil {
			return err
		}
		if managerOptions.LeaderElectionResourceLockInterface, err = newLeaseLock(hostingConfig, managerOptions.Scheme, s.LeaderElection, controllers.LeaderLabels(string(s.Coordination), s.KCP.ProviderWorkspace), o.hub.Leases, o.hub.Fence, o.hub.History); err != nil {
			return err
		}
	}
	access.Fence = o.hub.Fence
	hosting, err := newHostingManager(hostingConfig, managerOptions)
	if err != nil {
		return err
	}
	if err := hosting.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	replica := newReplicaIdentity()
	o.hub.Access, o.hub.Log, o.hub.Replica = access, log, replica.name
	exporter, err := newTraceExporter(starting, s.Tracing, log)
	if err != nil {
		return err
	}
	if exporter != nil {
		o.hub.Tracer = exporter.Tracer()
		defer flushTraces(exporter, log)
	}
	if s.LeaderElection.LeaderElect {
		monitor, err := newReplicaMonitor(hosting, replica, s.LeaderElection, o.hub, log)
		if err != nil {
			return err
		}
		if err := errors.Join(hosting.Add(o.hub.Leases), hosting.Add(monitor)); err != nil {
			return err
		}
		o.hub.Replica, o.hub.LiveReplicas = monitor.ID(), monitor.LiveReplicas
	}
	if err := controllers.Setup(starting, hosting, o.hub); err != nil {
		return err
	}
	log.Info("starting", "version", version, "commit", commit, "kcp", access.Host(), "providerWorkspace", o.hub.Workspace)
	return hosting.Start(ctx)
}

// newHostingManager returns the manager of the hosting cluster. Its errors name the flag to check.
func newHostingManager(config *rest.Config, options manager.Options) (manager.Manager, error) {
	hosting, err := ctrl.NewManager(config, options)
	var listen *net.OpError
	if errors.As(err, &listen) && listen.Op == "listen" {
		return nil, fmt.Errorf("set --health-probe-bind-address to an address that is free: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot reach the hosting cluster; check --hosting-kubeconfig: %w", err)
	}
	return hosting, nil
}

// managerOptions returns the options of the manager of the hosting cluster.
func (o *runOptions) managerOptions(log logr.Logger) manager.Options {
	s := o.settings
	electionDeadline, tryPeriod := leases.Timing(s.LeaderElection.RenewDeadline.Duration, s.LeaderElection.RetryPeriod.Duration)
	return manager.Options{
		Scheme:                        controllers.Scheme(),
		Logger:                        log,
		LeaderElection:                s.LeaderElection.LeaderElect,
		LeaderElectionID:              leaseName,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &s.LeaderElection.LeaseDuration.Duration,
		RenewDeadline:                 &electionDeadline,
		RetryPeriod:                   &tryPeriod,
		GracefulShutdownTimeout:       new(drainTimeout),
		Metrics:                       metricsServer(s.Metrics),
		HealthProbeBindAddress:        s.Health.BindAddress,
		PprofBindAddress:              s.Profiling.BindAddress,
		// The priority queue may block forever during shutdown (kubernetes-sigs/controller-runtime issue 3538).
		Controller: config.Controller{UsePriorityQueue: new(false)},
		// The hub may read ConfigMaps only in its own namespace.
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{s.Namespace: {}}},
		}},
	}
}

// hostingConfig returns the client configuration of a kubeconfig for the hosting cluster. Without a kubeconfig it returns the
// Pod's own configuration.
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

// newBuildInfo returns the metric whose labels contain the running version.
func newBuildInfo() prometheus.Collector {
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "synchub_build_info", Help: "1, with the version of the hub."}, []string{"version", "commit", "go_version"})
	info.WithLabelValues(version, commit, runtime.Version()).Set(1)
	return info
}

// collectors returns the collectors of the hub's own metrics.
func collectors() []prometheus.Collector {
	return slices.Concat([]prometheus.Collector{newBuildInfo()}, requestmetrics.Collectors(), inventories.Collectors(), mailbox.Collectors(), mailboxes.Collectors(), shards.Collectors(), targets.Collectors(), synctarget.Collectors(), objectsync.Collectors(), placement.Collectors(), otlp.Collectors())
}
