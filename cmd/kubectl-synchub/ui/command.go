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

package ui

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
)

const uiLong = `Serve a page about the fleet to your browser, from this machine, until Ctrl-C.

The page shows the SyncTargets by health, each cluster, each EdgePlacement with its objects and its rollout, each object from the
workspace to the cluster as explain does, and events. It follows all changes by watches. It reads with your kubeconfig and your
rights, and changes nothing.

The server listens on the loopback address only. The printed address has a secret: who has it reads what you may read.

The page shows the current workspace. To show an inventory workspace and workload workspaces together, name them with --workspace.`

const uiExample = `  kubectl synchub ui

  # The clusters of an inventory workspace, and the placements of a team
  kubectl synchub ui --workspace root:inventory --workspace root:team-a`

// uiOptions are the flags of ui.
type uiOptions struct {
	cli.WorkspaceOptions
	workspaces []string
	port       uint16
}

// NewCommand returns the command ui.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	options := &uiOptions{WorkspaceOptions: cli.NewWorkspaceOptions(streams)}
	command := &cobra.Command{
		Use:               "ui",
		Short:             "Show the fleet in a browser",
		Long:              uiLong,
		Example:           uiExample,
		Args:              cli.NoArguments,
		RunE:              func(command *cobra.Command, _ []string) error { return options.run(command.Context()) },
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := command.Flags()
	options.Cluster.AddFlags(flags)
	flags.StringArrayVar(&options.workspaces, "workspace", nil, "path of a workspace to show (repeatable); the default is the current one")
	flags.Uint16Var(&options.port, "port", 0, "port of the page on this machine; 0 takes a free one")
	_ = command.RegisterFlagCompletionFunc("workspace", cobra.NoFileCompletions)
	return command
}

func (o *uiOptions) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	all, err := o.open()
	if err != nil {
		return err
	}
	changes := newChanges()
	if err := watchAll(ctx, all, changes); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(o.port))))
	if err != nil {
		return fmt.Errorf("cannot listen: %w", err)
	}
	guard := newGuard(listener.Addr().(*net.TCPAddr).Port, newServer(all, changes))
	fmt.Fprintf(o.Out, "The page is at\n\n  %s\n\nPress Ctrl-C to end it.\n", guard.loginURL())
	return serve(ctx, listener, guard)
}

// open returns the workspaces that the flags name.
func (o *uiOptions) open() (all []*workspace, err error) {
	if len(o.workspaces) == 0 {
		current, err := openWorkspace("", o.WorkspaceOptions)
		return []*workspace{current}, err
	}
	for _, path := range o.workspaces {
		if err := cli.ValidatePath(path); err != nil {
			return nil, fmt.Errorf("--workspace: %w", err)
		}
		opened, err := openWorkspace(path, o.InWorkspace(path))
		if err != nil {
			return nil, err
		}
		all = append(all, opened)
	}
	return all, nil
}

// serve serves until the context ends. Then it closes all connections: the ones of live pages never become idle.
func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
	closed := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() { closed <- server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("cannot serve the page: %w", err)
	}
	return <-closed
}
