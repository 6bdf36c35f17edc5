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

// Command kubectl-synchub is the kubectl plugin of synchub: `kubectl synchub`. Operators register clusters with it,
// read the state of SyncTargets, and find out why an object is or is not synced. It talks only to API servers, never
// to the hub.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/allow"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/bind"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/check"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/describe"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/diff"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/drift"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/events"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/explain"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/get"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/initialize"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/publish"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/register"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/render"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/rollout"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/staleobjects"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/state"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/status"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/ui"
	versioncommand "github.com/synchub-dev/synchub/cmd/kubectl-synchub/version"
	"github.com/synchub-dev/synchub/provider/buildinfo"
)

// Set by the linker; see the Makefile.
var (
	version = buildinfo.Unstamped
	commit  = "unknown"
	date    = "unknown"
)

func main() {
	version = buildinfo.Version(version)
	cli.PluginVersion = version
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	setUpLogs(os.Stderr)
	os.Exit(run(ctx, os.Args[1:], genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}))
}

// setUpLogs turns off the logs of libraries, which repeat errors that the commands print. The warnings of API servers,
// which are among these logs, are printed as kubectl prints them.
func setUpLogs(errOut io.Writer) {
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
	rest.SetDefaultWarningHandler(cli.RedactedWarnings{WarningHandler: rest.NewWarningWriter(errOut, rest.WarningWriterOptions{Deduplicate: true})})
}

// run executes a command line and returns the exit status.
func run(ctx context.Context, args []string, streams genericiooptions.IOStreams) int {
	command := newCommand(streams)
	command.SetArgs(args)
	err := command.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	status := 1
	if exit, ok := errors.AsType[*cli.ExitError](err); ok {
		if status = exit.Status; exit.Err == nil {
			return status
		}
	}
	fmt.Fprintln(streams.ErrOut, "error: "+cli.SanitizeLines(err.Error()))
	return status
}

func newCommand(streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use:   "kubectl-synchub",
		Short: "Work with synchub",
		Long:  "Work with synchub, the hub that keeps many Kubernetes clusters in sync with kcp.",
		Annotations: map[string]string{
			// kubectl runs the plugin under this name.
			cobra.CommandDisplayNameAnnotation: "kubectl synchub",
		},
		Args:                  cli.OnlyCommands,
		RunE:                  func(command *cobra.Command, _ []string) error { return command.Help() },
		DisableFlagsInUseLine: true,
		SilenceUsage:          true,
		SilenceErrors:         true,
	}
	command.SetIn(streams.In)
	command.SetOut(streams.Out)
	command.SetErr(streams.ErrOut)
	command.SetFlagErrorFunc(cli.WithAdvice)
	addCommands(command, streams)
	return command
}

// The groups of the commands in the help.
const (
	fleetGroup     = "fleet"
	placementGroup = "placement"
	apiGroup       = "apis"
	troubleGroup   = "trouble"
	installGroup   = "install"
)

// addCommands adds the commands in their groups.
func addCommands(to *cobra.Command, streams genericiooptions.IOStreams) {
	add := func(group, title string, commands ...*cobra.Command) {
		to.AddGroup(&cobra.Group{ID: group, Title: title})
		for _, command := range commands {
			command.GroupID = group
		}
		to.AddCommand(commands...)
	}
	add(fleetGroup, "Clusters:", slices.Concat([]*cobra.Command{
		register.NewCommand(streams), register.NewUnregisterCommand(streams), register.NewRotateCommand(streams),
		status.NewCommand(streams), get.NewCommand(streams), ui.NewCommand(streams),
		cli.NewParentCommand("describe", "Show the details of a SyncTarget or an EdgePlacement", nil, describe.NewTargetCommand(streams), describe.NewPlacementCommand(streams)),
	}, state.NewCommands(streams))...)
	add(placementGroup, "Workspaces and placement:",
		cli.NewParentCommand("bind", "Make a workspace an inventory workspace or a workload workspace", nil, bind.NewInventoryCommand(streams), bind.NewComputeCommand(streams)),
		cli.NewParentCommand("unbind", "Undo bind", nil, bind.NewUnbindInventoryCommand(streams), bind.NewUnbindComputeCommand(streams)),
		allow.NewCommand(streams), rollout.NewCommand(streams),
	)
	add(apiGroup, "APIs:",
		publish.NewCommand(streams),
		cli.NewParentCommand("published-resource", "Work with PublishedResources", []string{"publishedresource", "pubres"}, render.NewCommand(streams)),
	)
	add(troubleGroup, "Troubleshooting:",
		explain.NewCommand(streams), diff.NewCommand(streams), drift.NewCommand(streams), check.NewCommand(streams), events.NewCommand(streams),
		register.NewConfirmClusterCommand(streams), staleobjects.NewConfirmRestoreCommand(streams), staleobjects.NewCommand(streams),
	)
	add(installGroup, "Installation:",
		initialize.NewCommand(streams),
		versioncommand.NewCommand(streams, versioncommand.Build{Version: version, Commit: commit, Date: date}),
	)
	to.SetHelpCommandGroupID(installGroup)
	to.SetCompletionCommandGroupID(installGroup)
}
