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
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	hubconfig "github.com/synchub-dev/synchub/cmd/synchub/config"
	"github.com/synchub-dev/synchub/provider/targets/tunnel"

	"github.com/synchub-dev/synchub/apis/config/v1alpha1"
)

// tunnelGCPercent is Go's setting GOGC for the tunnel of a cluster.
const tunnelGCPercent = 50

// tunnelOptions are the options of `synchub tunnel`.
type tunnelOptions struct {
	hub, syncTarget            string
	tokenFile, authorityFile   string
	kubeconfig, serve, metrics string
	log                        v1alpha1.LogConfiguration
}

func newTunnelCommand() *cobra.Command {
	options := &tunnelOptions{log: hubconfig.Defaults().Log}
	command := &cobra.Command{
		Use:   "tunnel",
		Short: "Run the tunnel of a cluster that the hub cannot dial",
		Long: "Run the tunnel of a cluster that has only outbound connections. It dials the hub, and forwards\n" +
			"the hub's requests to the API server of its own cluster with the rights of its own ServiceAccount.\n" +
			"`kubectl synchub register NAME --tunnel -o yaml` prints its manifest.",
		Example: "  # In the cluster, as the printed manifest and the Helm chart do\n" +
			"  synchub tunnel --hub https://synchub.example.com:8443 --sync-target 6f2c... --token-file /etc/synchub/token\n\n" +
			"  # Outside, with a kubeconfig of the cluster\n" +
			"  synchub tunnel --kubeconfig cluster.kubeconfig --hub https://synchub.example.com:8443 --sync-target 6f2c... --token-file token",
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return options.run(command.Context()) },
	}
	groups := &cliflag.NamedFlagSets{}
	flags := groups.FlagSet("general")
	flags.StringVar(&options.hub, "hub", "", "URL of the hub's port for tunnels (required)")
	flags.StringVar(&options.syncTarget, "sync-target", "", "UID of the SyncTarget of this cluster (required)")
	flags.StringVar(&options.tokenFile, "token-file", "", "file with the token of the SyncTarget; read again when it changes (required)")
	flags.StringVar(&options.authorityFile, "hub-certificate-authority", "", "file with the certificate authority of the hub's port; without one, those of the system count")
	flags.StringVar(&options.kubeconfig, "kubeconfig", "", "kubeconfig of this cluster (default: in-cluster)")
	flags = groups.FlagSet("serving")
	flags.StringVar(&options.serve, "health-probe-bind-address", ":8081", "address of the probes; 0 means none")
	flags.StringVar(&options.metrics, "metrics-bind-address", "0", "address of the metrics, without encryption; 0 means none")
	flags = groups.FlagSet("log")
	flags.StringVar(&options.log.Level, "log-level", options.log.Level, "error, info or debug")
	flags.StringVar(&options.log.Format, "log-format", options.log.Format, "json or console")
	addFlagGroups(command, groups)
	return command
}

func (o *tunnelOptions) run(ctx context.Context) error {
	if !slices.Contains(hubconfig.Levels, o.log.Level) || !slices.Contains(hubconfig.Formats, o.log.Format) {
		return fmt.Errorf("--log-level is one of %v, and --log-format one of %v", hubconfig.Levels, hubconfig.Formats)
	}
	for flag, value := range map[string]string{"hub": o.hub, "sync-target": o.syncTarget, "token-file": o.tokenFile} {
		if value == "" {
			return fmt.Errorf("--%s is needed; the manifest of `kubectl synchub register NAME --tunnel -o yaml` has it", flag)
		}
	}
	if os.Getenv("GOGC") == "" {
		// Many watches hold little, so the garbage may be little too.
		debug.SetGCPercent(tunnelGCPercent)
	}
	log := newLogger(o.log, os.Stderr)
	klog.SetLogger(log.WithName("client-go"))
	redirectStandardLog(log)
	own, err := o.ownConfig()
	if err != nil {
		return err
	}
	proxy, err := tunnel.NewProxy(own, log.WithName("proxy"))
	if err != nil {
		return err
	}
	authority, err := o.authority()
	if err != nil {
		return err
	}
	client, err := tunnel.NewClient(tunnel.ClientOptions{
		Hub: o.hub, SyncTarget: o.syncTarget, TokenFile: o.tokenFile, Authority: authority, Handler: proxy, Clock: clock.RealClock{}, Log: log,
	})
	if err != nil {
		return err
	}
	if err := serveUntilDone(ctx, "health-probe-bind-address", o.serve, probesOf(client)); err != nil {
		return err
	}
	if err := serveUntilDone(ctx, "metrics-bind-address", o.metrics, metricsOf(client)); err != nil {
		return err
	}
	log.Info("starting", "version", version, "commit", commit, "hub", o.hub, "syncTargetUID", o.syncTarget)
	return client.Run(ctx)
}

func (o *tunnelOptions) authority() ([]byte, error) {
	if o.authorityFile == "" {
		return nil, nil
	}
	content, err := os.ReadFile(o.authorityFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("--hub-certificate-authority: there is no file %s", o.authorityFile)
	}
	return content, err
}

// ownConfig returns the client configuration of the cluster in which the tunnel ends.
func (o *tunnelOptions) ownConfig() (own *rest.Config, err error) {
	if o.kubeconfig == "" {
		if own, err = rest.InClusterConfig(); err != nil {
			return nil, fmt.Errorf("set --kubeconfig, since this does not run in a cluster: %w", err)
		}
		return own, nil
	}
	if own, err = clientcmd.BuildConfigFromFlags("", o.kubeconfig); err != nil {
		return nil, fmt.Errorf("cannot use the kubeconfig %s: %w", o.kubeconfig, err)
	}
	return own, nil
}

// probesOf answers the probes. The tunnel is ready while it is open with at least one replica of the hub.
func probesOf(client *tunnel.Client) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if client.Sessions() == 0 {
			http.Error(w, "no tunnel is open", http.StatusServiceUnavailable)
		}
	})
	return mux
}

func metricsOf(client *tunnel.Client) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(newBuildInfo(), prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "synchub_tunnel_open", Help: "Replicas of the hub with which a tunnel is open.",
	}, func() float64 { return float64(client.Sessions()) }))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

// serveUntilDone serves HTTP at the address until ctx ends. The address 0 serves nothing.
func serveUntilDone(ctx context.Context, flag, address string, handler http.Handler) error {
	if address == "0" {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("set --%s to an address that is free: %w", flag, err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return nil
}
