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
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/overview"
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
	eventsError := workspace.List(ctx, &events, client.MatchingFields{"involvedObject.name": name, "involvedObject.kind": "SyncTarget"})
	description := &description{cli.NewColumns(options.Out), time.Now()}
	description.target(&list.Items[0])
	if eventsError == nil {
		description.events(&list.Items[0], events.Items)
	}
	return description.Flush()
}

// description formats text like kubectl describe.
type description struct {
	cli.Columns
	now time.Time
}

// field writes a line, unless the value is empty.
func (d *description) field(name, value string) {
	if value != "" {
		d.Line("%s:\t%s", name, value)
	}
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
		d.field("Kubeconfig", fmt.Sprintf("Secret %s/%s", reference.Namespace, reference.Name))
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
	if lines := row.FailureLines(); len(lines) > 0 {
		d.Line("Failed Objects:")
		for _, line := range lines {
			d.Line("  %s", line)
		}
	}
	if of.Status.Cleanup != nil {
		d.Line("Cleanup:\t%s", register.CleanupText(of))
		for _, line := range register.RemainingLines(of) {
			d.Line("%s", line)
		}
	}
}

// otherCluster writes that the kubeconfig leads to an unexpected cluster.
func (d *description) otherCluster(of *edgev2alpha1.SyncTarget) {
	if of.Status.ObservedClusterID == "" {
		return
	}
	d.field("Observed Cluster ID", of.Status.ObservedClusterID)
	if registration.IsTunnel(of) {
		d.Line("\tThe tunnel leads to another cluster, so nothing is synced. Remove it there,")
	} else {
		d.Line("\tAnother cluster answers, so nothing is synced. Put the kubeconfig back,")
	}
	d.Line("\tor confirm the cluster with `kubectl synchub confirm-cluster %s`.", of.Name)
}

// formerClusters lists the clusters that the SyncTarget stood for.
func (d *description) formerClusters(of *edgev2alpha1.SyncTarget) {
	if len(of.Status.FormerClusters) == 0 {
		return
	}
	d.Line("Former Clusters:")
	d.Line("  Cluster ID\tUntil\tResources")
	for _, former := range of.Status.FormerClusters {
		d.Line("  %s\t%s\t%d", cmp.Or(former.ClusterID, "<unknown>"), d.formatAgo(&former.Until), len(former.Resources))
	}
	d.Line("  `kubectl synchub stale-objects %s --target-kubeconfig FILE` lists the objects that are left there.", of.Name)
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
		d.Line("Conditions:\t<none>")
		return
	}
	d.Line("Conditions:")
	d.Line("  Type\tStatus\tSince\tReason\tMessage")
	for _, condition := range conditions {
		d.Line("  %s\t%s\t%s\t%s\t%s", condition.Type, condition.Status, overview.FormatDuration(d.now.Sub(condition.LastTransitionTime.Time)), condition.Reason, condition.Message)
	}
}

func (d *description) resources(resources []edgev2alpha1.SyncedResource) {
	if len(resources) == 0 {
		return
	}
	d.Line("Synced Resources:")
	d.Line("  Resource\tVersions\tState\tReason\tMessage")
	for _, resource := range resources {
		name := metav1.GroupResource{Group: resource.Group, Resource: resource.Resource}
		d.Line("  %s\t%s\t%s\t%s\t%s", name.String(), strings.Join(resource.Versions, ","), resource.State, resource.Reason, resource.Message)
	}
}

func (d *description) events(of *edgev2alpha1.SyncTarget, events []corev1.Event) {
	if len(events) == 0 {
		return
	}
	d.Line("Events:")
	d.Line("  Type\tReason\tAge\tMessage")
	for _, event := range events {
		when := event.LastTimestamp
		if when.IsZero() {
			when = metav1.Time(event.EventTime)
		}
		age := overview.FormatDuration(d.now.Sub(when.Time)) + staleness(of, event.InvolvedObject.UID, when)
		d.Line("  %s\t%s\t%s\t%s", event.Type, event.Reason, age, strings.TrimSpace(event.Message))
	}
}

// staleness returns why an event no longer describes the SyncTarget, or "" if it may still do.
func staleness(of *edgev2alpha1.SyncTarget, about types.UID, when metav1.Time) string {
	ready := meta.FindStatusCondition(of.Status.Conditions, edgev2alpha1.ConditionReady)
	switch {
	case about != of.UID:
		return " (of an earlier SyncTarget of this name)"
	case ready != nil && ready.Status == metav1.ConditionTrue && when.Before(&ready.LastTransitionTime):
		return " (over: Ready since then)"
	default:
		return ""
	}
}
