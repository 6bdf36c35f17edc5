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
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/synchub-dev/synchub/apis/config/v1alpha1"
	hubconfig "github.com/synchub-dev/synchub/cmd/synchub/config"
	"github.com/synchub-dev/synchub/controllers"
	"github.com/synchub-dev/synchub/controllers/agent"
	"github.com/synchub-dev/synchub/provider/fence"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/mailboxes/absence"
	"github.com/synchub-dev/synchub/provider/targets"
)

// agentOptions are the options of `synchub agent`. All else is as by default for a hub.
type agentOptions struct {
	kubeconfig, namespace, secret string
	metrics, health               string
	// settings are the defaults of a hub, with the log's flags.
	settings *v1alpha1.HubConfiguration
}

func newAgentCommand() *cobra.Command {
	options := &agentOptions{settings: hubconfig.Defaults()}
	command := &cobra.Command{
		Use:   "agent",
		Short: "Run the agent of one cluster",
		Long: "Run the agent of a cluster that has only outbound connections, for one SyncTarget with\n" +
			"spec.mode: Agent. It runs in the cluster, with the Secret that\n" +
			"`kubectl synchub register NAME --mode=agent -o yaml` prints.",
		Example: "  # In the cluster, as the printed manifest and the Helm chart do\n" +
			"  synchub agent --namespace synchub-agent\n\n" +
			"  # Outside, with a kubeconfig of the cluster\n" +
			"  synchub agent --namespace synchub-agent --kubeconfig cluster.kubeconfig",
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return options.run(command.Context())
		},
	}
	groups := &cliflag.NamedFlagSets{}
	flags := groups.FlagSet("general")
	flags.StringVar(&options.kubeconfig, "kubeconfig", "", "kubeconfig of the agent's own cluster; without, the agent uses that of its Pod")
	flags.StringVar(&options.namespace, "namespace", "", "namespace of the agent's Secret, its Lease and its records; by default that of its Pod")
	flags.StringVar(&options.secret, "secret", "synchub-agent", "name of the Secret with the kubeconfig for kcp and the key")
	flags = groups.FlagSet("safety")
	flags.DurationVar(&options.settings.Mailboxes.BindingSettlePeriod.Duration, "binding-settle-period", options.settings.Mailboxes.BindingSettlePeriod.Duration, "how long a mailbox's binding must be unchanged before an object counts as deleted")
	flags.DurationVar(&options.settings.Mailboxes.MassDeletionDelay.Duration, "mass-deletion-delay", options.settings.Mailboxes.MassDeletionDelay.Duration, "how long many deletions at once wait before they are believed")
	flags = groups.FlagSet("servers")
	flags.StringVar(&options.metrics, "metrics-bind-address", "0", "address of the metrics, without encryption; 0 means none")
	flags.StringVar(&options.health, "health-probe-bind-address", ":8081", "address of the probes; 0 means none")
	flags = groups.FlagSet("log")
	flags.StringVar(&options.settings.Log.Level, "log-level", options.settings.Log.Level, "error, info or debug")
	flags.StringVar(&options.settings.Log.Format, "log-format", options.settings.Log.Format, "json or console")
	addFlagGroups(command, groups)
	return command
}

func (o *agentOptions) run(ctx context.Context) error {
	s := o.settings
	if !slices.Contains(hubconfig.Levels, s.Log.Level) || !slices.Contains(hubconfig.Formats, s.Log.Format) {
		return fmt.Errorf("--log-level is one of %v, and --log-format one of %v", hubconfig.Levels, hubconfig.Formats)
	}
	if o.namespace == "" {
		o.namespace = podNamespace()
	}
	log := newLogger(s.Log, os.Stderr)
	ctrl.SetLogger(log)
	klog.SetLogger(log.WithName("client-go"))
	redirectStandardLog(log)
	configureGC(s.MemoryLimit)
	probes, err := startAgentProbes(ctx, o.health)
	if err != nil {
		return err
	}
	limits := kcp.Limits{QPS: s.Targets.QPS, Burst: s.Targets.Burst}
	own, err := o.ownConfig(limits)
	if err != nil {
		return err
	}
	secrets, err := coreclient.NewForConfig(own)
	if err != nil {
		return fmt.Errorf("cannot make a client for the agent's own cluster: %w", err)
	}
	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	credentials, err := agent.LoadCredentials(starting, secrets, types.NamespacedName{Namespace: o.namespace, Name: o.secret}, kcp.Limits{QPS: s.KCP.QPS, Burst: s.KCP.Burst})
	if err != nil {
		return err
	}
	boundClientMetrics(own.Host, credentials.Access.Host())
	ctrlmetrics.Registry.MustRegister(collectors()...)
	log.Info("starting the agent", "version", version, "commit", commit, "kcp", credentials.Access.Host(), "mailbox", credentials.Mailbox)
	assigned, err := agent.AwaitAssignment(ctx, credentials, secrets, log)
	if err != nil {
		return err
	}
	probes.ready.Store(true)
	options := o.agent(own, credentials)
	options.Log = log
	managed, err := o.newManager(own, options.Fence)
	if err != nil {
		return err
	}
	credentials.Access.Fence = options.Fence
	if err := agent.Setup(managed, assigned, options); err != nil {
		return err
	}
	return managed.Start(ctx)
}

// agent returns the options of the agent: those of a hub by default.
func (o *agentOptions) agent(own *rest.Config, credentials *agent.Credentials) agent.Options {
	s := o.settings
	return agent.Options{
		Namespace: o.namespace, Credentials: credentials, Target: own, Fence: fence.New(clock.RealClock{}), Clock: clock.RealClock{},
		Kubeconfig: func() ([]byte, error) {
			if o.kubeconfig == "" {
				return agent.InClusterKubeconfig()
			}
			return os.ReadFile(o.kubeconfig)
		},
		TargetLimits:      kcp.Limits{QPS: s.Targets.QPS, Burst: s.Targets.Burst},
		MailboxLimits:     mailboxes.Limits{Objects: s.Mailboxes.MaxObjects, Bytes: s.Mailboxes.MaxBytes},
		MailboxBytes:      s.Mailboxes.MaxBytes,
		AbsenceDelays:     absence.Delays{BindingSettle: s.Mailboxes.BindingSettlePeriod.Duration, MassDeletion: s.Mailboxes.MassDeletionDelay.Duration},
		TargetCacheLimits: targets.CacheLimits{Objects: s.Targets.CacheObjects, Bytes: s.Targets.CacheBytes},
	}
}

// newManager returns the manager of the agent's own cluster. Replicas elect a leader by a Lease there.
func (o *agentOptions) newManager(own *rest.Config, fence *fence.Fence) (manager.Manager, error) {
	s := o.settings
	s.LeaderElection.Namespace = o.namespace
	scheme := controllers.Scheme()
	lock, err := newLeaseLock(own, scheme, s.LeaderElection, nil, fence, nil)
	if err != nil {
		return nil, err
	}
	managed, err := ctrl.NewManager(own, manager.Options{
		Scheme: scheme, Logger: ctrl.Log,
		LeaderElection: true, LeaderElectionID: leaseName, LeaderElectionResourceLockInterface: lock, LeaderElectionReleaseOnCancel: true,
		LeaseDuration: &s.LeaderElection.LeaseDuration.Duration, RenewDeadline: &s.LeaderElection.RenewDeadline.Duration, RetryPeriod: &s.LeaderElection.RetryPeriod.Duration,
		GracefulShutdownTimeout: new(drainTimeout),
		Metrics:                 metricsserver.Options{BindAddress: o.metrics},
		HealthProbeBindAddress:  "0",
		// The priority queue may block forever during shutdown (kubernetes-sigs/controller-runtime issue 3538).
		Controller: config.Controller{UsePriorityQueue: new(false)},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot reach the agent's own cluster: %w", err)
	}
	return managed, nil
}

// ownConfig returns the client configuration of the agent's own cluster.
func (o *agentOptions) ownConfig(limits kcp.Limits) (*rest.Config, error) {
	var own *rest.Config
	var err error
	if o.kubeconfig == "" {
		if own, err = rest.InClusterConfig(); err != nil {
			return nil, fmt.Errorf("set --kubeconfig, since this does not run in a cluster: %w", err)
		}
	} else if own, err = clientcmd.BuildConfigFromFlags("", o.kubeconfig); err != nil {
		return nil, fmt.Errorf("cannot use the kubeconfig %s: %w", o.kubeconfig, err)
	}
	own.QPS, own.Burst = limits.QPS, limits.Burst
	return own, nil
}
