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
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
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
	"github.com/synchub-dev/synchub/controllers/synctarget"
	"github.com/synchub-dev/synchub/provider/fence"
	"github.com/synchub-dev/synchub/provider/inventories"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/leases"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
	"github.com/synchub-dev/synchub/provider/shards"
	"github.com/synchub-dev/synchub/provider/storehistory"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/provider/tracing/otlp"
)

const (
	// startTimeout bounds the first requests, so that a wrong configuration fails early.
	startTimeout = 30 * time.Second
	// drainTimeout is the time that running reconciles have after SIGTERM.
	drainTimeout = 20 * time.Second
)

// runOptions are the options of `synchub run`.
type runOptions struct {
	// configFile is empty if there are only flags.
	configFile string
	// settings are the settings from the flags and the file. The method complete adds what follows from the environment.
	settings *v1alpha1.HubConfiguration
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

// complete reads the file, validates the settings, and sets the namespaces that follow from the environment.
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
	setNamespaces(o.settings)
	return nil
}

// setNamespaces sets the namespaces that the user left out, and protects the hub's own namespace.
func setNamespaces(s *v1alpha1.HubConfiguration) {
	if s.Namespace == "" {
		s.Namespace = podNamespace()
	}
	s.LeaderElection.Namespace = cmp.Or(s.LeaderElection.Namespace, s.Namespace)
	// Outside a cluster the namespace is "default", which is not the hub's own.
	if s.Namespace != corev1.NamespaceDefault {
		s.Targets.ProtectedNamespaces = append(slices.Clone(s.Targets.ProtectedNamespaces), s.Namespace)
	}
}

// setCacheBytes sets the bounds of the caches that follow from the memory that Go may take.
func setCacheBytes(s *v1alpha1.HubConfiguration) {
	s.Mailboxes.TotalBytes = cmp.Or(s.Mailboxes.TotalBytes, defaultMailboxesBytes())
	s.Targets.TotalBytes = cmp.Or(s.Targets.TotalBytes, defaultTargetsBytes())
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
	setCacheBytes(s)
	if s.Profiling.BindAddress != "" {
		enableContentionProfiles()
	}
	hostingConfig, dependencies, err := newDependencies(log, s)
	if err != nil {
		return err
	}
	boundClientMetrics(hostingConfig.Host, dependencies.Access.Host())
	ctrlmetrics.Registry.MustRegister(collectors()...)
	options := managerOptions(log, s)
	if s.LeaderElection.LeaderElect {
		if options.LeaderElectionResourceLockInterface, err = newLeaseLock(hostingConfig, dependencies, s); err != nil {
			return err
		}
	}
	hosting, err := newHostingManager(hostingConfig, options)
	if err != nil {
		return err
	}
	if err := hosting.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	exporter, err := newTraceExporter(starting, s.Tracing, log)
	if err != nil {
		return err
	}
	if exporter != nil {
		dependencies.Tracer = exporter.Tracer()
		defer flushTraces(exporter, log)
	}
	replica := newReplicaIdentity()
	dependencies.Replica, dependencies.Version = replica.name, version
	if s.LeaderElection.LeaderElect {
		monitor, err := newReplicaMonitor(hosting, replica, dependencies, s)
		if err != nil {
			return err
		}
		if err := errors.Join(hosting.Add(dependencies.Leases), hosting.Add(monitor)); err != nil {
			return err
		}
		dependencies.Replica, dependencies.LiveReplicas = monitor.ID(), monitor.LiveReplicas
	}
	if err := controllers.Setup(starting, hosting, dependencies, s); err != nil {
		return err
	}
	log.Info("starting", "version", version, "commit", commit, "kcp", dependencies.Access.Host(), "providerWorkspace", s.KCP.ProviderWorkspace)
	return hosting.Start(ctx)
}

// newDependencies returns the client configuration of the hosting cluster, and the dependencies of the controllers that exist before its
// manager.
func newDependencies(log logr.Logger, s *v1alpha1.HubConfiguration) (hosting *rest.Config, made controllers.Dependencies, err error) {
	limits := kcp.Limits{QPS: s.KCP.QPS, Burst: s.KCP.Burst}
	made = controllers.Dependencies{Ready: &atomic.Bool{}, Log: log}
	if made.Access, err = kcp.Load(s.KCP.Kubeconfig, limits); err != nil {
		return nil, made, err
	}
	// client-go's default of 5 requests per second is meant for interactive clients.
	if hosting, err = hostingConfig(s.Hosting.Kubeconfig, limits); err != nil {
		return nil, made, err
	}
	if s.LeaderElection.LeaderElect {
		made.Fence = fence.New(clock.RealClock{})
		if made.Leases, err = newLeaseWatcher(hosting, log, s); err != nil {
			return nil, made, err
		}
	}
	made.Access.Fence = made.Fence
	made.Provider, err = cluster.New(made.Access.WorkspaceConfig(s.KCP.ProviderWorkspace), func(o *cluster.Options) { o.Scheme = controllers.Scheme() })
	if err != nil {
		return nil, made, fmt.Errorf("cannot reach the provider workspace %s: %w", s.KCP.ProviderWorkspace, err)
	}
	made.History = storehistory.New(storehistory.Options{
		Client: made.Provider.GetClient(), Reader: made.Provider.GetAPIReader(), Namespace: ledger.Namespace, RestartWatches: made.Access.Watches.Restart,
		Clock: clock.RealClock{}, Log: log.WithName("history"),
	})
	return hosting, made, nil
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
func managerOptions(log logr.Logger, s *v1alpha1.HubConfiguration) manager.Options {
	electionDeadline, tryPeriod := leases.Timing(s.LeaderElection.RenewDeadline.Duration, s.LeaderElection.RetryPeriod.Duration)
	return manager.Options{
		Scheme:                        controllers.Scheme(),
		Logger:                        log,
		LeaderElection:                s.LeaderElection.LeaderElect,
		LeaderElectionID:              controllers.LeaseName,
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
