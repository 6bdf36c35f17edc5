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

package describe

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/overview"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/placed"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/register"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/registration"
)

// NewTargetCommand returns the command describe target.
func NewTargetCommand(streams genericiooptions.IOStreams) *cobra.Command {
	options := cli.NewReadOptions(streams)
	command := &cobra.Command{
		Use:     "target NAME",
		Aliases: []string{"synctarget"},
		Short:   "Show the details of a SyncTarget",
		Long: "Show the details of a SyncTarget: its conditions, the synced resources and the ones that the hub cannot sync, its\n" +
			"credentials, its present and former clusters, the remaining objects during a drain or deletion, and its events.",
		Example: "  kubectl synchub describe target florin",
		Args:    cli.OneSyncTarget,
		RunE: func(command *cobra.Command, args []string) error {
			return describeTarget(command.Context(), options, args[0])
		},
	}
	options.AddFlags(command)
	return command
}

func describeTarget(ctx context.Context, options cli.ReadOptions, name string) error {
	workspace, err := options.Client()
	if err != nil {
		return err
	}
	list, err := options.List(ctx, workspace, []string{name})
	if err != nil {
		return err
	}
	var events corev1.EventList
	// A user without the right to list events still gets the rest of the description.
	_ = workspace.List(ctx, &events, client.MatchingFields{"involvedObject.name": name, "involvedObject.kind": "SyncTarget"})
	columns := cli.NewColumns(options.Out)
	Target(&list.Items[0], events.Items, time.Now()).print(columns)
	return columns.Flush()
}

// Target returns the description of a SyncTarget, with events about SyncTargets of its name.
func Target(of *edgev2alpha1.SyncTarget, events []corev1.Event, now time.Time) *Description {
	d := &description{now: now}
	d.target(of)
	d.events(events, func(event *corev1.Event) string { return TargetNote(of, event) })
	return &d.Description
}

// description is a description at one point in time.
type description struct {
	Description
	now time.Time
}

func (d *description) target(of *edgev2alpha1.SyncTarget) {
	row := overview.RowOf(of, d.now)
	d.field("Name", of.Name)
	d.field("UID", string(of.UID))
	d.field("Labels", formatLabels(of.Labels))
	d.field("Ready", strings.TrimSuffix(row.State()+", "+row.Reason+": "+row.Message, ": "))
	d.field("Mailbox", row.Mailbox)
	d.field("Hub", row.Hub)
	d.field("Cluster ID", of.Status.ClusterID)
	d.otherCluster(of)
	d.field("Version", row.Version)
	d.field("Last Seen", d.formatAgo(of.Status.LastSyncerHeartbeatTime))
	if reference := of.Spec.KubeconfigSecretRef; reference != nil {
		kind := "Kubeconfig"
		if registration.IsTunnel(of) {
			// The cluster opens a tunnel with the token in the Secret.
			kind = "Tunnel Token"
		}
		d.field(kind, fmt.Sprintf("Secret %s/%s", reference.Namespace, reference.Name))
	}
	if credentials := of.Status.Credentials; credentials != nil && credentials.ExpiresAt != nil {
		d.field("Token", d.token(credentials))
	}
	d.field("Deletion Policy", string(of.Spec.DeletionPolicy))
	if counts := of.Status.Counts; counts != nil {
		d.field("Objects", formatCounts(counts)+", counted "+d.formatAgo(of.Status.LastSyncerHeartbeatTime))
	}
	if of.Status.PendingSince != nil {
		d.field("Lag", overview.FormatDuration(row.Lag))
	}
	d.conditions(of.Status.Conditions)
	d.resources(of.Status.SyncedResources)
	d.formerClusters(of)
	d.failures(row)
	if of.Status.Cleanup != nil {
		d.field("Cleanup", register.CleanupText(of))
		d.text(register.RemainingLines(of)...)
	}
}

// otherCluster adds that the kubeconfig leads to an unexpected cluster.
func (d *description) otherCluster(of *edgev2alpha1.SyncTarget) {
	if of.Status.ObservedClusterID == "" {
		return
	}
	d.field("Observed Cluster ID", of.Status.ObservedClusterID)
	remedy := "\tAnother cluster answers, so nothing is synced. Put the kubeconfig back,"
	if registration.IsTunnel(of) {
		remedy = "\tThe tunnel leads to another cluster, so nothing is synced. Remove it there,"
	}
	d.text(remedy, fmt.Sprintf("\tor confirm the cluster with `kubectl synchub confirm-cluster %s`.", of.Name))
}

// formerClusters lists the clusters that the SyncTarget stood for.
func (d *description) formerClusters(of *edgev2alpha1.SyncTarget) {
	if len(of.Status.FormerClusters) == 0 {
		return
	}
	table := d.table("Former Clusters", "Cluster ID", "Until", "Resources")
	for _, former := range of.Status.FormerClusters {
		table.row(cmp.Or(former.ClusterID, "<unknown>"), d.formatAgo(&former.Until), strconv.Itoa(len(former.Resources)))
	}
	table.note("`kubectl synchub stale-objects %s --target-kubeconfig FILE` lists the objects that are left there.", of.Name)
}

// failures lists the failed objects.
func (d *description) failures(row overview.Row) {
	lines := row.FailureLines()
	if len(lines) == 0 {
		return
	}
	table := d.table("Failed Objects")
	for i, line := range lines {
		table.row(line)
		if i < len(row.Failures) {
			failed := placed.ObjectOf(edgev2alpha1.PlacementPair{ObjectFailure: row.Failures[i]})
			table.Rows[i].Object, table.Rows[i].SyncTarget = &failed, row.Name
		}
	}
}

func formatCounts(counts *edgev2alpha1.TargetCounts) string {
	line := fmt.Sprintf("%d synced, %d failed", counts.Synced, counts.Failed)
	if counts.Former > 0 {
		line += fmt.Sprintf(", %d left of a mailbox that was deleted or restored from a backup of the cluster, until a mailbox selects them again or the cluster is drained", counts.Former)
	}
	return line
}

func formatLabels(labels map[string]string) string {
	return metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: labels})
}

func (d *description) formatAgo(when *metav1.Time) string {
	if when == nil {
		return "never"
	}
	return overview.FormatDuration(d.now.Sub(when.Time)) + " ago"
}

func (d *description) token(credentials *edgev2alpha1.CredentialsStatus) string {
	text := "ended " + d.formatAgo(credentials.ExpiresAt)
	if left := credentials.ExpiresAt.Sub(d.now); left > 0 {
		text = "ends in " + overview.FormatDuration(left)
	}
	if credentials.RenewedAt != nil {
		text += ", renewed " + d.formatAgo(credentials.RenewedAt)
	}
	return text
}

func (d *description) conditions(conditions []metav1.Condition) {
	if len(conditions) == 0 {
		d.field("Conditions", "<none>")
		return
	}
	table := d.table("Conditions", "Type", "Status", "Since", "Reason", "Message")
	for _, condition := range conditions {
		table.row(condition.Type, string(condition.Status), overview.FormatDuration(d.now.Sub(condition.LastTransitionTime.Time)), condition.Reason, condition.Message)
	}
}

func (d *description) resources(resources []edgev2alpha1.SyncedResource) {
	if len(resources) == 0 {
		return
	}
	table := d.table("Synced Resources", "Resource", "Versions", "State", "Reason", "Message")
	for _, resource := range resources {
		name := metav1.GroupResource{Group: resource.Group, Resource: resource.Resource}
		table.row(name.String(), strings.Join(resource.Versions, ","), string(resource.State), resource.Reason, resource.Message)
	}
}

// events writes events, the oldest first. noteOn returns a note on the age of an event.
func (d *description) events(events []corev1.Event, noteOn func(*corev1.Event) string) {
	if len(events) == 0 {
		return
	}
	slices.SortStableFunc(events, func(a, b corev1.Event) int { return EventTime(&a).Compare(EventTime(&b).Time) })
	table := d.table("Events", "Type", "Reason", "Age", "Message")
	for i := range events {
		table.row(EventCells(&events[i], noteOn(&events[i]), d.now)...)
	}
}

// EventTime returns the time of the last occurrence of an event.
func EventTime(event *corev1.Event) metav1.Time {
	if event.LastTimestamp.IsZero() {
		return metav1.Time(event.EventTime)
	}
	return event.LastTimestamp
}

// EventCells returns the type, reason, age and message of an event, with a note after the age.
func EventCells(event *corev1.Event, note string, now time.Time) []string {
	age := overview.FormatDuration(now.Sub(EventTime(event).Time))
	return []string{event.Type, event.Reason, age + note, strings.TrimSpace(event.Message)}
}

// TargetNote returns why a warning no longer describes the SyncTarget, or "" if it may still do.
func TargetNote(of *edgev2alpha1.SyncTarget, event *corev1.Event) string {
	ready := meta.FindStatusCondition(of.Status.Conditions, edgev2alpha1.ConditionReady)
	switch {
	case event.InvolvedObject.UID != of.UID:
		return " (of an earlier SyncTarget of this name)"
	case event.Type == corev1.EventTypeWarning && ready != nil && ready.Status == metav1.ConditionTrue && EventTime(event).Time.Before(ready.LastTransitionTime.Time):
		return " (over: Ready since then)"
	default:
		return ""
	}
}
