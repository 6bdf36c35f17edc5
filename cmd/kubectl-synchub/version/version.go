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

package version

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
)

const versionLong = `Print the version of the plugin, and the version of the hub that serves the SyncTargets of the current workspace.

The hub reports its version in status.hubVersion of SyncTargets. Use the plugin of the hub's version: the command warns if the
versions differ.`

// hubTimeout bounds the time for the hub's version.
const hubTimeout = 10 * time.Second

// Build describes a program.
type Build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Date    string `json:"date"`
}

// document has the versions for programs.
type document struct {
	Plugin Build `json:"plugin"`
	// Hub has the versions of the hub's replicas. There are several during an upgrade, and none if they are unknown.
	Hub []string `json:"hub"`
}

// versionOptions are the flags of version.
type versionOptions struct {
	cli.WorkspaceOptions
	output     cli.StructuredOutput
	pluginOnly bool
	build      Build
}

// NewCommand returns the command version.
func NewCommand(streams genericiooptions.IOStreams, build Build) *cobra.Command {
	options := &versionOptions{WorkspaceOptions: cli.NewWorkspaceOptions(streams), build: build}
	command := &cobra.Command{
		Use:     "version",
		Short:   "Print the versions of the plugin and of the hub",
		Long:    versionLong,
		Example: "  kubectl synchub version\n\n  # Without a request\n  kubectl synchub version --client",
		Args:    cli.NoArguments,
		RunE:    func(command *cobra.Command, _ []string) error { return options.run(command.Context()) },
	}
	options.AddFlags(command)
	options.output.AddFlag(command)
	command.Flags().BoolVar(&options.pluginOnly, "client", false, "only the version of the plugin")
	command.ValidArgsFunction = cobra.NoFileCompletions
	return command
}

func (o *versionOptions) run(ctx context.Context) error {
	found := document{Plugin: o.build, Hub: []string{}}
	var unknown error
	if !o.pluginOnly {
		if found.Hub, unknown = o.hubVersions(ctx); unknown != nil {
			fmt.Fprintln(o.ErrOut, "The version of the hub is unknown: "+cli.SanitizeLine(unknown.Error()))
			found.Hub = []string{}
		}
	}
	if skew := describeSkew(found); skew != "" {
		fmt.Fprintln(o.ErrOut, "Warning: "+cli.SanitizeLine(skew))
	}
	if done, err := o.output.Print(o.Out, found); done || err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "kubectl-synchub %s (commit %s, built %s)\n", o.build.Version, o.build.Commit, o.build.Date)
	if len(found.Hub) > 0 {
		fmt.Fprintf(o.Out, "hub %s\n", cli.SanitizeLine(strings.Join(found.Hub, ", ")))
	}
	return nil
}

// hubVersions returns the versions that the hub reports in the SyncTargets of the workspace, sorted.
func (o *versionOptions) hubVersions(ctx context.Context) ([]string, error) {
	workspace, err := o.Client()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, hubTimeout)
	defer cancel()
	var list edgev2alpha1.SyncTargetList
	if err := workspace.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("the SyncTargets of the current workspace cannot be listed: %w", err)
	}
	versions := versionsOf(list.Items)
	if len(versions) == 0 {
		return nil, fmt.Errorf("no SyncTarget of the current workspace (%d) has status.hubVersion", len(list.Items))
	}
	return versions, nil
}

func versionsOf(syncTargets []edgev2alpha1.SyncTarget) (versions []string) {
	for i := range syncTargets {
		if version := syncTargets[i].Status.HubVersion; version != "" && !slices.Contains(versions, version) {
			versions = append(versions, version)
		}
	}
	slices.Sort(versions)
	return versions
}

// describeSkew describes that the plugin and the hub have different versions. It is empty if they do not.
func describeSkew(found document) string {
	switch {
	case len(found.Hub) > 1:
		return "the SyncTargets report several versions of the hub, as during an upgrade: " + strings.Join(found.Hub, ", ")
	case len(found.Hub) == 1 && found.Hub[0] != found.Plugin.Version:
		return fmt.Sprintf("the plugin has version %s, and the hub has version %s: use the plugin of the hub's version", found.Plugin.Version, found.Hub[0])
	default:
		return ""
	}
}
