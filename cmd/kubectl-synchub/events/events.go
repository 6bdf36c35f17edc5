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

package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/overview"
)

const eventsLong = `List the events of a SyncTarget and of its mailbox, the oldest first: about the SyncTarget, its configs, and the objects that the
hub syncs. Servers keep events for an hour by default.

Events in the mailbox need the right to list events there. Without it, the command lists only the events of the SyncTarget.`

const eventsExample = `  kubectl synchub events florin

  # And each new one
  kubectl synchub events florin --watch`

// eventsOptions are the flags of events.
type eventsOptions struct {
	cli.ReadOptions
	watch bool
}

// NewCommand returns the command events.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	options := &eventsOptions{ReadOptions: cli.NewReadOptions(streams)}
	command := &cobra.Command{
		Use:     "events NAME",
		Short:   "List the events of a SyncTarget and of its mailbox",
		Long:    eventsLong,
		Example: eventsExample,
		Args:    cli.OneSyncTarget,
		RunE:    func(command *cobra.Command, args []string) error { return options.run(command.Context(), args[0]) },
	}
	options.AddFlags(command)
	command.Flags().BoolVarP(&options.watch, "watch", "w", false, "after listing the events, print each new one")
	return command
}

// source is a workspace with events.
type source struct {
	// name is the value of the column WORKSPACE.
	name    string
	client  client.WithWatch
	options []client.ListOption
	// listed has the resourceVersion of the list.
	listed corev1.EventList
}

// row is an event with the name of its workspace.
type row struct {
	workspace string
	event     corev1.Event
}

func (o *eventsOptions) run(ctx context.Context, name string) error {
	workspace, err := o.Client()
	if err != nil {
		return err
	}
	list, err := o.List(ctx, workspace, []string{name})
	if err != nil {
		return err
	}
	sources, err := o.sources(workspace, &list.Items[0])
	if err != nil {
		return err
	}
	var rows []row
	var readable []source
	for _, one := range sources {
		found, err := one.list(ctx)
		if err != nil {
			fmt.Fprintf(o.ErrOut, "The events of the %s cannot be listed: %s\n", one.name, cli.SanitizeLine(err.Error()))
			continue
		}
		rows, readable = append(rows, found...), append(readable, one)
	}
	if len(readable) == 0 {
		return errors.New("no events can be listed")
	}
	if len(rows) == 0 && !o.watch {
		fmt.Fprintf(o.ErrOut, "There are no events of %s.\n", name)
		return nil
	}
	sortByTime(rows)
	if err := o.print(rows, true, time.Now()); err != nil || !o.watch {
		return err
	}
	return o.follow(ctx, readable)
}

// sources returns the inventory workspace and the mailbox.
func (o *eventsOptions) sources(workspace client.WithWatch, syncTarget *edgev2alpha1.SyncTarget) ([]source, error) {
	sources := []source{{name: "inventory", client: workspace, options: []client.ListOption{
		client.MatchingFields{"involvedObject.name": syncTarget.Name, "involvedObject.kind": "SyncTarget"},
	}}}
	status := syncTarget.Status.Mailbox
	if status == nil || status.Cluster == "" {
		return sources, nil
	}
	mailbox, err := o.ReaderIn(status.Cluster)
	if err != nil {
		return nil, err
	}
	return append(sources, source{name: "mailbox", client: mailbox.Client}), nil
}

func (s *source) list(ctx context.Context) (rows []row, err error) {
	var list corev1.EventList
	if err := s.client.List(ctx, &list, s.options...); err != nil {
		return nil, err
	}
	s.listed.ResourceVersion = list.ResourceVersion
	for _, event := range list.Items {
		rows = append(rows, row{s.name, event})
	}
	return rows, nil
}

// follow prints each new event, until the context ends.
func (o *eventsOptions) follow(ctx context.Context, sources []source) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	rows, ended := make(chan row), make(chan error, len(sources))
	for _, one := range sources {
		go func() { ended <- one.watch(ctx, rows) }()
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			return err
		case next := <-rows:
			if err := o.print([]row{next}, false, time.Now()); err != nil {
				return err
			}
		}
	}
}

// watch sends each event that is created or repeated.
func (s *source) watch(ctx context.Context, rows chan<- row) error {
	err := cli.Follow(ctx, s.client, &s.listed, func(change watch.EventType, object client.Object) error {
		event, ok := object.(*corev1.Event)
		if !ok || change == watch.Deleted {
			return nil
		}
		select {
		case rows <- row{s.name, *event}:
		case <-ctx.Done():
		}
		return nil
	}, s.options...)
	if err != nil {
		return fmt.Errorf("the events of the %s: %w", s.name, err)
	}
	return nil
}

// print prints rows as a table.
func (o *eventsOptions) print(rows []row, withHeader bool, now time.Time) error {
	table := cli.NewColumns(o.Out)
	if withHeader {
		table.Line("LAST SEEN\tWORKSPACE\tTYPE\tREASON\tOBJECT\tMESSAGE")
	}
	for _, one := range rows {
		about := one.event.InvolvedObject
		object := strings.ToLower(about.Kind) + "/" + about.Name
		if about.Namespace != "" {
			object += " in " + about.Namespace
		}
		table.Line("%s\t%s\t%s\t%s\t%s\t%s", overview.FormatDuration(now.Sub(lastSeen(&one.event))), one.workspace, one.event.Type, one.event.Reason, object, strings.Join(strings.Fields(one.event.Message), " "))
	}
	return table.Flush()
}

func sortByTime(rows []row) {
	slices.SortStableFunc(rows, func(a, b row) int {
		return cmp.Or(lastSeen(&a.event).Compare(lastSeen(&b.event)), cmp.Compare(a.event.Name, b.event.Name))
	})
}

// lastSeen returns when an event happened last.
func lastSeen(event *corev1.Event) time.Time {
	switch {
	case event.Series != nil && !event.Series.LastObservedTime.IsZero():
		return event.Series.LastObservedTime.Time
	case !event.LastTimestamp.IsZero():
		return event.LastTimestamp.Time
	case !event.EventTime.IsZero():
		return event.EventTime.Time
	default:
		return event.CreationTimestamp.Time
	}
}
