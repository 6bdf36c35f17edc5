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

// Command synchub-tunnel is the tunnel of a cluster that the hub cannot dial. It runs in that cluster.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	// Root certificates where the system has none, as in the container image.
	_ "golang.org/x/crypto/x509roots/fallback"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/provider/buildinfo"
	"github.com/synchub-dev/synchub/provider/targets/tunnel/program"
)

// Set by the linker; see the Makefile.
var (
	version = buildinfo.Unstamped
	commit  = "unknown"
	date    = "unknown"
)

// serviceAccountDirectory is where Kubernetes mounts the credentials of a Pod.
const serviceAccountDirectory = "/var/run/secrets/kubernetes.io/serviceaccount/"

func main() {
	version = buildinfo.Version(version)
	// A second signal ends the process immediately.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "synchub-tunnel: "+err.Error())
		os.Exit(1)
	}
}

// gcPercent is Go's setting GOGC. Open watches hold little memory, so that collecting the garbage often costs little.
const gcPercent = 25

// options are the flags.
type options struct {
	hub, syncTarget               string
	tokenFile, authorityFile      string
	server, serverToken, serverCA string
	health, metrics               string
	logLevel, logFormat           string
}

func newCommand() *cobra.Command {
	o := &options{}
	command := &cobra.Command{
		Use:   "synchub-tunnel [flags]",
		Short: "Run the tunnel of a cluster that the hub cannot dial",
		Long: "Run the tunnel of a cluster that has only outbound connections. It dials the hub, and forwards\n" +
			"the hub's requests to the API server of its own cluster with the rights of its own ServiceAccount.\n" +
			"`kubectl synchub register NAME --tunnel -o yaml` prints its manifest.",
		Example: "  # In the cluster, as the printed manifest and the Helm chart do\n" +
			"  synchub-tunnel --hub https://synchub.example.com:8443 --sync-target 6f2c... --token-file /etc/synchub/token\n\n" +
			"  # Outside\n" +
			"  synchub-tunnel --hub https://synchub.example.com:8443 --sync-target 6f2c... --token-file token --server https://cluster.example.com:6443 --server-certificate-authority ca.crt --server-token-file cluster-token",
		Version:               fmt.Sprintf("%s (commit %s, built %s)", version, commit, date),
		Args:                  cobra.NoArgs,
		RunE:                  func(command *cobra.Command, _ []string) error { return o.run(command.Context()) },
		DisableFlagsInUseLine: true,
		SilenceUsage:          true,
		SilenceErrors:         true,
		CompletionOptions:     cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	flags := command.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.hub, "hub", "", "URL of the hub's port for tunnels (required)")
	flags.StringVar(&o.syncTarget, "sync-target", "", "UID of the SyncTarget of this cluster (required)")
	flags.StringVar(&o.tokenFile, "token-file", "", "file with the token of the SyncTarget; read again when it changes (required)")
	flags.StringVar(&o.authorityFile, "hub-certificate-authority", "", "file with the certificate authority of the hub's port; empty means the authorities of the system")
	flags.StringVar(&o.server, "server", "", "URL of the API server of this cluster (default: in-cluster)")
	flags.StringVar(&o.serverCA, "server-certificate-authority", serviceAccountDirectory+"ca.crt", "file with the certificate authority of the API server; empty means the authorities of the system")
	flags.StringVar(&o.serverToken, "server-token-file", serviceAccountDirectory+"token", "file with the token for the API server; read again every minute")
	flags.StringVar(&o.health, "health-probe-bind-address", ":8081", "address of the probes; 0 means none")
	flags.StringVar(&o.metrics, "metrics-bind-address", "0", "address of the metrics, without encryption; 0 means none")
	flags.StringVar(&o.logLevel, "log-level", "info", "error, info or debug")
	flags.StringVar(&o.logFormat, "log-format", "json", "json or console")
	command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w; see `synchub-tunnel --help`", err) })
	return command
}

func (o *options) run(ctx context.Context) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	log, err := o.newLogger()
	if err != nil {
		return err
	}
	for flag, value := range map[string]string{"hub": o.hub, "sync-target": o.syncTarget, "token-file": o.tokenFile} {
		if value == "" {
			return fmt.Errorf("--%s is needed; the manifest of `kubectl synchub register NAME --tunnel -o yaml` has it", flag)
		}
	}
	if o.server == "" {
		host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
		if host == "" || port == "" {
			return errors.New("set --server, since this does not run in a cluster")
		}
		o.server = "https://" + net.JoinHostPort(host, port)
	}
	apiServer, err := program.NewAPIServer(o.server, o.serverCA, o.serverToken, clock.RealClock{})
	if err != nil {
		return err
	}
	authority, err := o.authority()
	if err != nil {
		return err
	}
	client, err := program.NewClient(program.ClientOptions{
		Hub: o.hub, SyncTarget: o.syncTarget, TokenFile: o.tokenFile, Authority: authority, Proxy: http.ProxyFromEnvironment, APIServer: apiServer, Clock: clock.RealClock{}, Log: log,
	})
	if err != nil {
		return err
	}
	if err := serveUntilDone(ctx, "health-probe-bind-address", o.health, probesOf(client)); err != nil {
		return err
	}
	if err := serveUntilDone(ctx, "metrics-bind-address", o.metrics, metricsOf(client)); err != nil {
		return err
	}
	log.Info("starting", "version", version, "commit", commit, "hub", o.hub, "syncTargetUID", o.syncTarget)
	return client.Run(ctx)
}

func (o *options) newLogger() (*slog.Logger, error) {
	level, known := map[string]slog.Level{"error": slog.LevelError, "info": slog.LevelInfo, "debug": slog.LevelDebug}[o.logLevel]
	if !known || o.logFormat != "json" && o.logFormat != "console" {
		return nil, errors.New("--log-level is error, info or debug, and --log-format is json or console")
	}
	settings := &slog.HandlerOptions{Level: level}
	if o.logFormat == "console" {
		return slog.New(slog.NewTextHandler(os.Stderr, settings)), nil
	}
	return slog.New(slog.NewJSONHandler(os.Stderr, settings)), nil
}

func (o *options) authority() ([]byte, error) {
	if o.authorityFile == "" {
		return nil, nil
	}
	content, err := os.ReadFile(o.authorityFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("--hub-certificate-authority: the file %s does not exist", o.authorityFile)
	}
	return content, err
}

// probesOf answers the probes. The tunnel is ready while it is open with at least one replica of the hub.
func probesOf(client *program.Client) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if client.Sessions() == 0 {
			http.Error(w, "no tunnel is open", http.StatusServiceUnavailable)
		}
	})
	return mux
}

// metricsOf serves the metrics of the program in the text format of Prometheus, whose library would double the size of the program.
func metricsOf(client *program.Client) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = fmt.Fprintf(w, "# HELP synchub_build_info 1, with the version of the tunnel.\n# TYPE synchub_build_info gauge\nsynchub_build_info{version=%q,commit=%q,go_version=%q} 1\n", version, commit, runtime.Version())
		_, _ = fmt.Fprintf(w, "# HELP synchub_tunnel_open Replicas of the hub with which a tunnel is open.\n# TYPE synchub_tunnel_open gauge\nsynchub_tunnel_open %d\n", client.Sessions())
	})
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
